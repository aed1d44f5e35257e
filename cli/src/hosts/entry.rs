//! Entries: servers in the form of a host's configuration.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{Environment, Host, Source, dotenv, variables};
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

/// A server: a command, or the address of one that runs.
#[derive(Clone, Eq, PartialEq)]
pub enum Entry {
    Command {
        program: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
        /// The path of a file with more variables.
        env_file: Option<String>,
        folder: Option<String>,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
    },
}

impl Entry {
    /// Returns the entry in the form of a host. Errors if the host's file takes no URLs.
    pub fn write(&self, host: &Host) -> Result<Map<String, Value>, Failure> {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        match self {
            Self::Command { program, arguments, environment, env_file, folder } => {
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
            Self::Url { url, headers } => {
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
            entry.extend(extra);
        }
        Ok(entry)
    }

    /// Returns the entry in the form of a host, with the user's settings of the entry that it replaces.
    pub fn write_over(&self, host: &Host, old: &Value) -> Result<Map<String, Value>, Failure> {
        let mut entry = self.write(host)?;
        for (name, value) in old.as_object().into_iter().flatten() {
            if !OWN_MEMBERS.contains(&name.as_str()) {
                entry.insert(name.clone(), value.clone());
            }
        }
        Ok(entry)
    }

    /// Returns all strings in which variables may be referred to.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (own, pairs) = match self {
            Self::Command { program, arguments, environment, env_file, folder } => {
                let mut own = vec![program.as_str()];
                own.extend(arguments.iter().chain(env_file).chain(folder).map(String::as_str));
                (own, environment)
            }
            Self::Url { url, headers } => (vec![url.as_str()], headers),
        };
        own.into_iter().chain(pairs.iter().map(|(_, value)| value.as_str()))
    }

    /// Reads an entry in any host's form; references to variables are kept. Errors with what is wrong in it.
    pub fn read(entry: &Value) -> Result<Self, String> {
        let Value::Object(entry) = entry else {
            return Err("an entry must be an object".to_owned());
        };
        let member = |name: &str| entry.get(name).filter(|it| !it.is_null());
        if let Some(command) = member("command") {
            // Zed once wrote the program, its arguments and variables into one object.
            let (command, inner) = match command {
                Value::Object(inner) => (inner.get("path").unwrap_or(&Value::Null), inner),
                command => (command, entry),
            };
            let program = command.as_str().filter(|it| !it.is_empty());
            let program = program.ok_or("\"command\" must be a program's name or path")?;
            return Ok(Self::Command {
                program: program.to_owned(),
                arguments: strings(inner.get("args"), "args")?,
                environment: pairs(inner.get("env"), "env")?,
                env_file: member("envFile").map(|it| text(it, "envFile")).transpose()?,
                folder: member("cwd").map(|it| text(it, "cwd")).transpose()?,
            });
        }
        for name in ["httpUrl", "serverUrl", "url"] {
            let Some(url) = member(name) else { continue };
            let mut headers = pairs(member("headers"), "headers")?;
            headers.extend(pairs(member("http_headers"), "http_headers")?);
            for (header, variable) in pairs(member("env_http_headers"), "env_http_headers")? {
                headers.push((header, format!("${{env:{variable}}}")));
            }
            if let Some(variable) = member("bearer_token_env_var") {
                let variable = text(variable, "bearer_token_env_var")?;
                headers.push(("Authorization".to_owned(), format!("Bearer ${{env:{variable}}}")));
            }
            return Ok(Self::Url { url: text(url, name)?, headers });
        }
        Err("an entry needs \"command\" or \"url\"".to_owned())
    }

    /// Returns the entry for the file of another host: with the absolute path of the file with variables, or with its
    /// variables if that host reads no such file. Errors with what is wrong in the file.
    pub fn moved(
        &self,
        host: &Host,
        source: &Source,
        environment: &Environment,
    ) -> Result<Self, String> {
        let mut entry = self.clone();
        if let Self::Command { environment: variables, env_file, .. } = &mut entry
            && let Some(file) = env_file.take()
        {
            // The other host replaces references itself.
            if host.env_file && file.contains("${") {
                *env_file = Some(file);
                return Ok(entry);
            }
            let path = env_file_path(&file, source, environment)?;
            match path.to_str() {
                Some(path) if host.env_file => *env_file = Some(path.to_owned()),
                _ => add_variables(variables, &path)?,
            }
        }
        Ok(entry)
    }

