//! The servers of a configuration.

use std::path::PathBuf;

use serde_json::{Map, Value as Json};

use super::{Entry, JsonForm, Notation, Resolver, URLS, parse};
use crate::{
    client::{ClientBuilder, ConfiguredTarget},
    error::{
        Error, Language,
        given::{Given, Problem, Value},
    },
};

/// The members of configurations that hold the servers by name: of most hosts, VS Code, Codex and Zed.
pub const SERVERS: [&str; 4] = ["mcpServers", "servers", "mcp_servers", "context_servers"];

/// The members that make an object an entry.
const ENTRY: [&str; 4] = ["command", URLS[0], URLS[1], URLS[2]];

/// The levels of an object that are read.
const MAX_DEPTH: usize = 8;

/// Reads the servers of a host's configuration, as JSON: an object of entries by name, also as its member `mcpServers` or
/// `servers`. Comments, commas after the last element and a byte order mark are allowed.
///
/// An entry is a URL, or an object: with `command`, and possibly `args`, `env`, `envFile`, `cwd` and `restart`; or with `url`
/// (also `httpUrl` and `serverUrl`), and possibly `headers`. In `env` null leaves out a variable, and `"inherit"` in its place
/// passes all variables of this process. `envFile` is a file with a line `NAME=VALUE` for each variable. Other members are for
/// the host and ignored.
///
/// In these strings `${NAME}` and `${env:NAME}` have the value of an environment variable of this process, and
/// `${NAME:-default}` has a default for one that is not set or empty. A default may hold references; a value is used as it is.
/// `${userHome}` is the home folder, and `${workspaceFolder}`, in which relative paths of `envFile` begin, the current folder.
///
/// # Errors
/// [`ErrorKind::Misuse`](crate::error::ErrorKind::Misuse) with the line and the column at which the text is not JSON, or with
/// the server's name, the member and what is wrong with it, such as a variable without a value. The text may have 64 MiB and
/// 127 levels, defaults may be nested 16 levels deep, and the values of all variables may have 4 MiB together.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gudgeon::Error> {
/// use gudgeon::client::{ClientGroup, read_configuration};
///
/// // or std::fs::read_to_string(…)
/// let text = r#"{"mcpServers": {
///     "shelf": {"command": "${SHELF:-no-such-program}"}, // the library
/// }}"#;
/// let group = ClientGroup::connect(read_configuration(text)?).await?;
/// assert_eq!(group.errors()[0].0, "shelf");
/// # Ok(())
/// # }
/// ```
pub fn read_configuration(json: &str) -> Result<Vec<(String, ClientBuilder)>, Error> {
    let servers = read_text(Language::Rust, "the configuration", json.as_bytes(), PathBuf::new());
    let servers = servers.map_err(|problem| Error::misuse(problem.message))?;
    Ok(servers.into_iter().map(|(name, _, place)| (name, place.builder())).collect())
}

/// Returns the servers in a text: their names, their entries without references as JSON, and their targets. `at` names the
/// text in errors, and `folder` is that of its file.
pub(in crate::client) fn read_text(
    language: Language,
    at: &str,
    text: &[u8],
    folder: PathBuf,
) -> Result<Vec<(String, Json, ConfiguredTarget)>, Problem> {
    let within = |problem: Problem| Problem {
        message: format!("{at}: {}", problem.message),
        shows_value: false,
        ..problem
    };
    let given = parse(text, JsonForm::Commented).map_err(Problem::not_allowed).map_err(within)?;
    let servers = servers_in(language, given).map_err(within)?.0;
    let resolver = Resolver::of_process(Notation::All, folder);
    let entries = servers.as_object().into_iter().flatten();
    let read = |(name, entry): (&String, &Json)| {
        let (entry, place) = read_entry(language, name, entry, &resolver).map_err(within)?;
        Ok((name.clone(), entry, place))
    };
    entries.map(read).collect()
}

/// Returns the servers of a configuration that a caller gives as an object: their names, and their entries without references
/// as JSON. Others than URLs and entries are left out.
pub(in crate::client) fn read_given<T: Given>(
    language: Language,
    servers: &T,
) -> Result<Map<String, Json>, Problem> {
    let resolver = Resolver::of_process(Notation::All, PathBuf::new());
    let mut read = Map::new();
    for (name, entry) in servers.entries() {
        if let (Value::Text(name), Some(entry)) = (name.value(), to_json(&entry, 0))
            && (entry.is_string() || ENTRY.iter().any(|name| entry.get(name).is_some()))
        {
            let (entry, _) = read_entry(language, &name, &entry, &resolver)?;
            read.insert(name, entry);
        }
    }
    Ok(read)
}

