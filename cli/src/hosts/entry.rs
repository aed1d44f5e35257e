//! Entries in the files of hosts: each host writes one in its own form. The core reads them.

pub use gudgeon::client::configuration::Entry;
use gudgeon::client::configuration::add_variables;
use serde_json::{Map, Value, json};

use super::{Environment, Host, Source};
use crate::failure::Failure;

/// The members of an entry, in any host's spelling, that say how a server is reached. Others are the user's settings.
const OWN_MEMBERS: [&str; 14] = [
    "type",
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "source",
];

/// Returns an entry in the form of a host. Errors if the host's file takes no URLs, or does not know `"env": "inherit"`.
pub fn written(entry: &Entry, host: &Host) -> Result<Map<String, Value>, Failure> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
    match entry {
        Entry::Command {
            program,
            arguments,
            environment,
            inherits,
            env_file,
            folder,
            restarts: _,
        } => {
            if *inherits {
                let message = format!("{} does not know \"env\": \"inherit\"", host.title);
                return Err(Failure::usage(message)
                    .with_hint("name the variables in \"env\", as an object of strings"));
            }
            if let Some(kind) = host.command_type {
                put("type", kind.into());
            }
            put("command", program.as_str().into());
            put("args", json!(arguments));
            if !environment.is_empty() {
                put("env", object(environment));
            }
            if let Some(file) = env_file.as_ref().filter(|_| host.env_file) {
                put("envFile", file.as_str().into());
            }
            if let Some(folder) = folder {
                put("cwd", folder.as_str().into());
            }
        }
        Entry::Url { url, headers } => {
            let Some(form) = &host.url else {
                let message = format!("the configuration file of {} takes no URLs", host.title);
                return Err(Failure::usage(message).with_hint(
                    "add a remote server as a connector, in the application's settings",
                ));
            };
            if let Some(kind) = form.kind {
                put("type", kind.into());
            }
            put(form.url, url.as_str().into());
            if !headers.is_empty() {
                put(form.headers, object(headers));
            }
        }
    }
    if let Ok(Value::Object(extra)) = serde_json::from_str(host.extra) {
        members.extend(extra);
    }
    Ok(members)
}

/// Returns an entry in the form of a host, with the user's settings of the entry that it replaces.
pub fn written_over(
    entry: &Entry,
    host: &Host,
    old: &Value,
) -> Result<Map<String, Value>, Failure> {
    let mut members = written(entry, host)?;
    for (name, value) in old.as_object().into_iter().flatten() {
        if !OWN_MEMBERS.contains(&name.as_str()) {
            members.insert(name.clone(), value.clone());
        }
    }
    Ok(members)
}

/// Returns the entry for the file of another host: with the absolute path of the file with variables, or with its variables if
/// that host reads no such file. Errors with what is wrong in the file.
pub fn moved(
    entry: &Entry,
    host: &Host,
    source: &Source,
    environment: &Environment,
) -> Result<Entry, String> {
    let mut entry = entry.clone();
    if let Entry::Command { environment: variables, env_file, .. } = &mut entry
        && let Some(file) = env_file.take()
    {
        // The other host replaces references itself.
        if host.env_file && file.contains("${") {
            *env_file = Some(file);
            return Ok(entry);
        }
        let resolver = source.resolver(environment);
        let path =
            source.env_file(&resolver, &file).map_err(|problem| format!("envFile: {problem}"))?;
        match path.to_str() {
            Some(path) if host.env_file => *env_file = Some(path.to_owned()),
            _ => add_variables(variables, &path)?,
        }
    }
    Ok(entry)
}

fn object(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use gudgeon::error::Language;

    use super::*;

    #[test]
    fn an_entry_is_read_back_from_every_hosts_form() {
        let pair = |name: &str| vec![(name.to_owned(), "v".to_owned())];
        let mut command = Entry::command("npx", ["-y", "a b"]);
        if let Entry::Command { environment, .. } = &mut command {
            *environment = pair("KEY");
        }
        let url = Entry::Url { url: "https://a/mcp".into(), headers: pair("X-Tenant") };
        for host in super::super::HOSTS {
            for entry in [&command, &url] {
                match written(entry, host) {
                    Ok(members) => {
                        let read = Entry::read(Language::Rust, &Value::Object(members));
                        assert_eq!(read.as_ref(), Ok(entry));
                    }
                    Err(error) => assert!(host.url.is_none(), "{}: {error}", host.name),
                }
            }
        }
    }
}
