//! Values on the command line: `key=text`, `key:=json`, `key=@file`, `key:=@file`, `@file` with an object.

mod convert;
pub mod description;
mod field;

use std::{io, path::Path};

use gudgeon::protocol::{Members, Raw, json};
use serde_json::Value;

pub use self::{
    convert::{SchemaInDocument, violation},
    field::{Field, filled_in},
};
use crate::{
    failure::{Failure, FailureKind},
    files::read,
};

/// A value as given, before the schema is known.
#[derive(Clone, Debug)]
pub enum Given {
    Text(String),
    Json(Raw),
}

/// The values of one name, in the order in which they were given.
#[derive(Clone, Debug)]
pub struct Assignment {
    pub name: String,
    pub values: Vec<Given>,
    /// True if the value stands in an object that was given as a whole: a value on the command line replaces it.
    is_default: bool,
}

/// The values of a command, one entry a name, in the order of their first appearance.
#[derive(Clone, Debug, Default)]
pub struct Assignments(Vec<Assignment>);

impl Assignments {
    /// Reads words and the files that they name.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a String>) -> Result<Self, Failure> {
        let mut assignments = Self::default();
        let mut reader = Reader { has_read_stdin: false };
        for word in words {
            let file = word.strip_prefix('@').or((word == "-").then_some("-"));
            if let Some(file) = file {
                assignments.add_object(&reader.read(file)?, file)?;
            } else {
                let (name, value) = reader.assignment(word)?;
                assignments.add(name, value);
            }
        }
        Ok(assignments)
    }

    /// Returns true if a value can be converted only with the schema: a string, or one of several of a name.
    pub fn need_schema(&self) -> bool {
        self.0.iter().any(|assignment| !matches!(assignment.values[..], [Given::Json(_)]))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Assignment> {
        self.0.iter()
    }

    pub fn get(&self, name: &str) -> Option<&Assignment> {
        self.0.iter().find(|assignment| assignment.name == name)
    }

    /// Returns a JSON object with the values, converted by the object's schema.
    pub fn to_object(&self, schema: &Value) -> Result<Raw, Failure> {
        let mut object = json::ObjectWriter::with_capacity(64);
        for assignment in &self.0 {
            let name = &assignment.name;
            let converted = SchemaInDocument::member(schema, name).convert(&assignment.values);
            let value = converted.map_err(|problem| {
                let failure = Failure::usage(format!("argument '{name}': {problem}"));
                match description::line_of(schema, name) {
                    Some(line) => failure.with_hint(format!("the schema says: {line}")),
                    None => failure,
                }
            })?;
            object.raw(name, &value);
        }
        Ok(json::raw(object.finish()))
    }

    /// Returns the values as strings, for arguments that have no schema: those of prompts and completions.
    pub fn to_strings(&self) -> Result<Vec<(String, String)>, Failure> {
        let text = |assignment: &Assignment| match &assignment.values[..] {
            [Given::Text(text)] => Ok((assignment.name.clone(), text.clone())),
            [Given::Json(json)] => {
                let text = serde_json::from_str(json.get());
                Ok((assignment.name.clone(), text.unwrap_or_else(|_| json.get().to_owned())))
            }
            _ => Err(Failure::usage(format!("argument '{}' is given twice", assignment.name))),
        };
        self.0.iter().map(text).collect()
    }

    fn add(&mut self, name: String, value: Given) {
        match self.0.iter_mut().find(|assignment| assignment.name == name) {
            Some(known) if known.is_default => {
                (known.values, known.is_default) = (vec![value], false);
            }
            Some(known) => known.values.push(value),
            None => self.0.push(Assignment { name, values: vec![value], is_default: false }),
        }
    }

    fn add_object(&mut self, text: &str, file: &str) -> Result<(), Failure> {
        let place = if file == "-" { "standard input" } else { file };
        let members: Members<Raw> = serde_json::from_str(text).map_err(|error| {
            Failure::usage(format!("{place}: a JSON object is expected: {error}"))
                .with_hint("for one argument write KEY=@FILE or KEY:=@FILE")
        })?;
        for (name, value) in members.0 {
            let is_known = self.0.iter_mut().find(|assignment| assignment.name == name);
            let values = vec![Given::Json(value)];
            match is_known {
                Some(known) if known.is_default => known.values = values,
                Some(_) => (),
                None => self.0.push(Assignment { name, values, is_default: true }),
            }
        }
        Ok(())
    }
}