/// Returns the object of servers by name in a value, and `true` if it is a host's whole configuration. Errors if there is none;
/// the servers themselves are not checked.
pub(in crate::client) fn servers_in<T: Given>(
    language: Language,
    given: T,
) -> Result<(T, bool), Problem> {
    let inner = SERVERS.iter().find_map(|name| {
        let servers = member(&given, name)?;
        // A server of a group may have one of the other names.
        let is_server = || servers.value() != Value::Object || has_text(&servers, &ENTRY);
        (*name == SERVERS[0] || !is_server()).then_some(servers)
    });
    let is_configuration = inner.is_some();
    let servers = inner.unwrap_or(given);
    if servers.value() != Value::Object {
        let (first, second) = (SERVERS[0], SERVERS[1]);
        let message = match language {
            Language::Rust => {
                format!(
                    "a configuration is an object of names to servers, or {{\"{first}\": …}} or {{\"{second}\": …}}"
                )
            }
            _ => format!(
                "a group takes {} of names to targets, {{\"{first}\": …}}, or the path of a JSON file that holds one",
                super::object_of(language)
            ),
        };
        return Err(Problem { shows_value: true, ..Problem::wrong_type(message) });
    }
    if has_text(&servers, &ENTRY[..1]) {
        return Err(Problem::wrong_type(
            "this is the entry of one server; name it: {\"name\": {\"command\": …}}",
        ));
    }
    let is_name = |name: &T| matches!(name.value(), Value::Text(name) if !name.is_empty());
    match servers.entries().iter().all(|(name, _)| is_name(name)) {
        true => Ok((servers, is_configuration)),
        false => Err(Problem::wrong_type(
            "the name of a server in a group must be a string of at least one character",
        )),
    }
}

/// Reads the entry of a server and replaces its references. Errors begin with the server's name.
fn read_entry(
    language: Language,
    name: &str,
    entry: &Json,
    resolver: &Resolver<'_>,
) -> Result<(Json, ConfiguredTarget), Problem> {
    let read = || {
        let entry = match entry {
            Json::String(url) => Entry::Url { url: url.clone(), headers: Vec::new() },
            entry => Entry::read(language, entry)?,
        };
        let entry = entry.resolve(resolver).map_err(Problem::not_allowed)?;
        let place = ConfiguredTarget::from_entry(language, &entry)?;
        Ok((entry.to_json(), place))
    };
    read().map_err(|problem: Problem| Problem {
        message: format!("the server {name:?}: {}", problem.message),
        ..problem
    })
}

/// Returns `true` if an object has one of these members and it is a string.
fn has_text<T: Given>(given: &T, names: &[&str]) -> bool {
    let is_text = |name: &&str| {
        member(given, name).is_some_and(|value| matches!(value.value(), Value::Text(_)))
    };
    names.iter().any(is_text)
}

fn member<T: Given>(given: &T, name: &str) -> Option<T> {
    let mut entries = given.entries().into_iter();
    entries.find(|(key, _)| key.value() == Value::Text(name.to_owned())).map(|(_, value)| value)
}

/// Returns a value as JSON; `None` if it is not made of JSON's values, or nested too deep.
fn to_json<T: Given>(given: &T, depth: usize) -> Option<Json> {
    if depth > MAX_DEPTH {
        return None;
    }
    Some(match given.value() {
        Value::Absent => Json::Null,
        Value::Boolean(value) => value.into(),
        #[expect(clippy::cast_possible_truncation, reason = "an integer beyond has no other form")]
        Value::Integer(value) => (value as i64).into(),
        Value::Fraction(value) => value.into(),
        Value::Text(value) | Value::Path(value) => value.into(),
        Value::List => {
            let items = given.items();
            items.iter().map(|item| to_json(item, depth + 1)).collect::<Option<Json>>()?
        }
        Value::Object => {
            let entries = given.entries();
            let entry = |(key, value): &(T, T)| match key.value() {
                Value::Text(key) => Some((key, to_json(value, depth + 1)?)),
                _ => None,
            };
            Json::Object(entries.iter().map(entry).collect::<Option<Map<_, _>>>()?)
        }
        Value::Bytes | Value::Function | Value::Other => return None,
    })
}
