//! The targets of a group: by name, as `mcpServers` of a host's configuration, or in a JSON file that holds either.

use serde_json::Value as Json;

use super::{
    client_target::{refused, wrong},
    options::{Given, Problem, Value},
};
use crate::error::Language;

const SERVERS: &str = "mcpServers";

/// Targets as a caller gives them.
#[derive(Debug)]
pub enum Targets<T> {
    /// The path of a JSON file, which [`read_file`] reads.
    File(String),
    /// An object of targets by name.
    Named(T),
}

/// Returns the targets in a value of the language. Errors if it holds none; targets themselves are not checked.
pub fn read<T: Given>(language: Language, given: T) -> Result<Targets<T>, Problem> {
    match given.value() {
        Value::Text(path) | Value::Path(path) if path.contains("://") => Err(refused(format!(
            "a group takes targets by name, or the path of a JSON file, not a URL; name it: {{\"name\": {path:?}}}"
        ))),
        Value::Text(path) | Value::Path(path) => Ok(Targets::File(path)),
        _ => named(language, given).map(Targets::Named),
    }
}

/// Returns the targets by name in the text of a JSON file, as JSON. Errors begin with `path`.
pub fn read_file(language: Language, path: &str, text: &[u8]) -> Result<String, Problem> {
    let given = serde_json::from_slice::<Json>(text)
        .map_err(|error| refused(format!("{path} is not valid JSON: {error}")))?;
    let named = named(language, given).map_err(|it| Problem {
        message: format!("{path}: {}", it.message),
        shows_value: false,
        ..it
    })?;
    Ok(named.to_string())
}

fn named<T: Given>(language: Language, given: T) -> Result<T, Problem> {
    let servers = member(&given, SERVERS).unwrap_or(given);
    if servers.value() != Value::Object {
        let mapping = if language == Language::Python { "a mapping" } else { "an object" };
        let message = format!(
            "a group takes {mapping} of names to targets, {{\"{SERVERS}\": …}}, or the path of a JSON file that holds one"
        );
        return Err(Problem { shows_value: true, ..wrong(message) });
    }
    if member(&servers, "command").is_some_and(|it| matches!(it.value(), Value::Text(_))) {
        return Err(wrong(
            "this is the entry of one server; name it: {\"name\": {\"command\": …}}",
        ));
    }
    let is_name = |it: &T| matches!(it.value(), Value::Text(name) if !name.is_empty());
    match servers.entries().iter().all(|(name, _)| is_name(name)) {
        true => Ok(servers),
        false => {
            Err(wrong("the name of a server in a group must be a string of at least one character"))
        }
    }
}

fn member<T: Given>(given: &T, name: &str) -> Option<T> {
    let mut entries = given.entries().into_iter();
    entries.find(|(key, _)| key.value() == Value::Text(name.to_owned())).map(|(_, value)| value)
}
