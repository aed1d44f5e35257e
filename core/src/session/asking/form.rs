//! Validation of forms: a flat object of strings, numbers, booleans, choices and lists of choices (Elicitation,
//! "Requested Schema").

use serde_json::{Map, Value};

use crate::wire::Wire;

pub(super) const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
const KNOWN: [&str; 4] = ["$schema", "type", "properties", "required"];
const KINDS: &str =
    "a form asks for strings, numbers, booleans, choices and lists of choices, without nesting";

/// The type of a property.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Text,
    /// One of several strings.
    Choice,
    Number,
    Integer,
    Boolean,
    /// A list of values out of several strings.
    Choices,
}

/// Checks that at least one revision supports this form, given as JSON Schema; otherwise returns the problem and the
/// fix. Used when a question is created or its type registered, before the client is known.
///
/// `name` is the message for the user, or the name of the type if the message is not known yet.
///
/// ```
/// # use gudgeon::session::asking::check_form;
/// let age = r#"{"type": "object", "properties": {"age": {"type": "integer"}}}"#;
/// assert_eq!(check_form("How old?", age), Ok(()));
/// let code = r#"{"type": "object", "properties": {"code": {"type": "string", "pattern": "^x"}}}"#;
/// let problem = check_form("Which?", code).expect_err("no form has patterns");
/// assert!(problem.starts_with(r#"the form "Which?" can't be asked: its property "code" has "pattern""#));
/// ```
pub fn check_form(name: &str, schema: &str) -> Result<(), String> {
    match serde_json::from_str(schema) {
        Ok(schema) => check(name, &schema, None),
        Err(error) => Err(unaskable(name, &format!("its schema is not valid JSON: {error}"))),
    }
}

/// Checks a form for one revision; `None`: for any revision.
pub(super) fn check(name: &str, schema: &Value, wire: Option<&Wire>) -> Result<(), String> {
    check_schema(schema, wire).map_err(|problem| unaskable(name, &problem))
}

fn unaskable(name: &str, problem: &str) -> String {
    format!("the form {name:?} can't be asked: {problem}")
}

fn check_schema(schema: &Value, wire: Option<&Wire>) -> Result<(), String> {
    let whole =
        schema.as_object().filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"));
    let properties = whole.and_then(|whole| whole.get("properties")?.as_object());
    let (Some(whole), Some(properties)) = (whole, properties) else {
        return Err(
            "its schema must be {\"type\": \"object\", \"properties\": {…}}: ask for one plain value as the only \
             property"
                .into(),
        );
    };
    if let Some(other) = whole.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!(
            "its schema has {other:?}, which forms do not support: only {} are allowed",
            listed(&KNOWN)
        ));
    }
    for (name, property) in properties {
        let place = |problem: String| format!("its property {name:?} {problem}");
        check_property(property, wire).map_err(place)?;
    }
    let required = match whole.get("required") {
        None => &[][..],
        Some(required) => required.as_array().ok_or("\"required\" must be a list of properties")?,
    };
    match required
        .iter()
        .find(|value| !value.as_str().is_some_and(|name| properties.contains_key(name)))
    {
        None => Ok(()),
        Some(unknown) => Err(format!("it requires {unknown}, which is none of its properties")),
    }
}

