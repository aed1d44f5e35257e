//! Schemas: an `s` line is compiled, each `v` line after it is checked against it.

use gudgeon::schema::{Checked, MAX_TEXT, Schema, closed, portable};
use serde_json::{Value, value::RawValue};

use crate::script::steps;

pub(super) const SEEDS: &[&str] = &[
    r##"s {"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"$ref":"#/$defs/b"}},"required":["a"],"$defs":{"b":{"enum":["x",null]}},"additionalProperties":false}
v {"a":1,"b":"x"}
v {"a":"1"}
v {"a":0,"c":[]}"##,
    r#"s {"$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"type":"string","pattern":"^(?=a)a+(?!b)\\1$","format":"uri"},{"type":"array","items":[{"const":1}],"uniqueItems":true,"contains":{"multipleOf":0.1}}]}
v "aaaaaaaaaaaaaaaaaaaaaaaaaaa"
v [1,1.0,1e0]
v 123456789012345678901234567890"#,
    r##"s {"$dynamicAnchor":"n","type":"object","patternProperties":{"^(a|aa)+$":{"$dynamicRef":"#n"}},"propertyNames":{"maxLength":3},"unevaluatedProperties":{"oneOf":[{"type":"number"},{"not":{}}]},"if":{"minProperties":1},"then":{"dependentRequired":{"a":["b"]}},"dependentSchemas":{"b":false}}
v {"a":{"a":{"a":{}}},"b":1}
v {"\u0000":1.5,"a":{}}"##,
];

pub(super) fn run(input: &[u8]) {
    let mut schema: Option<Schema> = None;
    for (name, argument) in steps(input).take(40) {
        let Ok(text) = std::str::from_utf8(argument) else { continue };
        match (name, &schema) {
            (b's', _) => schema = compile(text),
            (b'v', Some(schema)) => check(schema, text),
            _ => (),
        }
    }
}

fn compile(text: &str) -> Option<Schema> {
    let schema = Schema::compile(text).ok();
    let again = Schema::compile(text).ok();
    assert_eq!(schema.is_some(), again.is_some(), "compiled once only");
    if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(text) {
        let _ = closed(raw);
    }
    // The form for hosts that follow no references is a schema as well.
    if let (Some(_), Ok(Value::Object(object))) = (&schema, serde_json::from_str(text))
        && let Ok(portable) = portable(&object)
    {
        let text = Value::Object(portable).to_string();
        if let Err(error) = Schema::compile(&text) {
            assert!(text.len() > MAX_TEXT / 100, "{error}: {text}");
        }
    }
    schema
}

fn check(schema: &Schema, text: &str) {
    let from_text = schema.check_json(text);
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let from_value = schema.check(&value);
        assert_eq!(
            from_text.is_ok(),
            from_value.is_ok(),
            "{from_text:?} as text, {from_value:?} as value"
        );
        assert_eq!(schema.check(&value).is_ok(), from_value.is_ok(), "checked twice");
    } else {
        assert!(from_text.is_err(), "no JSON is valid");
    }
    match schema.check_arguments(text) {
        Ok(Checked::Decoded(decoded)) => {
            assert!(from_text.is_err(), "what is valid is not decoded");
            schema.check_json(&decoded).expect("decoded arguments are valid");
            assert!(!decoded.contains('\n'));
        }
        outcome => {
            assert_eq!(outcome.is_ok(), from_text.is_ok(), "arguments are checked as values are");
        }
    }
}
