//! Text to JSON, by the types that a schema accepts.

use std::collections::VecDeque;

use gudgeon::schema;
use serde_json::Value;

use super::{Given, description};

/// The number of references that are followed in a row.
const FOLLOWED: usize = 16;
/// The number of schemas that are looked at to find the types of a value.
const VISITED: usize = 256;

/// A schema inside a document that its references point into.
#[derive(Clone, Copy, Debug)]
pub struct SchemaInDocument<'a> {
    pub root: &'a Value,
    pub schema: &'a Value,
}

/// The types and values that a schema accepts.
#[derive(Debug, Default)]
struct Accepted<'a> {
    types: Vec<&'a str>,
    /// Of `enum` and `const`.
    values: Vec<&'a Value>,
    items: Option<&'a Value>,
}

impl<'a> SchemaInDocument<'a> {
    /// Returns the schema of a member of an object; an empty one if the object's schema does not describe it.
    pub fn member(root: &'a Value, name: &str) -> Self {
        let object = Self { root, schema: root }.resolved();
        let properties = object.schema.get("properties");
        let schema = properties.and_then(|properties| properties.get(name));
        let rest = || object.schema.get("additionalProperties").filter(|schema| schema.is_object());
        Self { root, schema: schema.or_else(rest).unwrap_or(&Value::Null) }
    }

    pub fn at(self, schema: &'a Value) -> Self {
        Self { schema, ..self }
    }

    /// Follows `$ref`.
    pub fn resolved(self) -> Self {
        let mut place = self;
        for _ in 0..FOLLOWED {
            let reference = place.schema.get("$ref").and_then(Value::as_str);
            let root = self.root.as_object();
            let Some(target) =
                reference.zip(root).and_then(|(reference, root)| target(root, reference))
            else {
                break;
            };
            place = self.at(target);
        }
        place
    }

    /// Converts the values of one name. Errors with the reason.
    pub fn convert(self, given: &[Given]) -> Result<String, String> {
        match given {
            [Given::Json(json)] => Ok(json.get().to_owned()),
            [Given::Text(text)] => self.convert_text(text),
            several => {
                let accepted = self.accepted();
                if !accepted.types.contains(&"array") {
                    return Err(
                        format!("is given {} times", several.len()).replace("2 times", "twice")
                    );
                }
                let items = self.at(accepted.items.unwrap_or(&Value::Null));
                let items: Result<Vec<_>, _> = several
                    .iter()
                    .map(|given| items.convert(std::slice::from_ref(given)))
                    .collect();
                Ok(format!("[{}]", items?.join(",")))
            }
        }
    }

    /// Converts a string to JSON. A schema that accepts strings, or has no type, makes a string of it.
    pub fn convert_text(self, text: &str) -> Result<String, String> {
        let accepted = self.accepted();
        let spelled = |value: &&&Value| match value {
            Value::String(known) => known == text,
            other => other.to_string() == text,
        };
        if let Some(value) = accepted.values.iter().find(spelled) {
            return Ok(value.to_string());
        }
        let takes = |name| accepted.types.contains(&name);
        let parsed = || serde_json::from_str::<Value>(text).ok();
        if accepted.types.is_empty() || takes("string") {
            return Ok(quoted(text));
        }
        let is_json = match parsed() {
            Some(Value::Number(_)) => {
                let is_whole = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
                takes("number") || (takes("integer") && is_whole)
            }
            Some(Value::Bool(_)) => takes("boolean"),
            Some(Value::Null) => takes("null"),
            Some(Value::Array(_)) => takes("array"),
            Some(Value::Object(_)) => takes("object"),
            // Numbers that are too large for this program are not too large for every server.
            None => takes("number") && is_number(text),
            Some(Value::String(_)) => false,
        };
        if is_json {
            return Ok(text.trim().to_owned());
        }
        if takes("array") {
            let item = self.at(accepted.items.unwrap_or(&Value::Null)).convert_text(text)?;
            return Ok(format!("[{item}]"));
        }
        Err(format!("expected {}, got {}", description::with_article(self), quoted(text)))
    }

    /// Collects the types and values of the schema and its alternatives, nearest first.
    fn accepted(self) -> Accepted<'a> {
        let mut accepted = Accepted::default();
        let mut waiting = VecDeque::from([self]);
        for _ in 0..VISITED {
            let Some(place) = waiting.pop_front() else { break };
            let place = place.resolved();
            accepted.add(place.schema);
            for keyword in ["anyOf", "oneOf", "allOf"] {
                let schemas = place.schema.get(keyword).and_then(Value::as_array);
                waiting.extend(schemas.into_iter().flatten().map(|schema| place.at(schema)));
            }
        }
        if accepted.types.is_empty() {
            accepted.types.extend(accepted.values.iter().map(|value| type_of(value)));
        }
        accepted
    }
}

