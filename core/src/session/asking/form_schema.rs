//! Conversion of a JSON Schema to the schema of a form (Elicitation, "Requested Schema").
//!
//! Schemas that no form can express are left unchanged; [`check_form`](super::check_form) reports them with the fix.

use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::form::{FORMATS, Kind};
use crate::error::Error;

type Object = Map<String, Value>;

/// The property of a form for a single value.
const VALUE: &str = "value";
/// Keywords of a choice. A form has them in one notation.
const CHOOSING: [&str; 4] = ["anyOf", "const", "enum", "oneOf"];
/// Keywords that restrict values and that forms do not have: they are kept, and so reported.
const RESTRICTING: [&str; 4] = ["exclusiveMaximum", "exclusiveMinimum", "multipleOf", "pattern"];
/// Keywords that describe a value, which apply beside a choice as well.
const DESCRIBING: [&str; 3] = ["default", "description", "title"];

/// The way in which the answer to a form is read, which decides what the form may leave out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerReading {
    /// Without a check: the form has the whole schema.
    Plain,
    /// By the language's own validation: the form leaves out formats that forms do not have and keywords that
    /// restrict no value.
    Validated,
    /// By the language's own validation, with null for a missing value: the form leaves out null as well.
    Typed,
}

/// The schema of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormSchema {
    pub schema: Value,
    /// `true` if the answer is the one property `value`.
    pub is_value: bool,
}

impl FromStr for AnswerReading {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "plain" => Self::Plain,
            "validated" => Self::Validated,
            "typed" => Self::Typed,
            _ => return Err(Error::misuse(format!("no answer is read as {name:?}"))),
        })
    }
}

/// Returns the schema of the form for a schema without references.
///
/// A schema of an object with fields is asked by its fields. Any other is asked as the one property `value`, which is
/// required if `value` is `Some(true)`; if it is `None`, the schema is that of the whole form.
///
/// ```
/// # use gudgeon::session::asking::{AnswerReading, form_schema};
/// # use serde_json::json;
/// let age = json!({"type": ["integer", "null"], "exclusiveMinimum": 17});
/// let form = form_schema(&age, AnswerReading::Typed, Some(false));
/// assert_eq!(form.schema, json!({"type": "object", "properties": {"value": {"type": "integer", "minimum": 18}}}));
/// ```
pub fn form_schema(schema: &Value, reading: AnswerReading, value: Option<bool>) -> FormSchema {
    let fields = schema.get("properties").and_then(Value::as_object);
    // A type without fields is a mapping, whose keys no form can ask for.
    let is_empty = reading != AnswerReading::Typed
        && schema["type"] == "object"
        && !schema["additionalProperties"].is_object();
    let value = value.filter(|_| fields.is_none() && !is_empty);
    let form = match (value, fields) {
        (Some(is_required), _) => {
            let required = if is_required { json!([VALUE]) } else { json!([]) };
            written(&Object::from_iter([(VALUE.into(), field(schema, reading))]), &required)
        }
        (None, None) if !is_empty => schema.clone(),
        (None, fields) => {
            let fields = fields.into_iter().flatten();
            let fields = fields.map(|(name, property)| (name.clone(), field(property, reading)));
            written(&fields.collect(), &schema["required"])
        }
    };
    FormSchema { schema: form, is_value: value.is_some() }
}

fn written(fields: &Object, required: &Value) -> Value {
    let mut form = json!({"type": "object", "properties": fields});
    if !required.is_null() && *required != json!([]) {
        form["required"] = required.clone();
    }
    form
}

/// Returns a property of a form.
fn field(schema: &Value, reading: AnswerReading) -> Value {
    let Value::Object(given) = schema else { return schema.clone() };
    let present = if reading == AnswerReading::Typed { without_null(given) } else { given.clone() };
    let Some((kind, mut field)) = choice(&present).or_else(|| simple(&present)) else {
        return schema.clone();
    };
    if reading == AnswerReading::Plain {
        return field.into();
    }
    if kind == Kind::Integer {
        for (open, closed, step) in
            [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)]
        {
            if let Some(bound) = field.shift_remove(open) {
                field.insert(
                    closed.into(),
                    bound.as_i64().map_or(bound, |number| (number + step).into()),
                );
            }
        }
    }
    // Libraries write their formats as patterns as well.
    if field.contains_key("format") {
        field.shift_remove("pattern");
    }
    field.retain(|name, value| match name.as_str() {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "default" => !value.is_null(),
        name => kind.keywords().contains(&name) || RESTRICTING.contains(&name),
    });
    field.into()
}

