//! Fields of a server's form, and the values that they are given.

use gudgeon::{
    protocol::{Raw, json},
    schema::Schema,
};
use serde_json::Value;

use super::{Assignments, Given, SchemaInDocument, description};
use crate::failure::Failure;

/// A field of a form.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    pub name: &'a str,
    pub place: SchemaInDocument<'a>,
    pub is_required: bool,
}

impl<'a> Field<'a> {
    pub fn all(form: &'a Value) -> impl Iterator<Item = Self> {
        let required = form.get("required").and_then(Value::as_array);
        let members = form.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(move |(name, schema)| Self {
            name,
            place: SchemaInDocument { root: form, schema },
            is_required: required.is_some_and(|names| names.iter().any(|known| known == name)),
        })
    }

    pub fn default(&self) -> Option<&'a Value> {
        self.place.schema.get("default")
    }

    pub fn needs_answer(&self) -> bool {
        self.is_required && self.default().is_none()
    }

    /// Converts the values that a command line gives. Errors with the reason if they do not fit.
    pub fn given(&self, values: &[Given]) -> Result<String, String> {
        match values {
            [Given::Text(text)] => self.converted(text),
            values => self.place.convert(values).and_then(|value| self.checked(value)),
        }
    }

    /// Converts a string. Errors with the reason if it does not fit.
    pub fn converted(&self, text: &str) -> Result<String, String> {
        let text = yes_or_no(self.place.schema, text);
        self.place.convert_text(text).and_then(|value| self.checked(value))
    }

    /// Describes the field on one line.
    pub fn line(&self) -> String {
        description::line_with(self.name, self.place, self.is_required)
    }

    /// Checks a value against the field's schema.
    pub fn checked(&self, json: String) -> Result<String, String> {
        // A schema that can't be used is the server's to enforce.
        let Ok(schema) = Schema::compile(&self.place.schema.to_string()) else { return Ok(json) };
        match schema.check_json(&json) {
            Ok(()) => Ok(json),
            Err(violation) => Err(violation.to_string()),
        }
    }
}

/// Returns the content of an answer to a form, converted by the form. Errors if a value has no field or does not fit its
/// field, or if a field needs one.
pub fn filled_in(form: &Value, values: &Assignments) -> Result<Raw, Failure> {
    let mut content = json::ObjectWriter::with_capacity(64);
    for assignment in values.iter() {
        let name = &assignment.name;
        let Some(field) = Field::all(form).find(|field| field.name == name) else {
            let names: Vec<_> = Field::all(form).map(|field| field.name).collect();
            let failure = Failure::usage(format!("the form has no field '{name}'"));
            return Err(match names.is_empty() {
                true => failure.with_hint("it has no fields: leave the values out"),
                false => failure.with_hint(format!("its fields are {}", names.join(", "))),
            });
        };
        let value = field.given(&assignment.values).map_err(|problem| {
            Failure::usage(format!("field '{name}': {problem}"))
                .with_hint(format!("the form says: {}", field.line()))
        })?;
        content.raw(name, &value);
    }
    if let Some(field) =
        Field::all(form).find(|field| field.needs_answer() && values.get(field.name).is_none())
    {
        return Err(Failure::usage(format!("field '{}' is missing", field.name))
            .with_hint(format!("the form says: {}", field.line())));
    }
    Ok(json::raw(content.finish()))
}

/// Returns `true` or `false` for the usual words, where a boolean is asked for.
fn yes_or_no<'a>(schema: &Value, line: &'a str) -> &'a str {
    if schema.get("type").is_none_or(|kind| kind != "boolean") {
        return line;
    }
    match line.to_lowercase().as_str() {
        "y" | "yes" | "true" => "true",
        "n" | "no" | "false" => "false",
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json as value;

    use super::*;

    fn form() -> Value {
        value!({ "type": "object", "required": ["copies"], "properties": {
            "copies": { "type": "integer", "minimum": 1, "description": "How many" },
            "price": { "type": "number" },
            "gift": { "type": "boolean", "default": false },
            "cover": { "type": "string", "enum": ["hard", "soft"] },
            "size": { "oneOf": [{ "const": "s", "title": "Small" }] },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
        } })
    }

    fn content(words: &[&str]) -> Result<String, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let values = Assignments::parse(&words).map_err(|error| error.to_string())?;
        filled_in(&form(), &values)
            .map(|content| content.get().to_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_get_the_type_of_their_field() {
        let words =
            ["copies=2", "price=1.5", "gift=Yes", "cover=hard", "size=s", "tags=a", "tags=b"];
        let expected =
            r#"{"copies":2,"price":1.5,"gift":true,"cover":"hard","size":"s","tags":["a","b"]}"#;
        assert_eq!(content(&words).as_deref(), Ok(expected));
        assert_eq!(content(&["copies:=3"]).as_deref(), Ok(r#"{"copies":3}"#));
    }

    #[test]
    fn wrong_values_name_their_field_and_show_its_line() {
        let line = "the form says: copies  integer, at least 1, required  How many";
        for (words, parts) in [
            (&["copies=two"][..], &["field 'copies': expected an integer, got \"two\"", line][..]),
            (&["copies=0"], &["field 'copies'", line]),
            (&["copies=1", "copies=2"], &["field 'copies': is given twice", line]),
            (&["price=NaN"], &["field 'price': expected a number"]),
            (&["gift=perhaps"], &["field 'gift': expected a boolean", "default false"]),
            (&["cover=thin"], &["field 'cover'", "one of \"hard\", \"soft\""]),
            (&["gift=no"], &["field 'copies' is missing", line]),
            (&["colour=red"], &["no field 'colour'", "copies, price, gift, cover, size, tags"]),
            (&["copies"], &["KEY=VALUE"]),
            (&["copies:=x"], &["'copies': invalid JSON"]),
        ] {
            let error = content(words).expect_err(words[0]);
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