fn check_property(property: &Value, wire: Option<&Wire>) -> Result<(), String> {
    let property = property.as_object().ok_or_else(|| format!("is not a JSON Schema: {KINDS}"))?;
    let kind = kind(property)?;
    if kind == Kind::Choices
        && let Some(wire) = wire.filter(|wire| !wire.vocabulary.rich_forms)
    {
        return Err(format!(
            "is a list of choices, which {} does not support: ask for one choice, or for one boolean per choice",
            wire.name()
        ));
    }
    let known = kind.keywords();
    if let Some(other) = property.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!(
            "has {other:?}, which forms do not support for {}: leave it out and check the answer, or use {}",
            kind.name(),
            listed(known)
        ));
    }
    for text in ["title", "description"] {
        if property.get(text).is_some_and(|value| !value.is_string()) {
            return Err(format!("has a {text:?} that is not a string"));
        }
    }
    for count in ["minLength", "maxLength", "minItems", "maxItems"] {
        if property.get(count).is_some_and(|value| value.as_u64().is_none()) {
            return Err(format!("has a {count:?} that is not a non-negative integer"));
        }
    }
    for bound in ["minimum", "maximum"] {
        if property.get(bound).is_some_and(|value| !value.is_number()) {
            return Err(format!("has a {bound:?} that is not a number"));
        }
    }
    if let Some(format) = property.get("format")
        && !format.as_str().is_some_and(|name| FORMATS.contains(&name))
    {
        return Err(format!(
            "has the format {format}, and forms support {}: leave it out and check the answer",
            listed(&FORMATS)
        ));
    }
    let choices = choices(kind, property)?;
    match property.get("default") {
        Some(default) if !kind.takes(default, &choices) => Err(format!(
            "has the default {default}, which does not match: expected {}",
            kind.name()
        )),
        _ => Ok(()),
    }
}

fn kind(property: &Map<String, Value>) -> Result<Kind, String> {
    let is_choice = property.contains_key("enum") || property.contains_key("oneOf");
    match property.get("type") {
        Some(Value::String(name)) => match name.as_str() {
            "string" if is_choice => Ok(Kind::Choice),
            "string" => Ok(Kind::Text),
            "number" => Ok(Kind::Number),
            "integer" => Ok(Kind::Integer),
            "boolean" => Ok(Kind::Boolean),
            "array" => Ok(Kind::Choices),
            "object" => Err(format!(
                "is an object, and {KINDS}: ask for its parts as properties of their own, or in a question of their own"
            )),
            other => Err(format!("is of the type {other:?}, and {KINDS}")),
        },
        given if given.is_some_and(Value::is_array) || is_union(property) => Err(format!(
            "is of several types, and {KINDS}: choose one; what may be missing is left out of \"required\""
        )),
        _ => Err(format!("has no \"type\", and {KINDS}: give it one of them")),
    }
}

/// Returns `true` if the property has alternatives other than choices.
fn is_union(property: &Map<String, Value>) -> bool {
    let either = ["anyOf", "oneOf"].into_iter().filter_map(|name| property.get(name)?.as_array());
    either.flatten().any(|alternative| alternative.get("const").is_none())
}

/// Returns the strings to choose from.
fn choices(kind: Kind, property: &Map<String, Value>) -> Result<Vec<&str>, String> {
    match kind {
        Kind::Choice => match (property.get("enum"), property.get("oneOf")) {
            (Some(_), Some(_)) => Err("has \"enum\" beside \"oneOf\": keep one of them".into()),
            (Some(values), None) => {
                let values = plain(values)?;
                match property.get("enumNames") {
                    Some(names) if plain(names)?.len() != values.len() => {
                        Err("has another number of \"enumNames\" than of values in \"enum\"".into())
                    }
                    _ => Ok(values),
                }
            }
            (None, Some(_)) if property.contains_key("enumNames") => {
                Err("has \"enumNames\" beside \"oneOf\", which has titles itself: leave them out"
                    .into())
            }
            (None, titled_ones) => titled(titled_ones),
        },
        Kind::Choices => {
            let items = property.get("items").and_then(Value::as_object);
            let keys: Vec<_> = items.into_iter().flat_map(Map::keys).map(String::as_str).collect();
            let member = |name: &str| items.and_then(|items| items.get(name));
            match (member("enum"), member("anyOf")) {
                (Some(values), None)
                    if keys.len() == 2 && member("type").is_some_and(|kind| kind == "string") =>
                {
                    plain(values)
                }
                (None, Some(values)) if keys.len() == 1 => titled(Some(values)),
                _ => Err(
                    "is a list, which a form asks as a choice of several: its \"items\" are \
                     {\"type\": \"string\", \"enum\": […]} or {\"anyOf\": [{\"const\": …, \"title\": …}]}"
                        .into(),
                ),
            }
        }
        _ => Ok(Vec::new()),
    }
}