/// Returns the schema of the values other than null.
fn without_null(schema: &Object) -> Object {
    let mut present = schema.clone();
    for name in ["anyOf", "oneOf"] {
        let Some(Value::Array(members)) = present.get_mut(name) else { continue };
        members.retain(|member| member["type"] != "null");
        if let [Value::Object(only)] = &members[..]
            && schema.keys().all(|key| key == name || DESCRIBING.contains(&key.as_str()))
        {
            let mut only = only.clone();
            only.extend(present.into_iter().filter(|(key, _)| key != name));
            return only;
        }
    }
    if let Some(Value::Array(kinds)) = present.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = &kinds[..] {
            present["type"] = only.clone();
        }
    }
    if let Some(Value::Array(values)) = present.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    present
}

/// Returns the property for a choice, or a list of choices, in the notation of forms.
fn choice(schema: &Object) -> Option<(Kind, Object)> {
    if let Some((name, choices)) = choices(schema) {
        let mut field = schema.clone();
        field.retain(|name, _| !CHOOSING.contains(&name.as_str()));
        field.insert("type".into(), "string".into());
        field.insert(name.into(), choices);
        return Some((Kind::Choice, field));
    }
    let items =
        schema.get("items").filter(|_| schema.get("type").is_some_and(|kind| kind == "array"))?;
    let items = match choices(items.as_object()?)? {
        ("oneOf", choices) => json!({"anyOf": choices}),
        (_, choices) => json!({"type": "string", "enum": choices}),
    };
    let mut field = schema.clone();
    field.insert("items".into(), items);
    Some((Kind::Choices, field))
}

/// Returns the choices as `enum`, or as `oneOf` if one of them has a title.
fn choices(schema: &Object) -> Option<(&'static str, Value)> {
    if let Some(value) = schema.get("const") {
        return value.is_string().then(|| ("enum", json!([value])));
    }
    if let Some(values) = schema.get("enum") {
        return are_texts(values).then(|| ("enum", values.clone()));
    }
    let members = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let mut choices = Vec::new();
    for member in members {
        let one = member.get("const").map(|value| json!([value]));
        let values =
            one.as_ref().or_else(|| member.get("enum")).filter(|values| are_texts(values))?;
        let title = member.get("title").or_else(|| member.get("description"));
        choices.extend(values.as_array()?.iter().map(|value| (value, title)).map(
            |(value, title)| (value.clone(), title.filter(|title| title.is_string()).cloned()),
        ));
    }
    if choices.is_empty() {
        return None;
    }
    if choices.iter().all(|(_, title)| title.is_none()) {
        return Some(("enum", choices.into_iter().map(|(value, _)| value).collect()));
    }
    let titled = |(value, title): (Value, Option<Value>)| {
        let title = title.unwrap_or_else(|| value.clone());
        json!({"const": value, "title": title})
    };
    Some(("oneOf", choices.into_iter().map(titled).collect()))
}

/// Returns the property for a type without choices.
fn simple(schema: &Object) -> Option<(Kind, Object)> {
    let kind = match schema.get("type")?.as_str()? {
        "string" => Kind::Text,
        "number" => Kind::Number,
        "integer" => Kind::Integer,
        "boolean" => Kind::Boolean,
        "array" => Kind::Choices,
        _ => return None,
    };
    Some((kind, schema.clone()))
}

