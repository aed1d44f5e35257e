//! Entries: servers in the form of a host's configuration.

use std::{fmt, path::Path};

use serde_json::{Map, Value, json};

use super::{Resolver, dotenv};
use crate::{
    error::{Language, given::Problem},
    transport::url::without_secrets,
};

/// The members that hold the address of a server, in any host's spelling.
pub const URLS: [&str; 3] = ["httpUrl", "serverUrl", "url"];

/// The types of a command.
const COMMAND_TYPES: [&str; 2] = ["stdio", "local"];

pub(in crate::client) const NO_HEADERS: &str =
    "headers can be sent to http, https, ws and wss URLs only";

/// A server: a command, or the address of one that runs.
#[derive(Clone, Eq, PartialEq)]
pub enum Entry {
    Command {
        program: String,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
        /// `true` if the program gets all variables of this process.
        inherits: bool,
        /// The path of a file with more variables.
        env_file: Option<String>,
        folder: Option<String>,
        /// `true` if the program is started again after it ended.
        restarts: bool,
    },
    Url {
        url: String,
        headers: Vec<(String, String)>,
    },
}

impl Entry {
    /// Creates the entry of a command without variables of its own.
    pub fn command(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item: Into<String>>,
    ) -> Self {
        Self::Command {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            inherits: false,
            env_file: None,
            folder: None,
            restarts: false,
        }
    }

    /// Reads an entry in any host's form; references to variables are kept. Members of hosts' own are ignored.
    ///
    /// Errors with the member and what is wrong with it, and without values, which may be secret. `language` is that of the
    /// caller, whose notation errors use.
    pub fn read(language: Language, entry: &Value) -> Result<Self, Problem> {
        let Value::Object(entry) = entry else {
            let message = format!("an entry must be {}, not {}", object_of(language), shape(entry));
            return Err(Problem::wrong_type(message));
        };
        let members = Members { language, entry };
        if let Some(command) = members.get("command") {
            return members.command(command);
        }
        for name in URLS {
            if members.get(name).is_some() {
                return members.address(name);
            }
        }
        Err(members.without_server())
    }

    /// Returns the entry with the values of its references, and with the variables in the file that `envFile` names, unless
    /// `env` has others of the same names. A relative path of that file begins in the resolver's workspace.
    ///
    /// Errors with the member and what is wrong.
    pub fn resolve(&self, resolver: &Resolver<'_>) -> Result<Self, String> {
        let at = |member: &str, value: Result<String, String>| {
            value.map_err(|problem| format!("{member}: {problem}"))
        };
        let text = |member: &str, text: &str| at(member, resolver.resolve(text));
        Ok(match self {
            Self::Command {
                program,
                arguments,
                environment,
                inherits,
                env_file,
                folder,
                restarts,
            } => {
                let variable = |(name, value): &(String, String)| {
                    Ok((name.clone(), text(&format!("env.{name}"), value)?))
                };
                let mut environment =
                    environment.iter().map(variable).collect::<Result<Vec<_>, String>>()?;
                if let Some(file) = env_file {
                    let path = resolver.workspace().join(text("envFile", file)?);
                    add_variables(&mut environment, &path)?;
                }
                let word = |(at, word): (usize, &String)| text(&format!("args[{at}]"), word);
                Self::Command {
                    program: text("command", program)?,
                    arguments: arguments.iter().enumerate().map(word).collect::<Result<_, _>>()?,
                    environment,
                    inherits: *inherits,
                    env_file: None,
                    folder: folder.as_ref().map(|folder| text("cwd", folder)).transpose()?,
                    restarts: *restarts,
                }
            }
            Self::Url { url, headers } => {
                let header = |(name, value): &(String, String)| {
                    let value = resolver.resolve_header(value);
                    Ok((name.clone(), at(&format!("headers.{name}"), value)?))
                };
                Self::Url {
                    url: text("url", url)?,
                    headers: headers.iter().map(header).collect::<Result<_, String>>()?,
                }
            }
        })
    }

    /// Returns all strings in which variables may be referred to.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (own, pairs) = match self {
            Self::Command { program, arguments, environment, env_file, folder, .. } => {
                let mut own = vec![program.as_str()];
                own.extend(arguments.iter().chain(env_file).chain(folder).map(String::as_str));
                (own, environment)
            }
            Self::Url { url, headers } => (vec![url.as_str()], headers),
        };
        own.into_iter().chain(pairs.iter().map(|(_, value)| value.as_str()))
    }

    /// Returns the entry as JSON, in the form that this type reads.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Command {
                program,
                arguments,
                environment,
                inherits,
                env_file,
                folder,
                restarts,
            } => {
                let environment = match inherits {
                    true if environment.is_empty() => "inherit".into(),
                    true => {
                        let inherited = std::env::vars_os().filter_map(|(name, value)| {
                            Some((name.into_string().ok()?, value.into_string().ok()?))
                        });
                        object(&inherited.chain(environment.iter().cloned()).collect::<Vec<_>>())
                    }
                    false => object(environment),
                };
                json!({
                    "command": program,
                    "args": arguments,
                    "env": environment,
                    "envFile": env_file,
                    "cwd": folder,
                    "restart": restarts,
                })
            }
            Self::Url { url, headers } => json!({ "url": url, "headers": object(headers) }),
        }
    }
}

impl fmt::Debug for Entry {
    /// Leaves out arguments and the values of variables and headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, .. } => f.debug_tuple("Command").field(program).finish(),
            Self::Url { url, .. } => f.debug_tuple("Url").field(&without_secrets(url)).finish(),
        }
    }
}