fn plain(values: &Value) -> Result<Vec<&str>, String> {
    let values = values.as_array().filter(|values| !values.is_empty());
    values.and_then(|values| values.iter().map(Value::as_str).collect()).ok_or_else(|| {
        "has choices that are not strings, or no choices: choices are strings".into()
    })
}

fn titled(choices: Option<&Value>) -> Result<Vec<&str>, String> {
    let choices = choices.and_then(Value::as_array).filter(|choices| !choices.is_empty());
    let value = |choice: &'_ Value| -> Option<()> {
        let choice = choice.as_object()?;
        (choice.len() == 2 && choice.get("const")?.is_string() && choice.get("title")?.is_string())
            .then_some(())
    };
    match choices {
        Some(choices) if choices.iter().all(|choice| value(choice).is_some()) => {
            Ok(choices.iter().filter_map(|choice| choice.get("const")?.as_str()).collect())
        }
        _ => Err(
            "has choices other than {\"const\": …, \"title\": …}, both strings: give every choice both, or list \
             the plain values in \"enum\""
                .into(),
        ),
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Choice => "one of several strings",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Boolean => "true or false",
            Self::Choices => "a list of several strings",
        }
    }

    pub(super) fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Text => {
                &["type", "title", "description", "minLength", "maxLength", "format", "default"]
            }
            Self::Choice => {
                &["type", "title", "description", "enum", "enumNames", "oneOf", "default"]
            }
            Self::Number | Self::Integer => {
                &["type", "title", "description", "minimum", "maximum", "default"]
            }
            Self::Boolean => &["type", "title", "description", "default"],
            Self::Choices => {
                &["type", "title", "description", "minItems", "maxItems", "items", "default"]
            }
        }
    }

    fn takes(self, default: &Value, choices: &[&str]) -> bool {
        let is_choice = |value: &Value| value.as_str().is_some_and(|text| choices.contains(&text));
        match self {
            Self::Text => default.is_string(),
            Self::Choice => is_choice(default),
            Self::Number => default.is_number(),
            Self::Integer => default.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::Boolean => default.is_boolean(),
            Self::Choices => default.as_array().is_some_and(|values| values.iter().all(is_choice)),
        }
    }
}