fn are_texts(values: &Value) -> bool {
    values
        .as_array()
        .is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::{AnswerReading::*, *};
    use crate::session::asking::check_form;

    fn value(schema: &Value, reading: AnswerReading) -> Value {
        let form = form_schema(schema, reading, Some(true));
        assert!(form.is_value);
        form.schema["properties"][VALUE].clone()
    }

    #[test]
    fn an_object_is_asked_by_its_fields_and_any_other_value_as_one() {
        let whole = |schema: &Value, value: Option<bool>| {
            let form = form_schema(schema, Plain, value);
            (form.schema, form.is_value)
        };
        let fields = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(whole(&fields, Some(true)), (fields.clone(), false));
        let more =
            json!({"properties": {"a": {"type": "string"}}, "required": ["a"], "title": "T"});
        let form =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(whole(&more, None), (form, false));
        let flag = json!({"type": "boolean"});
        let form = json!({"type": "object", "properties": {"value": flag}});
        assert_eq!(whole(&flag, Some(false)), (form, true));
        assert_eq!(whole(&flag, None), (flag, false));
        let mapping = json!({"type": "object"});
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(whole(&mapping, Some(true)), (empty, false));
        assert_eq!(value(&mapping, Typed), mapping);
    }

    #[test]
    fn choices_have_one_notation() {
        let titled = json!([{"const": "a", "title": "A"}, {"const": "b", "title": "b"}]);
        for reading in [Plain, Validated, Typed] {
            for (schema, form) in [
                (json!({"enum": ["a", "b"]}), json!({"type": "string", "enum": ["a", "b"]})),
                (
                    json!({"const": "a", "title": "T"}),
                    json!({"type": "string", "enum": ["a"], "title": "T"}),
                ),
                (
                    json!({"anyOf": [{"const": "a"}, {"type": "string", "enum": ["b", "c"]}]}),
                    json!({"type": "string", "enum": ["a", "b", "c"]}),
                ),
                (
                    json!({"oneOf": [{"const": "a", "description": "A"}, {"const": "b"}]}),
                    json!({"type": "string", "oneOf": titled}),
                ),
                (
                    json!({"type": "array", "items": {"enum": ["a"]}, "maxItems": 2}),
                    json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 2}),
                ),
                (
                    json!({"type": "array", "items": {"oneOf": titled}}),
                    json!({"type": "array", "items": {"anyOf": titled}}),
                ),
            ] {
                assert_eq!(value(&schema, reading), form, "{reading:?}");
            }
        }
    }

    #[test]
    fn an_answer_that_is_validated_needs_no_other_keywords() {
        for (schema, form) in [
            (
                json!({"type": "string", "format": "uuid", "pattern": "^x"}),
                json!({"type": "string"}),
            ),
            (
                json!({"type": "string", "format": "date"}),
                json!({"type": "string", "format": "date"}),
            ),
            (json!({"type": "string", "examples": ["a"], "x-a": 1}), json!({"type": "string"})),
            (
                json!({"type": "integer", "minimum": -9, "exclusiveMinimum": 0, "exclusiveMaximum": 10}),
                json!({"type": "integer", "minimum": 1, "maximum": 9}),
            ),
        ] {
            assert_eq!(value(&schema, Plain), schema);
            assert_eq!(value(&schema, Validated), form);
            assert_eq!(value(&schema, Typed), form);
        }
        for kept in [
            json!({"type": "string", "pattern": "^x"}),
            json!({"type": "number", "exclusiveMinimum": 0}),
            json!({"type": "object", "properties": {}}),
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!(true),
        ] {
            let form = json!({"type": "object", "properties": {"a": kept}});
            assert_eq!(form_schema(&form, Typed, None).schema, form);
            assert!(check_form("?", &form.to_string()).is_err(), "{kept}");
        }
    }

    #[test]
    fn null_is_left_out_where_a_missing_value_becomes_null() {
        for (schema, form) in [
            (json!({"type": ["string", "null"], "default": null}), json!({"type": "string"})),
            (
                json!({"type": ["string", "null"], "enum": ["a", null]}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                json!({"anyOf": [{"oneOf": [{"const": "a"}]}, {"type": "null"}], "title": "T"}),
                json!({"type": "string", "enum": ["a"], "title": "T"}),
            ),
        ] {
            assert_eq!(value(&schema, Typed), form);
            assert_ne!(value(&schema, Validated), form);
        }
    }
}