/// Adds the variables in a file, unless there are others of the same names. Errors with the file and what is wrong in it.
pub fn add_variables(variables: &mut Vec<(String, String)>, file: &Path) -> Result<(), String> {
    let found = dotenv::read(file).map_err(|problem| format!("envFile: {problem}"))?;
    let own = variables.len();
    for (name, value) in found {
        match variables.iter().position(|(known, _)| *known == name) {
            Some(index) if index < own => (),
            Some(index) => variables[index].1 = value,
            None => variables.push((name, value)),
        }
    }
    Ok(())
}

/// The members of an entry. Those that are null are left out.
struct Members<'a> {
    language: Language,
    entry: &'a Map<String, Value>,
}

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.entry.get(name).filter(|value| !value.is_null())
    }

    fn command(&self, command: &'a Value) -> Result<Entry, Problem> {
        // Zed once wrote the program, its arguments and variables into one object.
        let (program, inner) = match command {
            Value::Object(inner) => {
                let inner = Self { entry: inner, ..*self };
                (inner.get("path").unwrap_or(&Value::Null), inner)
            }
            program => (program, Self { ..*self }),
        };
        let program = match program {
            Value::String(program) if !program.is_empty() => program.clone(),
            other => {
                let meant = match other {
                    Value::Array(_) => "; its arguments belong in args",
                    _ => "",
                };
                return Err(Problem::wrong_type(format!(
                    "command must be a program's name or path, not {}{meant}",
                    shape(other)
                )));
            }
        };
        if let Some(kind) = self.get("type")
            && !COMMAND_TYPES.iter().any(|known| kind == known)
        {
            return Err(Problem::not_allowed(format!(
                "the type of a command must be \"stdio\", not {kind}; an address is given as \"url\""
            )));
        }
        if !self.pairs("headers")?.is_empty() {
            return Err(Problem::not_allowed(NO_HEADERS));
        }
        let inherits = inner.get("env").is_some_and(|env| env == "inherit");
        Ok(Entry::Command {
            program,
            arguments: inner.words("args")?,
            environment: if inherits { Vec::new() } else { inner.pairs("env")? },
            inherits,
            env_file: self.text("envFile")?,
            folder: self.text("cwd")?,
            restarts: match self.get("restart") {
                None => false,
                Some(Value::Bool(restarts)) => *restarts,
                Some(other) => {
                    let message = format!("restart must be true or false, not {}", shape(other));
                    return Err(Problem::wrong_type(message));
                }
            },
        })
    }

    fn address(&self, name: &str) -> Result<Entry, Problem> {
        let mut headers = self.pairs("headers")?;
        headers.extend(self.pairs("http_headers")?);
        for (header, variable) in self.pairs("env_http_headers")? {
            headers.push((header, format!("${{env:{variable}}}")));
        }
        if let Some(variable) = self.text("bearer_token_env_var")? {
            headers.push(("Authorization".to_owned(), format!("Bearer ${{env:{variable}}}")));
        }
        Ok(Entry::Url { url: self.text(name)?.unwrap_or_default(), headers })
    }

    fn without_server(&self) -> Problem {
        if self.entry.contains_key("mcpServers") {
            return Problem::not_allowed(format!(
                "this is a configuration of several servers; {}",
                match self.language {
                    Language::Python => "pass it to ClientGroup",
                    Language::TypeScript => "pass it to ClientGroup.connect()",
                    Language::Rust => "\"mcpServers\" belongs at the top",
                }
            ));
        }
        let names: Vec<_> = self.entry.keys().map(String::as_str).collect();
        let names = if names.is_empty() { "no members".to_owned() } else { names.join(", ") };
        Problem::not_allowed(format!(
            "an entry of a host's configuration needs \"command\" or \"url\"; this one has {names}"
        ))
    }

    fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                Err(Problem::wrong_type(format!("{name} must be a string, not {}", shape(other))))
            }
        }
    }

    fn words(&self, name: &str) -> Result<Vec<String>, Problem> {
        let wrong = |problem: String| {
            Problem::wrong_type(format!("{name} must be a list of strings, {problem}"))
        };
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let Value::Array(words) = value else {
            let problem = format!("not {}; write one string for each argument", shape(value));
            return Err(wrong(problem));
        };
        let word = |(at, word): (usize, &Value)| match word {
            Value::String(word) => Ok(word.clone()),
            other => Err(wrong(format!("but {name}[{at}] is {}", shape(other)))),
        };
        words.iter().enumerate().map(word).collect()
    }

    /// Reads an object of strings; members that are null are left out.
    fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, Problem> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let Value::Object(members) = value else {
            let or = if name == "env" { ", or \"inherit\"" } else { "" };
            return Err(Problem::wrong_type(format!(
                "{name} must be {} of strings{or}, not {}",
                object_of(self.language),
                shape(value)
            )));
        };
        let mut pairs = Vec::new();
        for (key, value) in members {
            match value {
                Value::Null => (),
                Value::String(text) => pairs.push((key.clone(), text.clone())),
                // Hosts accept numbers and booleans as the values of variables.
                Value::Number(_) | Value::Bool(_) => pairs.push((key.clone(), value.to_string())),
                other => {
                    let message = format!("{name}.{key} must be a string, not {}", shape(other));
                    return Err(Problem::wrong_type(message));
                }
            }
        }
        Ok(pairs)
    }
}

fn object(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
}

pub(in crate::client) fn object_of(language: Language) -> &'static str {
    if language == Language::Python { "a mapping" } else { "an object" }
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty string",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
