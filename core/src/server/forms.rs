//! Conversion of a type to the schema of a form, and of a filled-in form to the type.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::schema;
use crate::session::asking::{AnswerReading, form_schema};

/// The property of a form for a plain type.
const VALUE: &str = "value";

/// Returns the form's schema.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let whole = schema::written_out(schema::of_arguments::<T>());
    form_schema(&whole, AnswerReading::Typed, Some(!is_optional(&whole))).schema
}

/// Converts the content of a form to the type.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(content: &Value) -> Result<T, String> {
    let whole = schema::written_out(schema::of_arguments::<T>());
    let value = match properties(&whole) {
        None => content.get(VALUE).cloned().unwrap_or(Value::Null),
        Some(_) => match content {
            Value::Null => json!({}),
            content => content.clone(),
        },
    };
    // Some clients send an integer as 3.0.
    serde_json::from_value(value.clone())
        .or_else(|error| serde_json::from_value(whole_numbers(value)).map_err(|_| error))
        .map_err(|error| error.to_string())
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn is_optional(schema: &Value) -> bool {
    let is_null = |value: &Value| *value == "null" || value["type"] == "null";
    [schema.get("anyOf"), schema.get("type")]
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .any(|list| list.iter().any(is_null))
}

fn whole_numbers(value: Value) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within bounds")]
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => json!(float as i64),
            _ => Value::Number(number),
        },
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, whole_numbers(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::session::asking::check_form;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        /// As large as it gets
        Large,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct Order {
        /// how many
        count: u8,
        size: Size,
        note: Option<String>,
    }

    #[test]
    fn a_plain_type_is_one_field_and_a_struct_one_each() {
        assert_eq!(
            schema::<bool>(),
            json!({"type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"]})
        );
        let form = schema::<Order>();
        assert_eq!(form["required"], json!(["count", "size"]));
        assert_eq!(
            form["properties"]["count"],
            json!({"type": "integer", "description": "how many", "minimum": 0, "maximum": 255})
        );
        assert_eq!(
            form["properties"]["size"]["oneOf"],
            json!([{"const": "small", "title": "small"}, {"const": "large", "title": "As large as it gets"}])
        );
        assert_eq!(form["properties"]["note"], json!({"type": "string"}));
        assert_eq!(schema::<Option<String>>().get("required"), None);
    }

    #[test]
    fn what_no_form_can_ask_is_named() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Deep {
            order: Order,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        enum Either {
            Order(Order),
            Note(String),
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        enum Loose {
            Text(String),
            Number(i64),
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Coded {
            #[schemars(regex(pattern = "^a"))]
            code: String,
        }
        let problem =
            |schema: Value| check_form("Well?", &schema.to_string()).expect_err("no form");
        for (schema, message) in [
            (schema::<Deep>(), "its property \"order\" is an object, and a form asks for strings"),
            (
                schema::<Vec<i64>>(),
                "its property \"value\" is a list, which a form asks as a choice",
            ),
            (schema::<Either>(), "its property \"value\" is of several types"),
            (schema::<Loose>(), "its property \"value\" is of several types"),
            (
                schema::<Coded>(),
                "its property \"code\" has \"pattern\", which forms do not support for a string",
            ),
        ] {
            let problem = problem(schema);
            let message = format!("the form \"Well?\" can't be asked: {message}");
            assert!(problem.starts_with(&message), "{problem}");
        }
        assert_eq!(check_form("Which?", &schema::<Vec<Size>>().to_string()), Ok(()));
        assert_eq!(check_form("Which?", &schema::<Option<Size>>().to_string()), Ok(()));
    }

    #[test]
    fn answers_become_the_type() {
        assert_eq!(read::<bool>(&json!({"value": true})), Ok(true));
        assert_eq!(read::<u8>(&json!({"value": 3.0})), Ok(3));
        assert_eq!(read::<Option<String>>(&json!({})), Ok(None));
        let order = Order { count: 2, size: Size::Large, note: None };
        assert_eq!(read::<Order>(&json!({"count": 2.0, "size": "large"})), Ok(order));
        assert!(read::<bool>(&json!({"value": "yes"})).is_err());
    }
}
