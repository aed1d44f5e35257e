//! The requests of commands to the background process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gudgeon::{Client, protocol::Raw};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use super::{
    Definition, Folder, Saved,
    connection::Connection,
    log::Log,
    message::{lock, raw},
    open_questions::OpenQuestions,
    process::{Caller, Limits},
    values::{CallParams, ConnectionState, Server},
};
use crate::failure::{Failure, FailureKind};

/// The version of this protocol: a command ends a background process with another one.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The line that the background process begins with.
#[derive(Deserialize, Serialize)]
pub struct Greeting {
    pub version: String,
    pub process: u32,
}

/// The connection that a request is about.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Which {
    Named(Named),
    /// A server that only this call uses.
    Definition(Box<Definition>),
}

#[derive(Deserialize, Serialize)]
pub struct Connect {
    pub name: String,
    pub saved: Saved,
    pub definition: Definition,
}

/// A named connection.
#[derive(Deserialize, Serialize)]
pub struct Named {
    pub name: String,
    /// The definition of the command that asks. It is left out at first, because only a process that has to connect needs it.
    pub definition: Option<Box<Definition>>,
}

/// The outcome of a request about a named connection.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Attempt<T> {
    Done(T),
    /// The request has to be sent again with the definition.
    DefinitionNeeded,
}

#[derive(Deserialize, Serialize)]
pub struct Call {
    pub which: Which,
    pub call: CallParams,
}

#[derive(Deserialize, Serialize)]
pub struct Answer {
    pub id: String,
    pub answer: Raw,
}

#[derive(Deserialize, Serialize)]
pub struct Name {
    pub name: String,
}

#[derive(Deserialize, Serialize)]
pub struct Id {
    pub id: String,
}

/// The state of the background process.
pub struct Registry {
    pub folder: Folder,
    pub log: Arc<Log>,
    pub open_questions: Arc<OpenQuestions>,
    connections: Mutex<HashMap<String, Arc<Connection>>>,
    /// Held while the file of connections is changed.
    changing: tokio::sync::Mutex<()>,
    /// Connections that only one call uses.
    temporary: Mutex<Vec<std::sync::Weak<Connection>>>,
}

impl Registry {
    pub fn new(folder: Folder, log: Arc<Log>, limits: Limits) -> Self {
        Self {
            folder,
            log,
            open_questions: OpenQuestions::new(limits),
            connections: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            temporary: Mutex::default(),
        }
    }

    /// Carries out a request of a command.
    pub async fn carry_out(
        &self,
        method: &str,
        params: &RawValue,
        command: &mut Caller,
    ) -> Result<Raw, Failure> {
        Ok(match method {
            "connect" => raw(&self.connect(read(params)?).await?),
            "connections" => raw(&self.states()?),
            "disconnect" => raw(&self.disconnect(&read::<Name>(params)?.name).await?),
            "call" => {
                let Call { which, call } = read(params)?;
                match self.which(which)? {
                    Some(connection) => raw(&Attempt::Done(
                        self.open_questions.call(connection, call, command).await?,
                    )),
                    None => raw(&Attempt::<()>::DefinitionNeeded),
                }
            }
            "answer" => {
                let Answer { id, answer } = read(params)?;
                raw(&self.open_questions.answer(&id, answer, command).await?)
            }
            "question" => raw(&self.open_questions.question(&read::<Id>(params)?.id)?),
            "questions" => raw(&self.open_questions.questions()),
            _ => return Err(Failure::usage(format!("the background process has no {method:?}"))),
        })
    }

    /// Returns the connection with a name, which may not be connected. `None`: it has to be connected, and the definition is
    /// missing.
    pub fn named(&self, named: Named) -> Result<Option<Arc<Connection>>, Failure> {
        let Named { name, definition } = named;
        if !self.folder.connections()?.contains_key(&name) {
            return Err(unknown(&name));
        }
        let mut connections = lock(&self.connections);
        let connection = match (connections.get(&name), definition) {
            (Some(known), None) if known.connected().is_some() => Arc::clone(known),
            (Some(known), Some(definition)) => {
                known.define(*definition);
                Arc::clone(known)
            }
            (None, Some(definition)) => {
                let made = Connection::new(name.clone(), *definition, Arc::clone(&self.log));
                Arc::clone(connections.entry(name).or_insert(made))
            }
            (_, None) => return Ok(None),
        };
        connection.touch();
        Ok(Some(connection))
    }

