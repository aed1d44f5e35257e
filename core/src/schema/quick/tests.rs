//! The quick check answers as the thorough one does.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schema::{Schema, instance::tests::values, tests::compile};

/// Schemas with a quick check, of every keyword that it knows.
fn quick() -> Vec<Value> {
    let mut schemas = vec![
        json!({"properties": {"a": {"type": "integer"}, "b": {"const": {"a": 1}}}, "additionalProperties": false}),
        json!({"properties": {"f": {"minLength": 1}, "a": {}, "c": false}, "additionalProperties": {"type": ["number", "array"]}}),
        json!({"prefixItems": [{"type": "null"}], "items": {"enum": [1, "é", [], {"a": 2.0}]}}),
        json!({"prefixItems": [{"type": "null"}, {"type": "integer"}]}),
        json!({"items": {"type": ["integer", "string"]}, "minItems": 1, "maxItems": 2}),
        json!({"minimum": 0, "exclusiveMaximum": 3, "multipleOf": 1, "pattern": "^(a|é)", "minLength": 2}),
        json!({"exclusiveMinimum": -1.5, "maximum": 18_446_744_073_709_551_615_u64, "multipleOf": 3}),
        json!({"maxLength": 1, "minProperties": 2, "maxProperties": 9}),
        json!({"anyOf": [{"type": ["string", "null"]}, {"items": {"$ref": "#"}, "type": "array"}]}),
        json!({"oneOf": [{"type": "integer"}, {"minimum": 2}, {"required": ["a", "b"]}]}),
        json!({"allOf": [{"maximum": 2}, {"maxItems": 1}], "required": ["a"]}),
        json!({"type": "object", "additionalProperties": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/a%7Eb", "type": "array", "$defs": {"a~b": {"items": {"type": "string"}}}}),
        json!({"format": "date", "title": "x", "x-order": 1, "then": false, "minContains": 1}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com", "maximum": 2, "items": false}),
        json!(true),
        json!(false),
    ];
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    schemas.extend(types.map(|it| json!({"type": it})));
    schemas.extend(
        [json!(null), json!(1.0), json!("é"), json!([1]), json!({})].map(|it| json!({"const": it})),
    );
    schemas
}

/// Schemas that are checked thoroughly only.
fn thorough() -> Vec<Value> {
    vec![
        json!({"patternProperties": {"^a": {"type": "string"}}, "unevaluatedProperties": {"type": "number"}}),
        json!({"propertyNames": {"maxLength": 1}, "minProperties": 1, "maxProperties": 9}),
        json!({"contains": {"type": "boolean"}, "minContains": 1, "maxContains": 2, "maxItems": 3}),
        json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"required": ["c"]}}}),
        json!({"if": {"type": "object"}, "then": {"required": ["a", "b", "c", "d"]}, "else": {"type": "array"}}),
        json!({"not": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}}),
        json!({"items": {"uniqueItems": true}}),
        json!({"multipleOf": 0.5}),
        json!({"pattern": "^(?!a)"}),
        json!({"items": {"$ref": "#a"}, "$defs": {"a": {"$anchor": "a", "type": "string"}}}),
        json!({"items": {"$id": "https://example.com", "type": "string"}}),
        json!({
            "$ref": "#/$defs/a/$defs/b",
            "$defs": {
                "a": {"$id": "a", "$defs": {"b": {"$ref": "#/$defs/c"}, "c": {"type": "string"}}},
                "c": {"type": "integer"},
            },
        }),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "null", "definitions": {"a": {"type": "array"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "date"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [false], "items": true}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true}),
    ]
}

proptest! {
    #[test]
    fn a_value_is_valid_quickly_where_it_is_thoroughly(value in values()) {
        let text = value.to_string();
        let instance = serde_json::from_str(&text).unwrap();
        for schema in quick() {
            let compiled = compile(&schema);
            if let Some(accepts) = compiled.quick.as_ref().unwrap().accepts(&instance) {
                prop_assert_eq!(accepts, compiled.is_valid(&value), "{}", schema);
            }
            prop_assert_eq!(compiled.check_json(&text).is_ok(), compiled.is_valid(&value), "{}", schema);
        }
    }

    #[test]
    fn a_schema_without_a_quick_check_is_checked(value in values()) {
        let text = value.to_string();
        for schema in thorough() {
            let compiled = compile(&schema);
            prop_assert!(compiled.quick.is_none(), "{}", schema);
            prop_assert_eq!(compiled.check_json(&text).is_ok(), compiled.is_valid(&value), "{}", schema);
        }
    }
}

/// Returns what the quick check alone says.
fn accepts(schema: &Schema, text: &str) -> Option<bool> {
    schema.quick.as_ref().unwrap().accepts(&serde_json::from_str(text).unwrap())
}

#[test]
fn numbers_that_floating_point_rounds_are_left_to_the_thorough_check() {
    let schema = compile(&json!({"maximum": 9_007_199_254_740_993_u64}));
    assert_eq!(accepts(&schema, "9007199254740993"), Some(true));
    assert_eq!(accepts(&schema, "9007199254740994"), Some(false));
    assert_eq!(accepts(&schema, "9007199254740994.0"), None);
    let divided = compile(&json!({"multipleOf": 2}));
    assert_eq!(accepts(&divided, "-4"), Some(true));
    assert_eq!(accepts(&divided, "9007199254740993"), None);
    assert_eq!(accepts(&divided, "4.0"), None);
    assert_eq!(divided.check_json("4.0"), Ok(()));
}

#[test]
fn a_check_of_many_alternatives_at_each_depth_ends() {
    let inner = json!({"properties": {"a": {"$ref": "#"}}});
    let schema = compile(&json!({"anyOf": [inner, inner, inner], "type": "object"}));
    let text = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
    assert_eq!(accepts(&schema, &text), None);
    assert!(schema.check_json(&text).is_err());
}

#[test]
fn sizes_of_text_are_counted_in_characters() {
    let schema = compile(&json!({"minLength": 2, "maxLength": 3}));
    for (text, fits) in
        [("é", false), ("éé", true), ("ééé", true), ("éééé", false), ("🐟", false), ("🐟🐟", true)]
    {
        assert_eq!(accepts(&schema, &format!("{text:?}")), Some(fits), "{text}");
    }
}

#[test]
fn many_properties_are_found() {
    let properties: serde_json::Map<_, _> =
        (0..99).map(|it| (format!("name{it}"), json!({"const": it}))).collect();
    let schema = compile(&json!({"properties": properties, "additionalProperties": false}));
    let members: Vec<String> = (0..99).map(|it| format!(r#""name{it}":{it}"#)).collect();
    let text = format!("{{{}}}", members.join(","));
    assert_eq!(accepts(&schema, &text), Some(true));
    assert_eq!(accepts(&schema, &text.replace(":7,", ":8,")), Some(false));
    assert_eq!(accepts(&schema, &text.replace("name7\"", "name700\"")), Some(false));
}
