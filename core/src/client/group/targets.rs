//! The targets of a group: by name, as a host's configuration, or in a JSON file that holds either.

use std::path::Path;

use serde_json::{Map, Value as Json};

use crate::{
    client::configuration::{read_given, read_text, servers_in},
    error::{
        Language,
        given::{Given, Problem, Value},
    },
};

/// Targets as a caller gives them.
#[derive(Debug)]
pub enum Targets<T> {
    /// The path of a JSON file, which [`read_file`] reads.
    File(String),
    /// An object of targets by name.
    Named {
        targets: T,
        /// Targets that replace those of the same names, as JSON by name: the entries of a host's configuration, with the
        /// values of their variables.
        read: String,
    },
}

/// Returns the targets in a value of the language. References to variables are replaced in a host's configuration only:
/// a program that names targets itself can get the values itself.
///
/// Errors if the value holds no targets, and if the entry of a configuration is wrong; other targets are not checked.
pub fn read<T: Given>(language: Language, given: T) -> Result<Targets<T>, Problem> {
    match given.value() {
        Value::Text(path) | Value::Path(path) if path.contains("://") => {
            Err(Problem::not_allowed(format!(
                "a group takes targets by name, or the path of a JSON file, not a URL; name it: {{\"name\": {path:?}}}"
            )))
        }
        Value::Text(path) | Value::Path(path) => Ok(Targets::File(path)),
        _ => {
            let (targets, is_configuration) = servers_in(language, given)?;
            let read = match is_configuration {
                true => read_given(language, &targets)?,
                false => Map::new(),
            };
            Ok(Targets::Named { targets, read: Json::Object(read).to_string() })
        }
    }
}

/// Returns the targets by name in the text of a JSON file, as JSON. Errors begin with `path`.
pub fn read_file(language: Language, path: &str, text: &[u8]) -> Result<String, Problem> {
    let folder = Path::new(path).parent().unwrap_or(Path::new("")).to_path_buf();
    let servers = read_text(language, path, text, folder)?;
    let named: Map<_, _> = servers.into_iter().map(|(name, entry, _)| (name, entry)).collect();
    Ok(Json::Object(named).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TYPESCRIPT: Language = Language::TypeScript;

    #[test]
    fn references_are_replaced_in_a_configuration_only() {
        let servers = json!({ "a": { "command": "${GUDGEON_UNSET:-b}" }, "c": 3 });
        for member in ["mcpServers", "servers", "mcp_servers", "context_servers"] {
            let given = read(TYPESCRIPT, json!({ member: servers, "theme": "dark" })).unwrap();
            let Targets::Named { targets, read } = given else { panic!() };
            assert_eq!(targets, servers);
            assert!(read.starts_with(r#"{"a":{"#) && read.contains(r#""command":"b""#), "{read}");
        }
        let Ok(Targets::Named { targets, read }) = read(TYPESCRIPT, servers.clone()) else {
            panic!()
        };
        assert_eq!((targets, read.as_str()), (servers, "{}"));
    }

    #[test]
    fn a_server_of_a_group_may_have_the_name_of_a_member() {
        for given in [
            json!({ "servers": "http://a" }),
            json!({ "servers": { "url": "http://a" } }),
            json!({ "context_servers": { "command": "a" } }),
        ] {
            let Ok(Targets::Named { targets, .. }) = read(TYPESCRIPT, given.clone()) else {
                panic!()
            };
            assert_eq!(targets, given);
        }
    }

    #[test]
    fn a_file_with_variables_is_beside_the_configuration() {
        let folder = std::env::temp_dir().join(format!("gudgeon-targets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(".env"), "A=1\nB=2\n").unwrap();
        let path = folder.join("mcp.json");
        let entry = json!({ "command": "x", "env": { "A": "0" }, "envFile": ".env" });
        let text = json!({ "a": entry }).to_string();
        let read = read_file(TYPESCRIPT, path.to_str().unwrap(), text.as_bytes()).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        assert!(read.contains(r#""env":{"A":"0","B":"2"}"#), "{read}");
    }
}
