//! The targets of a group: by name, as `mcpServers` of a host's configuration, or in a JSON file that holds either.

use serde_json::Value as Json;

use crate::{
    client::{ClientBuilder, Place},
    error::{
        Error, Language,
        given::{Given, Problem, Value},
    },
    protocol::json,
};

const SERVERS: &str = "mcpServers";

/// Targets as a caller gives them.
#[derive(Debug)]
pub enum Targets<T> {
    /// The path of a JSON file, which [`read_file`] reads.
    File(String),
    /// An object of targets by name.
    Named(T),
}

/// Reads the servers of a host's configuration, as JSON: an object of entries by name, also as its member `mcpServers`.
/// An entry is a URL, or an object: with `command`, and possibly `args`, `env`, `cwd` and `restart`; or with `url`, and
/// possibly `headers`. In `env` null leaves out a variable, and `"inherit"` in its place passes all variables of this
/// process. Other members are for the host and ignored.
///
/// # Errors
/// [`ErrorKind::Misuse`](crate::error::ErrorKind::Misuse) with the server's name and what is wrong in its entry.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gudgeon::Error> {
/// use gudgeon::client::{ClientGroup, read_configuration};
///
/// let text = r#"{"mcpServers": {"shelf": {"command": "no-such-program"}}}"#; // or std::fs::read_to_string(…)
/// let group = ClientGroup::connect(read_configuration(text)?).await?;
/// assert_eq!(group.errors()[0].0, "shelf");
/// # Ok(())
/// # }
/// ```
pub fn read_configuration(json: &str) -> Result<Vec<(String, ClientBuilder)>, Error> {
    let given: Json = serde_json::from_str(json)
        .map_err(|it| Error::misuse(format!("the configuration is not valid JSON: {it}")))?;
    let servers = named(Language::Rust, given).map_err(|it| Error::misuse(it.message))?;
    let entries = servers.as_object().into_iter().flatten();
    let read = |(name, entry): (&String, &Json)| {
        let place = Place::of(Language::Rust, entry)
            .map_err(|it| Error::misuse(format!("the server {name:?}: {}", it.message)))?;
        Ok((name.clone(), place.configure(ClientBuilder::new(place.target()))))
    };
    entries.map(read).collect()
}

/// Returns the targets in a value of the language. Errors if it holds none; targets themselves are not checked.
pub fn read<T: Given>(language: Language, given: T) -> Result<Targets<T>, Problem> {
    match given.value() {
        Value::Text(path) | Value::Path(path) if path.contains("://") => {
            Err(Problem::not_allowed(format!(
                "a group takes targets by name, or the path of a JSON file, not a URL; name it: {{\"name\": {path:?}}}"
            )))
        }
        Value::Text(path) | Value::Path(path) => Ok(Targets::File(path)),
        _ => named(language, given).map(Targets::Named),
    }
}

/// Returns the targets by name in the text of a JSON file, as JSON. Errors begin with `path`.
pub fn read_file(language: Language, path: &str, text: &[u8]) -> Result<String, Problem> {
    let given = json::from_bytes::<Json>(text)
        .map_err(|error| Problem::not_allowed(format!("{path} is not valid JSON: {error}")))?;
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
        let message = match language {
            Language::Rust => {
                format!("a configuration is an object of names to servers, or {{\"{SERVERS}\": …}}")
            }
            _ => format!(
                "a group takes {} of names to targets, {{\"{SERVERS}\": …}}, or the path of a JSON file that holds one",
                if language == Language::Python { "a mapping" } else { "an object" }
            ),
        };
        return Err(Problem { shows_value: true, ..Problem::wrong_type(message) });
    }
    if member(&servers, "command").is_some_and(|it| matches!(it.value(), Value::Text(_))) {
        return Err(Problem::wrong_type(
            "this is the entry of one server; name it: {\"name\": {\"command\": …}}",
        ));
    }
    let is_name = |it: &T| matches!(it.value(), Value::Text(name) if !name.is_empty());
    match servers.entries().iter().all(|(name, _)| is_name(name)) {
        true => Ok(servers),
        false => Err(Problem::wrong_type(
            "the name of a server in a group must be a string of at least one character",
        )),
    }
}

fn member<T: Given>(given: &T, name: &str) -> Option<T> {
    let mut entries = given.entries().into_iter();
    entries.find(|(key, _)| key.value() == Value::Text(name.to_owned())).map(|(_, value)| value)
}
