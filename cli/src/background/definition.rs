//! The definition of a connection: everything that the background process needs to connect. It is never written to a file,
//! because it has the environment of a command.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use gudgeon::{
    Client,
    client::{ClientBuilder, Target, auth::Auth},
    protocol::Root,
    transport::Command,
};
use serde::{Deserialize, Serialize};

use super::environment::inherited;
use crate::{failure::Failure, tokens};

/// A server, and the options of the client.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The target for people, without secrets.
    pub target: String,
    server: Server,
    /// Names and values; they may be secret.
    headers: Vec<(String, String)>,
    revisions: Vec<String>,
    connect_milliseconds: Option<u64>,
    roots: Option<Vec<Root>>,
    token: Option<String>,
    /// The file with the tokens of a sign-in.
    token_file: Option<PathBuf>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum Server {
    Url(String),
    Command {
        program: OsString,
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        folder: Option<PathBuf>,
    },
}

impl Definition {
    /// Returns the definition of a client that is not connected yet, as seen from the current folder.
    pub fn from_builder(builder: ClientBuilder) -> Result<Self, Failure> {
        let server = match builder.target().0 {
            Target::Url(url) => Server::Url(url.with_query()),
            Target::Command(command) => {
                let (program, arguments, environment, folder) = command.parts();
                let inherited = inherited().map(|(name, value)| (name.into(), value));
                let folder = match folder {
                    Some(folder) => std::path::absolute(folder).ok(),
                    None => env::current_dir().ok(),
                };
                Server::Command {
                    program: program.to_owned(),
                    arguments: arguments.to_vec(),
                    environment: inherited.chain(environment.iter().cloned()).collect(),
                    folder,
                }
            }
            _ => return Err(Failure::usage("this is a named connection already")),
        };
        let mut definition = Self {
            target: builder.target().0.to_string(),
            server,
            headers: Vec::new(),
            revisions: Vec::new(),
            connect_milliseconds: None,
            roots: None,
            token: None,
            token_file: None,
        };
        let _ = builder.options(|options| {
            definition.headers.clone_from(&options.headers);
            definition.revisions = options.revisions.iter().map(ToString::to_string).collect();
            let limit = options.connect_timeout.or(options.timeout);
            definition.connect_milliseconds =
                limit.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
            definition.roots.clone_from(&options.roots);
            match &options.auth {
                Some(Auth::Token(token)) => definition.token = Some(token.clone()),
                // The record in the file says whether they are in the keyring.
                Some(Auth::OAuth(_)) => definition.token_file = tokens::path().ok(),
                _ => (),
            }
        });
        Ok(definition)
    }

    /// Returns the folders that the server may use.
    pub fn roots(&self) -> Option<Vec<Root>> {
        self.roots.clone()
    }

    /// Returns a client that is not connected yet. Its requests have no time limit: those of the commands apply.
    pub fn builder(&self) -> Result<ClientBuilder, Failure> {
        let mut auth = self.token.clone().map(Auth::Token);
        let target: Target = match &self.server {
            Server::Url(url) => {
                let target = Target::url(url)?;
                if let Some(file) = &self.token_file {
                    auth = tokens::stored_in(file, &tokens::stored_url(&target)?);
                }
                target
            }
            Server::Command { program, arguments, environment, folder } => {
                // The log of the background process is not for the output of servers.
                let mut command = Command::new(program).args(arguments);
                command = command.named(&self.target).quiet();
                command.extend(environment.iter().cloned());
                folder.iter().fold(command, Command::cwd).into()
            }
        };
        let revisions =
            self.revisions.iter().filter_map(|revision| revision.parse().ok()).collect();
        Ok(Client::builder(target).options(|options| {
            options.info.name = "gudgeon".into();
            options.info.version = env!("CARGO_PKG_VERSION").into();
            options.timeout = None;
            options.connect_timeout = self.connect_milliseconds.map(Duration::from_millis);
            options.headers.clone_from(&self.headers);
            options.revisions = revisions;
            options.roots.clone_from(&self.roots);
            options.restart = true;
            options.auth = auth;
        }))
    }
}
