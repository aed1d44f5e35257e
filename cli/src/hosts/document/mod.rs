//! A configuration file: its servers, and edits that leave everything else as it is.

mod json;
pub mod toml;

use std::{io, path::Path};

use serde_json::{Map, Value};

use super::{Syntax, masked};
use crate::{
    failure::{Failure, FailureKind},
    files::read,
};

/// The text of a configuration file whose syntax was checked.
#[derive(Debug)]
pub struct Document {
    text: String,
    syntax: Syntax,
    /// The member that holds the servers by name.
    servers: &'static str,
    /// `true` if there is a file.
    exists: bool,
}

impl Document {
    /// Reads a file; a file that does not exist is an empty document. Errors with the line and the column at which its
    /// syntax is wrong.
    pub fn open(
        path: &Path,
        project: Option<&Path>,
        syntax: Syntax,
        servers: &'static str,
    ) -> Result<Self, Failure> {
        let file = |message: String| {
            Failure::new(FailureKind::File, format!("{}: {message}", path.display()))
        };
        let (text, exists) = match read::configuration(path, project) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| {
                    let at = error.utf8_error().valid_up_to();
                    file(format!("the file is not UTF-8 at byte {at}"))
                        .with_hint("the file was not changed; save it as UTF-8")
                })?;
                (text, true)
            }
            Err(error) if is_missing(&error) => (String::new(), false),
            Err(error) => return Err(file(format!("the file cannot be read: {error}"))),
        };
        let document = Self { text, syntax, servers, exists };
        document.read().map_err(|error| {
            file(error).with_hint("the file was not changed; correct it, then repeat the command")
        })?;
        Ok(document)
    }

    pub fn exists(&self) -> bool {
        self.exists
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns all values of the file, as JSON.
    pub fn value(&self) -> Value {
        self.read().unwrap_or_default()
    }

    /// Returns the servers by name, in the order of the file.
    pub fn entries(&self) -> Map<String, Value> {
        match self.value() {
            Value::Object(mut members) => match members.remove(self.servers) {
                Some(Value::Object(entries)) => entries,
                _ => Map::new(),
            },
            _ => Map::new(),
        }
    }

    /// Returns the text with an entry that was added or replaced.
    pub fn with(&self, name: &str, entry: &Map<String, Value>) -> Result<Self, Failure> {
        let text = match self.syntax {
            Syntax::Toml => toml::with(&self.text, self.servers, name, entry),
            syntax => json::with(&self.text, syntax, self.servers, name, entry),
        };
        self.edited(text)
    }

    /// Returns the text without an entry.
    pub fn without(&self, name: &str) -> Result<Self, Failure> {
        let text = match self.syntax {
            Syntax::Toml => toml::without(&self.text, self.servers, name),
            syntax => json::without(&self.text, syntax, self.servers, name),
        };
        self.edited(text)
    }

    /// Returns the text as far as it may be shown when this server is changed.
    pub fn masked(&self, server: &str) -> String {
        let shown = masked::document(self.value(), self.servers, server);
        let text = match self.syntax {
            Syntax::Toml => toml::with_values(&self.text, &shown),
            syntax => json::with_values(&self.text, syntax, &shown),
        };
        // The syntax was checked, so the document can be read again.
        text.unwrap_or_default()
    }

    fn edited(&self, text: Result<String, String>) -> Result<Self, Failure> {
        let text = text.map_err(|error| Failure::new(FailureKind::File, error))?;
        Ok(Self { text, exists: true, ..*self })
    }

    fn read(&self) -> Result<Value, String> {
        let value = match self.syntax {
            Syntax::Toml => toml::read(&self.text)?,
            syntax => json::read(&self.text, syntax)?,
        };
        let Value::Object(members) = &value else {
            return Err("line 1, column 1: the file must hold an object".to_owned());
        };
        match members.get(self.servers) {
            None | Some(Value::Object(_)) => Ok(value),
            Some(_) => Err(format!("{:?} must be an object of servers by name", self.servers)),
        }
    }
}

/// Returns whether there is no file. A path below a file is one that cannot exist, and is not reported as missing.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests;