fn listed(words: &[&str]) -> String {
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::Revision;

    fn check_property(property: &Value, revision: Revision) -> Result<(), String> {
        let schema = json!({"type": "object", "properties": {"p": property}, "required": ["p"]});
        check_schema(&schema, Some(Wire::for_revision(revision)))
    }

    #[test]
    fn all_that_the_specification_names_can_be_asked() {
        for property in [
            json!({"type": "string"}),
            json!({"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 2, "default": "a"}),
            json!({"type": "string", "format": "email"}),
            json!({"type": "string", "format": "uri"}),
            json!({"type": "string", "format": "date"}),
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "number", "minimum": 0.5, "maximum": 2, "default": 1}),
            json!({"type": "integer", "minimum": -1, "maximum": 7, "default": 3}),
            json!({"type": "boolean", "default": false}),
            json!({"type": "string", "enum": ["a", "b"], "default": "b"}),
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}),
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}),
        ] {
            for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
                assert_eq!(check_property(&property, revision), Ok(()), "{property}");
            }
        }
        for list in [
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2, "default": ["b"]}),
            json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
        ] {
            assert_eq!(check_property(&list, Revision::V2025_11_25), Ok(()));
            assert_eq!(check_property(&list, Revision::V2026_07_28), Ok(()));
            assert_eq!(
                check_form("?", &json!({"type": "object", "properties": {"p": list}}).to_string()),
                Ok(())
            );
            let problem =
                check_property(&list, Revision::V2025_06_18).expect_err("no words for it");
            assert!(
                problem.starts_with(
                    "its property \"p\" is a list of choices, which 2025-06-18 does not support"
                ),
                "{problem}"
            );
        }
        let nothing = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}});
        assert_eq!(check_schema(&nothing, None), Ok(()));
    }

    #[test]
    fn what_forms_do_not_know_is_named_with_its_property_and_the_mend() {
        for (property, problem) in [
            (
                json!({"type": "string", "pattern": "^a"}),
                "has \"pattern\", which forms do not support for a string",
            ),
            (json!({"type": "number", "exclusiveMinimum": 0}), "has \"exclusiveMinimum\""),
            (json!({"type": "number", "multipleOf": 2}), "has \"multipleOf\""),
            (
                json!({"type": "boolean", "enum": [true]}),
                "has \"enum\", which forms do not support for true or false",
            ),
            (json!({"type": "string", "enum": ["a"], "minLength": 1}), "has \"minLength\""),
            (
                json!({"type": "string", "format": "uuid"}),
                "has the format \"uuid\", and forms support email, uri",
            ),
            (
                json!({"type": "object", "properties": {}}),
                "is an object, and a form asks for strings",
            ),
            (json!({"type": ["string", "null"]}), "is of several types"),
            (json!({"anyOf": [{"type": "string"}]}), "is of several types"),
            (json!({"oneOf": [{"const": "a", "title": "A"}]}), "has no \"type\""),
            (json!({"description": "any"}), "has no \"type\""),
            (json!({"type": "null"}), "is of the type \"null\""),
            (json!(true), "is not a JSON Schema"),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                "is a list, which a form asks as a choice",
            ),
            (json!({"type": "array"}), "is a list, which a form asks as a choice"),
            (json!({"type": "array", "items": {"type": "integer", "enum": [1]}}), "is a list"),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": true}),
                "has \"uniqueItems\"",
            ),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["b"]}),
                "has the default [\"b\"]",
            ),
            (
                json!({"type": "string", "enum": []}),
                "has choices that are not strings, or no choices",
            ),
            (json!({"type": "string", "enum": [1]}), "has choices that are not strings"),
            (
                json!({"type": "string", "enum": ["a"], "enumNames": []}),
                "has choices that are not strings",
            ),
            (
                json!({"type": "string", "enum": ["a"], "enumNames": ["A", "B"]}),
                "has another number of \"enumNames\"",
            ),
            (
                json!({"type": "string", "enum": ["a"], "oneOf": []}),
                "has \"enum\" beside \"oneOf\"",
            ),
            (json!({"type": "string", "oneOf": [{"const": "a"}]}), "has choices other than"),
            (
                json!({"type": "string", "oneOf": [], "enumNames": ["a"]}),
                "has \"enumNames\" beside \"oneOf\"",
            ),
            (
                json!({"type": "string", "default": 1}),
                "has the default 1, which does not match: expected a string",
            ),
            (json!({"type": "integer", "default": 1.5}), "has the default 1.5"),
            (json!({"type": "string", "enum": ["a"], "default": "b"}), "has the default \"b\""),
            (
                json!({"type": "string", "minLength": -1}),
                "has a \"minLength\" that is not a non-negative integer",
            ),
            (json!({"type": "number", "minimum": "0"}), "has a \"minimum\" that is not a number"),
            (json!({"type": "string", "title": 1}), "has a \"title\" that is not a string"),
        ] {
            for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
                let message = check_property(&property, revision).expect_err(&property.to_string());
                assert!(
                    message.starts_with(&format!("its property \"p\" {problem}")),
                    "{property}: {message}"
                );
            }
        }
    }

    #[test]
    fn a_form_is_a_flat_object() {
        for (schema, problem) in [
            (json!(null), "its schema must be {\"type\": \"object\""),
            (json!({"type": "boolean"}), "its schema must be"),
            (json!({"type": "object"}), "its schema must be"),
            (
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
                "its schema has \"additionalProperties\"",
            ),
            (
                json!({"type": "object", "properties": {}, "required": ["p"]}),
                "it requires \"p\", which is none",
            ),
            (
                json!({"type": "object", "properties": {}, "required": "p"}),
                "\"required\" must be a list",
            ),
        ] {
            let message = check_schema(&schema, None).expect_err("no form");
            assert!(message.starts_with(problem), "{message}");
        }
        let message = check_form("A \"form\"?", "{").expect_err("no JSON");
        assert!(
            message.starts_with(
                r#"the form "A \"form\"?" can't be asked: its schema is not valid JSON"#
            ),
            "{message}"
        );
    }
}
