//! Answers to forms, written as KEY=VALUE and KEY:=JSON.

use serde_json::{Map, Value};

use crate::failure::Failure;

/// Reads values, converting them by the schema of a form. The same key several times makes a list.
pub fn values(schema: Option<&Value>, words: &[String]) -> Result<Map<String, Value>, Failure> {
    let properties = schema.and_then(|it| it.get("properties")).and_then(Value::as_object);
    let mut values = Map::new();
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, text)) if name.ends_with(':') => {
                let name = name.trim_end_matches(':');
                let value = serde_json::from_str(text).map_err(|it| {
                    Failure::usage(format!("the value of {name:?} is not valid JSON: {it}"))
                })?;
                (name, value)
            }
            Some((name, text)) => {
                let field = properties.and_then(|it| it.get(name));
                (name, converted(name, field, text)?)
            }
            None => {
                let message = format!("{word:?} is no value: KEY=VALUE or KEY:=JSON");
                return Err(Failure::usage(message));
            }
        };
        if let Some(properties) = properties
            && !properties.contains_key(name)
        {
            let names: Vec<_> = properties.keys().map(String::as_str).collect();
            let message =
                format!("the form has no field {name:?}; its fields: {}", names.join(", "));
            return Err(Failure::usage(message));
        }
        match (values.get_mut(name), value) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (Some(_), _) => return Err(Failure::usage(format!("{name:?} is given twice"))),
            (None, value) => drop(values.insert(name.to_owned(), value)),
        }
    }
    Ok(values)
}

/// Describes the fields of a form, one line each.
pub fn fields(schema: Option<&Value>) -> Vec<String> {
    let Some(schema) = schema else { return Vec::new() };
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|it| it.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let describe = |(name, field): (&String, &Value)| {
        let text = |name: &str| field.get(name).and_then(Value::as_str);
        let mut line = format!("{name}: {}", kind(field));
        if !required.contains(&name.as_str()) {
            line.push_str(", optional");
        }
        if let Some(default) = field.get("default") {
            line.extend([", default ", &default.to_string()]);
        }
        if let Some(told) = text("description").or_else(|| text("title")) {
            line.extend([". ", told]);
        }
        line
    };
    properties.into_iter().flatten().map(describe).collect()
}

/// Returns the type of a field, or its choices.
fn kind(field: &Value) -> String {
    if let Some(choices) = choices(field) {
        return format!("one of {}", choices.join(", "));
    }
    if let Some(choices) = field.get("items").and_then(choices) {
        return format!("some of {}", choices.join(", "));
    }
    let format = field.get("format").and_then(Value::as_str);
    format.or_else(|| field.get("type").and_then(Value::as_str)).unwrap_or("any value").to_owned()
}

fn choices(field: &Value) -> Option<Vec<String>> {
    let list = |name: &str| field.get(name).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        return Some(values.iter().map(shown).collect());
    }
    let titled = list("oneOf").or_else(|| list("anyOf"))?;
    let values: Vec<_> = titled.iter().filter_map(|it| it.get("const")).map(shown).collect();
    (!values.is_empty()).then_some(values)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn converted(name: &str, field: Option<&Value>, text: &str) -> Result<Value, Failure> {
    let wrong =
        |expected: &str| Err(Failure::usage(format!("{name:?} must be {expected}, not {text:?}")));
    match field.and_then(|it| it.get("type")).and_then(Value::as_str) {
        Some("integer") => match text.parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => wrong("an integer"),
        },
        Some("number") => match text.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
            Some(number) => Ok(Value::Number(number)),
            None => wrong("a number"),
        },
        Some("boolean") => match &*text.to_ascii_lowercase() {
            "true" | "yes" | "y" | "1" => Ok(true.into()),
            "false" | "no" | "n" | "0" => Ok(false.into()),
            _ => wrong("yes or no"),
        },
        Some("array") => Ok(Value::Array(vec![text.into()])),
        _ => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Value {
        json!({ "type": "object", "required": ["copies"], "properties": {
            "copies": { "type": "integer", "description": "How many" },
            "price": { "type": "number" },
            "gift": { "type": "boolean", "default": false },
            "cover": { "type": "string", "enum": ["hard", "soft"] },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
        } })
    }

    fn read(words: &[&str]) -> Result<Value, String> {
        let words: Vec<_> = words.iter().map(|it| (*it).to_owned()).collect();
        values(Some(&form()), &words).map(Value::Object).map_err(|it| it.message().to_owned())
    }

    #[test]
    fn values_get_the_type_of_their_field() {
        let read = read(&["copies=2", "price=1.5", "gift=yes", "cover=hard", "tags=a", "tags=b"]);
        let expected =
            json!({ "copies": 2, "price": 1.5, "gift": true, "cover": "hard", "tags": ["a", "b"] });
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn wrong_values_name_their_field() {
        for (word, problem) in [
            ("copies=two", "\"copies\" must be an integer"),
            ("price=NaN", "\"price\" must be a number"),
            ("gift=perhaps", "\"gift\" must be yes or no"),
            ("colour=red", "no field \"colour\"; its fields: copies"),
            ("copies", "KEY=VALUE"),
            ("copies:=x", "\"copies\" is not valid JSON"),
        ] {
            let error = read(&[word]).expect_err(word);
            assert!(error.contains(problem), "{error}");
        }
        assert!(read(&["copies=1", "copies=2"]).expect_err("twice").contains("given twice"));
    }

    #[test]
    fn fields_are_described() {
        assert_eq!(
            fields(Some(&form())),
            [
                "copies: integer. How many",
                "price: number, optional",
                "gift: boolean, optional, default false",
                "cover: one of hard, soft, optional",
                "tags: some of a, b, optional",
            ]
        );
    }
}