    /// Replaces the references to variables in all strings, and reads the file with variables. Errors with the member and
    /// what is wrong.
    pub fn resolve(&self, source: &Source, environment: &Environment) -> Result<Self, String> {
        let workspace = source.workspace(environment);
        let resolve = |text: &str, member: &str| {
            // Headers from variables of Codex are written in the notation of editors by `read`.
            let notation = match source.host {
                Some(host) if host.name == "codex" && member.starts_with("headers") => {
                    variables::Variables::Editor
                }
                _ => source.variables(),
            };
            variables::resolve(notation, text, workspace, environment)
                .map_err(|it| format!("{member}: {it}"))
        };
        let pairs = |pairs: &[(String, String)], member: &str| {
            let resolved = pairs.iter().map(|(name, value)| {
                Ok((name.clone(), resolve(value, &format!("{member}.{name}"))?))
            });
            resolved.collect::<Result<Vec<_>, String>>()
        };
        Ok(match self {
            Self::Command { program, arguments, environment: variables, env_file, folder } => {
                let mut variables = pairs(variables, "env")?;
                if let Some(file) = env_file {
                    add_variables(&mut variables, &env_file_path(file, source, environment)?)?;
                }
                Self::Command {
                    program: resolve(program, "command")?,
                    arguments: arguments
                        .iter()
                        .map(|it| resolve(it, "args"))
                        .collect::<Result<_, _>>()?,
                    environment: variables,
                    env_file: None,
                    folder: folder.as_ref().map(|it| resolve(it, "cwd")).transpose()?,
                }
            }
            Self::Url { url, headers } => {
                Self::Url { url: resolve(url, "url")?, headers: pairs(headers, "headers")? }
            }
        })
    }

    /// Returns the entry as the core's client reads it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Command { program, arguments, environment, folder, .. } => json!({
                "command": program,
                "args": arguments,
                "env": object(environment),
                "cwd": folder,
            }),
            Self::Url { url, headers } => json!({ "url": url, "headers": object(headers) }),
        }
    }
}

impl fmt::Debug for Entry {
    /// Leaves out the values of variables and headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::masked::line(self))
    }
}

/// Returns the path of a file with variables. A relative one is in the folder that the host opens.
fn env_file_path(
    file: &str,
    source: &Source,
    environment: &Environment,
) -> Result<PathBuf, String> {
    let workspace = source.workspace(environment);
    let path = variables::resolve(source.variables(), file, workspace, environment);
    Ok(workspace.join(path.map_err(|it| format!("envFile: {it}"))?))
}

/// Adds the variables in a file, unless there are others of the same names.
fn add_variables(variables: &mut Vec<(String, String)>, file: &Path) -> Result<(), String> {
    let found = dotenv::read(file).map_err(|it| format!("envFile: {it}"))?;
    let own = variables.len();
    for (name, value) in found {
        match variables.iter().position(|(it, _)| *it == name) {
            Some(index) if index < own => (),
            Some(index) => variables[index].1 = value,
            None => variables.push((name, value)),
        }
    }
    Ok(())
}

fn object(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

fn text(value: &Value, name: &str) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{name:?} must be a string"))
}

fn strings(value: Option<&Value>, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{name:?} must be a list of strings");
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|it| it.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Reads an object of strings; members that are null are left out. Errors do not show values, which may be secret.
fn pairs(value: Option<&Value>, name: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("{name:?} must be an object of strings");
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(members)) => {
            let mut pairs = Vec::new();
            for (key, value) in members {
                match value {
                    Value::Null => (),
                    Value::String(text) => pairs.push((key.clone(), text.clone())),
                    // Hosts accept numbers and booleans as the values of variables.
                    Value::Number(_) | Value::Bool(_) => {
                        pairs.push((key.clone(), value.to_string()));
                    }
                    _ => return Err(wrong()),
                }
            }
            Ok(pairs)
        }
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_from_every_hosts_form() {
        let pair = |name: &str| vec![(name.to_owned(), "v".to_owned())];
        let command = Entry::Command {
            program: "npx".into(),
            arguments: vec!["-y".into(), "a b".into()],
            environment: pair("KEY"),
            env_file: None,
            folder: None,
        };
        let url = Entry::Url { url: "https://a/mcp".into(), headers: pair("X-Tenant") };
        for host in super::super::HOSTS {
            for entry in [&command, &url] {
                match entry.write(host) {
                    Ok(written) => {
                        assert_eq!(Entry::read(&Value::Object(written)).as_ref(), Ok(entry));
                    }
                    Err(error) => assert!(host.url.is_none(), "{}: {error}", host.name),
                }
            }
        }
    }

    #[test]
    fn entries_of_other_spellings_are_read() {
        let zed = json!({ "command": { "path": "a", "args": ["b"], "env": { "K": 1 } } });
        let Ok(Entry::Command { program, arguments, environment, .. }) = Entry::read(&zed) else {
            panic!()
        };
        assert_eq!((program.as_str(), arguments[0].as_str()), ("a", "b"));
        assert_eq!(environment, [("K".to_owned(), "1".to_owned())]);
        let codex = json!({ "url": "https://a", "bearer_token_env_var": "TOKEN" });
        let Ok(Entry::Url { headers, .. }) = Entry::read(&codex) else { panic!() };
        assert_eq!(headers, [("Authorization".to_owned(), "Bearer ${env:TOKEN}".to_owned())]);
    }

    #[test]
    fn an_error_names_the_member_and_no_value() {
        for (entry, expected) in [
            (json!(1), "must be an object"),
            (json!({}), "needs \"command\" or \"url\""),
            (json!({ "command": "" }), "program's name"),
            (json!({ "command": "a", "args": "secret" }), "\"args\" must be a list"),
            (json!({ "command": "a", "env": { "K": ["secret"] } }), "\"env\" must be an object"),
            (json!({ "url": ["secret"] }), "\"url\" must be a string"),
            (json!({ "command": "a", "envFile": ["secret"] }), "\"envFile\" must be a string"),
        ] {
            let error = Entry::read(&entry).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        }
    }
}
