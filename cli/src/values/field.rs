//! Fields of a server's form, and the values that they are given.

use gudgeon::{error::Error, schema::Schema};
use serde_json::Value;

use super::{Given, Place, description};

/// A field of a form.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    pub name: &'a str,
    pub place: Place<'a>,
    pub is_required: bool,
}

impl<'a> Field<'a> {
    pub fn all(form: &'a Value) -> impl Iterator<Item = Self> {
        let required = form.get("required").and_then(Value::as_array);
        let members = form.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(move |(name, schema)| Self {
            name,
            place: Place { root: form, schema },
            is_required: required.is_some_and(|it| it.iter().any(|it| it == name)),
        })
    }

    pub fn default(&self) -> Option<&'a Value> {
        self.place.schema.get("default")
    }

    pub fn needs_answer(&self) -> bool {
        self.is_required && self.default().is_none()
    }

    /// Converts the answer on the command line.
    pub fn given(&self, values: &[Given]) -> Result<String, Error> {
        let answer = self.place.convert(values).and_then(|it| self.checked(it));
        answer.map_err(|problem| {
            let line = description::line_with(self.name, self.place, self.is_required);
            let message =
                format!("--answer {}: {problem}; the server's form says: {line}", self.name);
            Error::misuse(message)
        })
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

/// Returns `true` or `false` for the usual words, where a boolean is asked for.
pub fn yes_or_no<'a>(schema: &Value, line: &'a str) -> &'a str {
    if schema.get("type").is_none_or(|it| it != "boolean") {
        return line;
    }
    match line.to_lowercase().as_str() {
        "y" | "yes" | "true" => "true",
        "n" | "no" | "false" => "false",
        _ => line,
    }
}