    fn which(&self, which: Which) -> Result<Option<Arc<Connection>>, Failure> {
        let definition = match which {
            Which::Named(named) => return self.named(named),
            Which::Definition(definition) => *definition,
        };
        let name = definition.target.clone();
        let connection = Connection::new(name, definition, Arc::clone(&self.log));
        let mut temporary = lock(&self.temporary);
        temporary.retain(|connection| connection.strong_count() > 0);
        temporary.push(Arc::downgrade(&connection));
        Ok(Some(connection))
    }

    async fn connect(&self, request: Connect) -> Result<ConnectionState, Failure> {
        let Connect { name, saved, definition } = request;
        super::check_name(&name)?;
        let _changing = self.changing.lock().await;
        let mut all = self.folder.connections()?;
        if let Some(known) = all.get(&name)
            && *known != saved
        {
            let message = format!("there is a connection {name:?} to {} already", known.target);
            return Err(Failure::usage(message)
                .with_hint(format!("run `gudgeon disconnect {name}` first, or use another name")));
        }
        let target = saved.target.clone();
        let is_new = all.insert(name.clone(), saved).is_none();
        let connection = match lock(&self.connections).get(&name).filter(|_| !is_new) {
            Some(known) => {
                known.define(definition);
                Arc::clone(known)
            }
            None => Connection::new(name.clone(), definition, Arc::clone(&self.log)),
        };
        connection.client().await?;
        if is_new {
            self.folder.store(all)?;
        }
        lock(&self.connections).insert(name.clone(), Arc::clone(&connection));
        Ok(state(&name, &target, Some(&connection)))
    }

    fn states(&self) -> Result<Vec<ConnectionState>, Failure> {
        let all = self.folder.connections()?;
        let connections = lock(&self.connections);
        let states =
            all.iter().map(|(name, saved)| state(name, &saved.target, connections.get(name)));
        Ok(states.collect())
    }

    async fn disconnect(&self, name: &str) -> Result<Value, Failure> {
        let _changing = self.changing.lock().await;
        let mut all = self.folder.connections()?;
        all.remove(name).ok_or_else(|| unknown(name))?;
        self.folder.store(all)?;
        let connection = lock(&self.connections).remove(name);
        if let Some(connection) = connection {
            connection.close().await;
        }
        Ok(json!({}))
    }

    /// Returns the time of the last use of all connections; `None` while one is in use, or a question waits.
    pub fn idle_since(&self, start: std::time::Instant) -> Option<std::time::Instant> {
        if !self.open_questions.is_empty() || self.in_use() {
            return None;
        }
        let connections = lock(&self.connections);
        connections.values().try_fold(start, |last, connection| {
            connection.idle_since().map(|since| last.max(since))
        })
    }

    /// Returns whether there is nothing to keep.
    pub fn is_unused(&self) -> bool {
        self.open_questions.is_empty()
            && !self.in_use()
            && self.folder.connections().is_ok_and(|connections| connections.is_empty())
    }

    fn in_use(&self) -> bool {
        lock(&self.temporary).iter().any(|connection| connection.strong_count() > 0)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        let all: Vec<_> =
            lock(&self.connections).drain().map(|(_, connection)| connection).collect();
        let temporary: Vec<_> =
            lock(&self.temporary).drain(..).filter_map(|connection| connection.upgrade()).collect();
        let mut closing = tokio::task::JoinSet::new();
        for connection in all.into_iter().chain(temporary) {
            closing.spawn(async move { connection.close().await });
        }
        closing.join_all().await;
    }
}

fn state(name: &str, target: &str, connection: Option<&Arc<Connection>>) -> ConnectionState {
    let client = connection.and_then(|connection| connection.connected());
    let server = client.as_ref().map(Client::server).map(|server| Server {
        name: server.info.name.clone(),
        version: server.info.version.clone(),
        revision: server.revision.to_string(),
    });
    ConnectionState {
        name: name.to_owned(),
        target: target.to_owned(),
        is_connected: client.is_some(),
        server,
    }
}

/// Reads the params of a request.
pub fn read<T: DeserializeOwned>(params: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(params.get()).map_err(|error| {
        Failure::usage(format!("the background process can't read a request: {error}"))
    })
}

/// Returns the failure for a name that no connection has.
pub fn unknown(name: &str) -> Failure {
    Failure::new(FailureKind::NotFound, format!("there is no connection {name:?}"))
        .with_hint("`gudgeon connections` lists them; `gudgeon connect NAME TARGET` makes one")
}