/// Reads words and files; standard input at most once.
struct Reader {
    has_read_stdin: bool,
}

impl Reader {
    fn assignment(&mut self, word: &str) -> Result<(String, Given), Failure> {
        let at = word.find('=').filter(|index| *index > 0).ok_or_else(|| {
            Failure::usage(format!("{word:?} is not an argument"))
                .with_hint("write KEY=VALUE, KEY:=JSON, or @FILE for a file with a JSON object")
        })?;
        let (name, value) = (&word[..at], &word[at + 1..]);
        let (name, is_json) = match name.strip_suffix(':') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let (text, place) = match value.strip_prefix('@') {
            // `@@` is an `@`.
            Some(rest) if rest.starts_with('@') => (rest.to_owned(), None),
            Some(file) => (self.read(file)?, Some(file)),
            None => (value.to_owned(), None),
        };
        if !is_json {
            return Ok((name.to_owned(), Given::Text(text)));
        }
        let value = serde_json::from_str(&text).map_err(|error| {
            let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
            Failure::usage(format!("argument '{name}': invalid JSON{place}: {error}"))
                .with_hint(format!("for a string write {name}=VALUE"))
        })?;
        Ok((name.to_owned(), Given::Json(value)))
    }

    fn read(&mut self, file: &str) -> Result<String, Failure> {
        if file != "-" {
            return read::text_file(Path::new(file), read::MAX_VALUE)
                .map_err(|error| Failure::new(FailureKind::File, format!("{file}: {error}")));
        }
        if self.has_read_stdin {
            return Err(Failure::usage("standard input is named twice"));
        }
        self.has_read_stdin = true;
        read::all(io::stdin().lock(), read::MAX_VALUE)
            .and_then(read::utf8)
            .map_err(|error| Failure::new(FailureKind::File, format!("standard input: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(words: &[&str], schema: &Value) -> Result<String, String> {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        let assignments = Assignments::parse(&words).map_err(|error| error.to_string())?;
        let object = assignments.to_object(schema).map_err(|error| error.to_string())?;
        Ok(object.get().to_owned())
    }

    #[test]
    fn the_first_equals_sign_ends_the_name() {
        let any = json!({});
        for (word, expected) in [
            ("a=1", r#"{"a":"1"}"#),
            ("a:=1", r#"{"a":1}"#),
            ("a=b:=1", r#"{"a":"b:=1"}"#),
            ("a==", r#"{"a":"="}"#),
            ("a=", r#"{"a":""}"#),
            ("a=@@ada", r#"{"a":"@ada"}"#),
            ("a:=12345678901234567890.10", r#"{"a":12345678901234567890.10}"#),
        ] {
            assert_eq!(object(&[word], &any).unwrap(), expected, "{word}");
        }
        for word in ["a", "=1", "a:=x", "a:="] {
            assert!(object(&[word], &any).is_err(), "{word}");
        }
    }

    #[test]
    fn a_name_twice_is_an_array_where_the_schema_has_one() {
        let schema = json!({"properties": {
            "tags": {"type": "array", "items": {"type": "integer"}},
            "name": {"type": "string"},
        }});
        let tags = object(&["tags=1", "name=a", "tags:=2"], &schema);
        assert_eq!(tags.unwrap(), r#"{"tags":[1,2],"name":"a"}"#);
        let twice = object(&["name=a", "name=b"], &schema).unwrap_err();
        assert!(twice.contains("'name'") && twice.contains("twice"), "{twice}");
    }
}
