//! An instance means the same as the `serde_json::Value` of the same text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::{Schema, tests::compile};

/// Schemas of every keyword that looks at a value, for values of [`values`].
fn schemas() -> Vec<Value> {
    let mut schemas = vec![
        json!({"properties": {"a": {"type": "integer"}, "b": {"const": {"a": 1}}}, "additionalProperties": false}),
        json!({"patternProperties": {"^a": {"type": "string"}}, "unevaluatedProperties": {"type": "number"}}),
        json!({"propertyNames": {"maxLength": 1}, "minProperties": 1, "maxProperties": 9}),
        json!({"prefixItems": [{"type": "null"}], "items": {"enum": [1, "é", [], {"a": 2.0}]}}),
        json!({"contains": {"type": "boolean"}, "minContains": 1, "maxContains": 2, "maxItems": 3}),
        json!({"minimum": 0, "exclusiveMaximum": 3, "multipleOf": 1, "pattern": "^(a|é)", "minLength": 2}),
        json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"required": ["c"]}}}),
        json!({"if": {"type": "object"}, "then": {"required": ["a", "b", "c", "d"]}, "else": {"type": "array"}}),
        json!({"anyOf": [{"type": ["string", "null"]}, {"items": {"$ref": "#"}, "type": "array"}]}),
        json!({"type": "object", "additionalProperties": {"$ref": "#"}}),
        json!({"not": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}}),
    ];
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    schemas.extend(types.map(|it| json!({"type": it})));
    schemas.extend(
        [json!(null), json!(1.0), json!("é"), json!([1]), json!({})].map(|it| json!({"const": it})),
    );
    schemas
}

fn values() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (-3_i64..4).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop_oneof![Just(1.0), Just(2.5), Just(-0.0), any::<f64>()].prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        "[aé\"\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-fé\"]{1,2}", inner), 0..14)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn read(text: &str) -> Instance<'_> {
    serde_json::from_str(text).unwrap()
}

proptest! {
    #[test]
    fn an_instance_is_valid_where_the_value_is(value in values()) {
        let text = value.to_string();
        let instance = read(&text);
        prop_assert_eq!(&instance.to_value(), &value);
        prop_assert!(instance.equals(&value));
        for schema in schemas() {
            let compiled = compile(&schema);
            let quick = compiled.quick.as_ref().unwrap();
            prop_assert_eq!(quick.is_valid(&instance), compiled.is_valid(&value), "{}", schema);
        }
    }

    #[test]
    fn instances_are_equal_where_values_are(one in values(), other in values()) {
        prop_assert_eq!(read(&one.to_string()).equals(&other), one == other || json::cmp::equal(&one, &other));
    }
}

#[test]
fn of_several_members_with_one_name_the_last_counts() {
    for others in [0, SEARCHED] {
        let others: Vec<String> = (0..others).map(|it| format!(r#","{it}":0"#)).collect();
        let others = others.concat();
        let text = format!(r#"{{"a":1,"b":2,"\u0061":"x"{others}}}"#);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read(&text).to_value(), value);
        let schema = compile(&json!({"properties": {"a": {"type": "string"}}}));
        assert_eq!(schema.check_json(&text), Ok(()));
    }
}

#[test]
fn members_of_a_large_object_are_found() {
    let text = |last: &str| {
        let members: Vec<String> = (0..99).map(|it| format!(r#""name{it}":{it}"#)).collect();
        format!("{{{},{last}}}", members.join(","))
    };
    let schema = compile(
        &json!({"properties": {"last": {"type": "integer"}}, "required": ["last", "name7"]}),
    );
    assert_eq!(schema.check_json(&text(r#""last":1"#)), Ok(()));
    assert!(schema.check_json(&text(r#""last":"1""#)).is_err());
    assert!(schema.check_json(&text(r#""other":1"#)).is_err());
}

#[test]
fn a_schema_that_compares_items_has_no_quick_check() {
    let schema: Schema = compile(&json!({"items": {"uniqueItems": true}}));
    assert!(schema.quick.is_none());
    assert!(schema.check_json("[[1,2]]").is_ok());
    assert!(schema.check_json("[[1,1]]").is_err());
}

#[test]
fn text_that_is_not_json_is_a_violation() {
    let wrong = compile(&json!(true)).check_json("{").unwrap_err().to_string();
    assert!(wrong.starts_with("can't be read: "), "{wrong}");
}
