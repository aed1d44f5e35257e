//! The configuration of the authentication, with the keys that are in files.

use std::{
    io,
    path::{Path, PathBuf, absolute},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{AuthServer, small_file, watched_files};
use crate::{
    auth::server::{
        api_keys::{self, KeysOfOwners},
        config::AuthConfig,
    },
    error::Error,
};

/// Reads the configuration, and the files of keys that it names. Errors, with the fix, if a method can't work or a file can't be
/// used.
pub fn auth_config(json: &[u8]) -> Result<AuthConfig, Error> {
    let Ok(mut config) = serde_json::from_slice::<Value>(json) else {
        return AuthConfig::parse(json);
    };
    let mut files = Vec::new();
    let methods = config.get_mut("methods").and_then(Value::as_array_mut).into_iter().flatten();
    for (place, method) in methods.enumerate().filter(|(_, method)| method["kind"] == "apiKeys") {
        let file = method.as_object_mut().and_then(|members| members.remove("file"));
        let Some(file) = file.as_ref().and_then(Value::as_str).map(PathBuf::from) else { continue };
        if method["keys"].as_array().is_some_and(|keys| !keys.is_empty()) {
            return Err(Error::misuse("auth: give API keys or a file of keys, not both"));
        }
        let file = absolute(&file).unwrap_or(file);
        method["keys"] = json!(read_api_keys(&file)?);
        files.push((place, file));
    }
    let config = AuthConfig::parse(config.to_string().as_bytes())?;
    Ok(config.with_files(files))
}

/// Replaces the keys that are in files whenever these change.
pub(super) fn watch(server: &Arc<AuthServer>, files: &[(usize, PathBuf)]) {
    for (place, file) in files.iter().cloned() {
        watched_files::watch(&[&file.clone()], server, move |server| {
            let replaced = server.set_api_keys(place, read_api_keys(&file)?);
            replaced.map_err(|problem| unusable(&file, &problem))
        });
    }
}

fn read_api_keys(file: &Path) -> Result<KeysOfOwners, Error> {
    let text = small_file::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => unusable(file, &error.to_string()),
    })?;
    api_keys::parse(&text).map_err(|problem| unusable(file, &problem))
}

/// A key that is given where a path is expected must not get into a log.
fn missing() -> Error {
    Error::misuse(
        "auth: the file of keys does not exist; its path is not shown, because it may be a key",
    )
    .with_hint("give the path of a file, or the keys with their owners")
}

fn unusable(file: &Path, problem: &str) -> Error {
    Error::misuse(format!("auth: the file of keys {} can't be used: {problem}", file.display()))
        .with_hint(r#"write a JSON object of keys and their owners: {"sha256:…": "ada"}"#)
}