impl<'a> Accepted<'a> {
    fn add(&mut self, schema: &'a Value) {
        match schema.get("type") {
            Some(Value::String(name)) => self.types.push(name),
            Some(Value::Array(names)) => self.types.extend(names.iter().filter_map(Value::as_str)),
            _ => (),
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            self.values.extend(values);
        }
        self.values.extend(schema.get("const"));
        if self.items.is_none() {
            self.items = schema.get("items");
        }
    }
}

/// Returns the schema that a reference within the same document points to.
fn target<'a>(root: &'a serde_json::Map<String, Value>, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let mut tokens = pointer.strip_prefix('/')?.split('/');
    let decoded = |token: &str| token.replace("~1", "/").replace("~0", "~");
    let first = root.get(&decoded(tokens.next()?))?;
    tokens.try_fold(first, |value, token| match value {
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        value => value.get(decoded(token)),
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-')
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the reason why arguments do not fit the schema of an object, and the lines of the schema that say so.
pub fn violation(schema: &Value, arguments: &str) -> Option<(String, Vec<String>)> {
    let compiled = schema::Schema::compile(&schema.to_string()).ok()?;
    // A server's patterns may take long; then only the server checks.
    if compiled.is_slow() {
        return None;
    }
    let violation = compiled.check_json(arguments).err()?.with_subject(schema::Subject::Argument);
    let mut lines = Vec::new();
    for place in violation.places() {
        lines.extend(description::line_of(schema, place).filter(|line| !lines.contains(line)));
    }
    Some((violation.to_string(), lines))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn convert(schema: &Value, text: &str) -> Result<String, String> {
        SchemaInDocument { root: schema, schema }.convert_text(text)
    }

    #[test]
    fn a_text_becomes_what_the_schema_accepts() {
        for (schema, text, json) in [
            (json!({"type": "integer"}), "1", "1"),
            (json!({"type": "integer"}), "-12345678901234567890123", "-12345678901234567890123"),
            (json!({"type": "number"}), "1e5", "1e5"),
            (json!({"type": "number"}), "1e999", "1e999"),
            (json!({"type": "boolean"}), "true", "true"),
            (json!({"type": "string"}), "1", r#""1""#),
            (json!({"type": ["integer", "null"]}), "null", "null"),
            (json!({"type": ["string", "null"]}), "null", r#""null""#),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "7", "7"),
            (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), "7", r#""7""#),
            (json!({"enum": [1, "b"]}), "1", "1"),
            (json!({"enum": [1, "b"]}), "b", r#""b""#),
            (json!({"enum": ["1", "2"]}), "1", r#""1""#),
            (json!({"type": "array", "items": {"type": "integer"}}), "5", "[5]"),
            (json!({"type": "array", "items": {"type": "integer"}}), "[5, 6]", "[5, 6]"),
            (json!({"type": "array"}), "x", r#"["x"]"#),
            (json!({"type": "object"}), r#"{"a": 1}"#, r#"{"a": 1}"#),
            (json!({}), "1", r#""1""#),
            (json!(true), "1", r#""1""#),
            (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), "3", "3"),
        ] {
            assert_eq!(convert(&schema, text).as_deref(), Ok(json), "{schema} {text}");
        }
    }

    #[test]
    fn a_text_that_does_not_fit_names_what_is_expected() {
        for (schema, text, expected) in [
            (json!({"type": "integer"}), "x", r#"expected an integer, got "x""#),
            (json!({"type": "integer"}), "1.5", r#"expected an integer, got "1.5""#),
            (json!({"type": "boolean"}), "yes", r#"expected a boolean, got "yes""#),
            (json!({"type": "object"}), "x", r#"expected an object, got "x""#),
            (json!({"type": ["integer", "null"]}), "x", r#"expected an integer or null, got "x""#),
        ] {
            assert_eq!(convert(&schema, text).unwrap_err(), expected, "{schema} {text}");
        }
    }

    #[test]
    fn references_to_themselves_end() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert_eq!(convert(&schema, "x").as_deref(), Ok(r#""x""#));
        let schema = json!({"$ref": "#/$defs/a",
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}}});
        assert_eq!(convert(&schema, "1").as_deref(), Ok("1"));
    }

    #[test]
    fn a_violation_names_the_argument_and_its_line() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "The first number"},
        }});
        let (message, lines) = violation(&schema, r#"{"a":0}"#).unwrap();
        assert!(message.contains("argument 'a'"), "{message}");
        assert_eq!(lines, ["a  integer, at least 1, required  The first number"]);
        let (message, _) = violation(&schema, "{}").unwrap();
        assert_eq!(message, "missing argument 'a'");
        assert!(violation(&schema, r#"{"a":1}"#).is_none());
    }
}
