//! Closing a schema: no properties beside those that it names.

use serde_json::Value;

use crate::protocol::{Raw, json::to_raw};

/// Keywords of an object's schema that already say which other properties are allowed.
const DECIDED: [&str; 3] = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
/// Keywords by which schemas elsewhere name properties of the same object.
const COMBINING: [&str; 9] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "dependencies",
    "not",
];

/// Returns an object's schema that refuses properties it does not name. A schema that names no properties, or says itself
/// which others it allows, is returned as it is.
pub fn closed(schema: Raw) -> Raw {
    let Ok(Value::Object(mut members)) = serde_json::from_str(schema.get()) else { return schema };
    let names_properties = members.get("properties").is_some_and(Value::is_object);
    if !names_properties || DECIDED.iter().any(|keyword| members.contains_key(*keyword)) {
        return schema;
    }
    let keyword = match COMBINING.iter().any(|keyword| members.contains_key(*keyword)) {
        true => "unevaluatedProperties",
        false => "additionalProperties",
    };
    members.insert(keyword.to_owned(), Value::Bool(false));
    to_raw(&members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_names_its_properties_is_closed() {
        for (open, keyword) in [
            (json!({"properties": {}}), "additionalProperties"),
            (
                json!({"type": "object", "properties": {"a": true}, "required": ["a"]}),
                "additionalProperties",
            ),
            (json!({"properties": {"a": true}, "$ref": "#/$defs/b"}), "unevaluatedProperties"),
        ] {
            let mut expected = open.clone();
            expected[keyword] = json!(false);
            assert_eq!(closed(to_raw(&open)).get(), expected.to_string());
        }
    }

    #[test]
    fn a_schema_that_decides_by_itself_stays_as_it_is() {
        for schema in [
            json!({"type": "object"}),
            json!({"properties": {}, "additionalProperties": true}),
            json!({"properties": {}, "unevaluatedProperties": {"type": "string"}}),
            json!({"properties": {}, "patternProperties": {"^x": true}}),
            json!(true),
        ] {
            assert_eq!(closed(to_raw(&schema)).get(), schema.to_string());
        }
    }
}
