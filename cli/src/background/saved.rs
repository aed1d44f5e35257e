//! A named connection as the file of connections has it: the arguments of `gudgeon connect`.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf, absolute},
    time::Duration,
};

use gudgeon::{client, protocol::Root};
use serde::{Deserialize, Serialize};

use super::{ConnectionState, Definition};
use crate::{
    connection::ConnectionArguments,
    failure::{Failure, FailureKind},
    hosts::Consent,
    target::Target,
};

/// A server, and the options of the connection. The environment of `gudgeon connect`, which may have secrets, is not in it:
/// a server gets that of the command for which it starts.
#[derive(Clone, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// The target for people, without secrets.
    pub target: String,
    server: Server,
    /// The folder in which the target was found, and in which a program starts.
    folder: Option<PathBuf>,
    /// Names and values as the user gave them; they may be secret.
    headers: Vec<(String, String)>,
    revision: Option<String>,
    connect_milliseconds: u64,
    token_file: Option<PathBuf>,
    /// The file in which the name of a configured server is looked up.
    config: Option<PathBuf>,
    /// URIs of folders.
    roots: Vec<String>,
}

#[derive(Clone, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Server {
    Url(String),
    /// A file, a module, or the name of a configured server.
    Named(String),
    Command(Vec<OsString>),
}

impl Saved {
    /// Returns what the arguments of `gudgeon connect` say, as seen from the current folder. `word` is the target, unless
    /// that is a command.
    pub fn new(
        target: &Target,
        word: Option<&str>,
        arguments: &ConnectionArguments,
        roots: Vec<String>,
    ) -> Result<Self, Failure> {
        let server = match (target, word) {
            (Target::Connection(_), _) => {
                return Err(Failure::usage("this is a named connection already"));
            }
            (Target::Url(url), _) => Server::Url(url.clone()),
            (_, Some(word)) => Server::Named(word.to_owned()),
            (_, None) => Server::Command(arguments.command.clone()),
        };
        let limit = arguments.connect_timeout.unwrap_or(arguments.timeout);
        let full = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        Ok(Self {
            target: shown(target)?,
            folder: match server {
                Server::Url(_) => None,
                _ => Some(env::current_dir()?),
            },
            server,
            headers: arguments.headers.clone(),
            revision: arguments.revision.map(|revision| revision.to_string()),
            connect_milliseconds: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            token_file: full(&arguments.token_file)?,
            config: full(&arguments.config)?,
            roots,
        })
    }

    /// Returns everything that the background process needs to connect, with the environment of this command.
    pub fn definition(&self) -> Result<Definition, Failure> {
        let arguments = ConnectionArguments {
            revision: self.revision.as_ref().and_then(|revision| revision.parse().ok()),
            headers: self.headers.clone(),
            connect_timeout: Some(Duration::from_millis(self.connect_milliseconds)),
            token_file: self.token_file.clone(),
            ..ConnectionArguments::default()
        };
        let before = env::current_dir();
        if let Some(folder) = &self.folder {
            enter(folder)?;
        }
        let definition = self.target().and_then(|target| {
            let builder = arguments.builder(&target)?;
            Definition::from_builder(builder.options(|options| options.roots = self.roots()))
        });
        if self.folder.is_some()
            && let Ok(before) = before
        {
            enter(&before)?;
        }
        definition
    }

    /// Returns the folders that the server may use.
    pub fn roots(&self) -> Option<Vec<Root>> {
        let roots: Vec<_> = self.roots.iter().map(|root| root.as_str().into()).collect();
        Some(roots).filter(|roots| !roots.is_empty())
    }

    /// Returns the state of a connection while the background process does not run.
    pub fn not_connected(self, name: String) -> ConnectionState {
        ConnectionState { name, target: self.target, is_connected: false, server: None }
    }

    fn target(&self) -> Result<Target, Failure> {
        Ok(match &self.server {
            Server::Url(url) => Target::Url(url.clone()),
            Server::Named(word) => Target::server(word, self.config.as_deref(), Consent::Ask)?,
            Server::Command(words) => Target::Command(words.clone()),
        })
    }
}

/// Returns the target without the secrets that a URL may have.
fn shown(target: &Target) -> Result<String, Failure> {
    match target {
        Target::Url(url) => Ok(client::Target::url(url)?.to_string()),
        other => Ok(other.to_string()),
    }
}

/// Makes a folder the current one: files, modules, projects and configurations are looked for from there.
fn enter(folder: &Path) -> Result<(), Failure> {
    env::set_current_dir(folder).map_err(|error| {
        let message =
            format!("the folder of the connection can't be entered: {}: {error}", folder.display());
        Failure::new(FailureKind::File, message)
    })
}
