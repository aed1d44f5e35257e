//! An instance means the same as the `serde_json::Value` of the same text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::tests::compile;

pub(in crate::schema) fn values() -> impl Strategy<Value = Value> {
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
    fn an_instance_equals_its_value(value in values()) {
        let text = value.to_string();
        let instance = read(&text);
        prop_assert_eq!(&instance.to_value(), &value);
        prop_assert!(instance.equals(&Instance::from_value(&value)));
        prop_assert!(instance.equals(&Instance::from_value(&value).into_owned()));
    }

    #[test]
    fn instances_are_equal_where_values_are(one in values(), other in values()) {
        let (one_text, other_text) = (one.to_string(), other.to_string());
        // Without whole numbers that are written with a fraction, values are equal as they are.
        let is_written_alike = |text: &str| !text.contains(".0") && !text.contains('e');
        if is_written_alike(&one_text) && is_written_alike(&other_text) {
            prop_assert_eq!(read(&one_text).equals(&read(&other_text)), one == other);
        }
    }
}

#[test]
fn of_several_members_with_one_name_the_last_counts() {
    for others in [0, SEARCHED] {
        let others: Vec<String> = (0..others).map(|number| format!(r#","{number}":0"#)).collect();
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
        let members: Vec<String> =
            (0..99).map(|number| format!(r#""name{number}":{number}"#)).collect();
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
fn text_that_is_not_json_is_a_violation() {
    let wrong = compile(&json!(true)).check_json("{").unwrap_err().to_string();
    assert!(wrong.starts_with("can't be read: "), "{wrong}");
}
