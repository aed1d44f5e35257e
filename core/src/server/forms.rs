//! A type → the flat form that a client can show, and what was filled in → the type.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::schema;

/// The one property of a form that asks for a plain type.
const VALUE: &str = "value";
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
/// What forms don't know is told to the core as well, which says so.
const KEPT: [&str; 16] = [
    "title",
    "description",
    "default",
    "enum",
    "enumNames",
    "oneOf",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "pattern",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// The form's schema, or why no form can ask for this type.
pub(super) fn of<T: JsonSchema>() -> Result<Value, String> {
    let whole = schema::written_out(schema::of_arguments::<T>());
    let problem = |at: &str| {
        let name = T::schema_name();
        format!(
            "a form can't ask for {name}{at}: it has texts, numbers, booleans, choices and lists of choices only"
        )
    };
    let Some(properties) = properties(&whole) else {
        let field = field(&whole).ok_or_else(|| problem(""))?;
        let required = if is_optional(&whole) { json!([]) } else { json!([VALUE]) };
        return Ok(json!({"type": "object", "properties": {VALUE: field}, "required": required}));
    };
    let mut fields = Map::new();
    for (name, property) in properties {
        let field = field(property).ok_or_else(|| problem(&format!(" (its field {name:?})")))?;
        fields.insert(name.clone(), field);
    }
    let required = whole.get("required").cloned().unwrap_or_else(|| json!([]));
    Ok(json!({"type": "object", "properties": fields, "required": required}))
}

/// What was filled in, in its type.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(content: &Value) -> Result<T, String> {
    let whole = schema::written_out(schema::of_arguments::<T>());
    let value = match properties(&whole) {
        None => content.get(VALUE).cloned().unwrap_or(Value::Null),
        Some(_) => match content {
            Value::Null => json!({}),
            content => content.clone(),
        },
    };
    // Some clients answer a whole number as 3.0.
    serde_json::from_value(value.clone())
        .or_else(|error| serde_json::from_value(whole_numbers(value)).map_err(|_| error))
        .map_err(|error| error.to_string())
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// One field of a form, in the few words that forms have.
fn field(schema: &Value) -> Option<Value> {
    let schema = present(schema)?;
    let mut field = Map::new();
    let named = match &schema["type"] {
        Value::String(name) => Some(name.as_str()),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|it| *it != "null"),
        _ => None,
    };
    let choices = schema.get("oneOf").and_then(Value::as_array);
    let kind = match named {
        Some(kind @ ("string" | "integer" | "number" | "boolean" | "array")) => kind,
        None if choices.is_some() || schema.get("enum").is_some() => "string",
        _ => return None,
    };
    field.insert("type".into(), kind.into());
    for name in KEPT {
        if let Some(value) = schema.get(name).filter(|it| !it.is_null()) {
            field.insert(name.into(), value.clone());
        }
    }
    if let Some(format) = schema["format"].as_str().filter(|it| FORMATS.contains(it)) {
        field.insert("format".into(), format.into());
    }
    if let Some(values) = field.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(Value::is_string);
    }
    if let Some(choices) = choices {
        field.insert("oneOf".into(), Value::Array(titled(choices)?));
    }
    if kind == "array" {
        let item = field_of_items(&schema["items"])?;
        field.insert("items".into(), item);
    }
    Some(Value::Object(field))
}

/// What an `Option` holds.
fn present(schema: &Value) -> Option<&Value> {
    match schema.get("anyOf").and_then(Value::as_array) {
        None => Some(schema),
        Some(either) => either.iter().find(|it| it["type"] != "null"),
    }
}

fn is_optional(schema: &Value) -> bool {
    let is_null = |it: &Value| *it == "null" || it["type"] == "null";
    [schema.get("anyOf"), schema.get("type")]
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .any(|it| it.iter().any(is_null))
}

/// Choices with what is shown for each: a doc comment, or the value.
fn titled(choices: &[Value]) -> Option<Vec<Value>> {
    let mut titled = Vec::new();
    for choice in choices {
        match (choice["const"].as_str(), choice["enum"].as_array()) {
            (Some(value), _) => {
                let title =
                    choice["title"].as_str().or(choice["description"].as_str()).unwrap_or(value);
                titled.push(json!({"const": value, "title": title}));
            }
            (None, Some(values)) => {
                for value in values {
                    titled.push(json!({"const": value, "title": value}));
                }
            }
            _ => return None,
        }
    }
    Some(titled)
}

fn field_of_items(items: &Value) -> Option<Value> {
    if let Some(values) = items.get("enum") {
        return Some(json!({"type": "string", "enum": values}));
    }
    let choices = items.get("oneOf").and_then(Value::as_array)?;
    Some(json!({"anyOf": titled(choices)?}))
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
            of::<bool>(),
            Ok(
                json!({"type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"]})
            )
        );
        let form = of::<Order>().expect("plain fields");
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
        assert_eq!(of::<Option<String>>().expect("plain")["required"], json!([]));
    }

    #[test]
    fn what_no_form_can_ask_is_named() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Deep {
            order: Order,
        }
        let problem = of::<Deep>().expect_err("not flat");
        assert!(problem.contains("Deep (its field \"order\")"), "{problem}");
        assert!(of::<Vec<i64>>().is_err());
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
