//! The requests of commands to the background process.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex},
};

use gudgeon::{Client, protocol::Raw};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use super::{
    Definition, Folder,
    connection::Connection,
    kept::Kept,
    log::Log,
    message::{lock, raw},
    process::Limits,
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
    Name(String),
    /// A server that only this call uses.
    Definition(Box<Definition>),
}

#[derive(Deserialize, Serialize)]
pub struct Connect {
    pub name: String,
    pub definition: Definition,
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
pub struct Named {
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
    pub kept: Arc<Kept>,
    connections: Mutex<HashMap<String, Arc<Connection>>>,
    /// Held while the definitions are changed.
    changing: tokio::sync::Mutex<()>,
    /// Connections that only one call uses.
    temporary: Mutex<Vec<std::sync::Weak<Connection>>>,
}

impl Registry {
    pub fn new(folder: Folder, log: Arc<Log>, limits: Limits) -> Self {
        Self {
            folder,
            log,
            kept: Kept::new(limits),
            connections: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            temporary: Mutex::default(),
        }
    }

    /// Carries out a request. `gone` ends once the command has closed its stream.
    pub async fn carry_out(
        &self,
        method: &str,
        params: &RawValue,
        gone: impl Future<Output = ()>,
    ) -> Result<Raw, Failure> {
        Ok(match method {
            "connect" => raw(&self.connect(read(params)?).await?),
            "connections" => raw(&self.states()?),
            "disconnect" => raw(&self.disconnect(&read::<Named>(params)?.name).await?),
            "call" => {
                let Call { which, call } = read(params)?;
                let connection = self.which(which)?;
                raw(&self.kept.call(connection, call, gone).await?)
            }
            "answer" => {
                let Answer { id, answer } = read(params)?;
                raw(&self.kept.answer(&id, answer, gone).await?)
            }
            "question" => raw(&self.kept.question(&read::<Id>(params)?.id)?),
            "questions" => raw(&self.kept.questions()),
            _ => return Err(Failure::usage(format!("the background process has no {method:?}"))),
        })
    }

    /// Returns the connection with a name, which may not be connected.
    pub fn named(&self, name: &str) -> Result<Arc<Connection>, Failure> {
        let mut definitions = self.folder.definitions()?;
        let definition = definitions.remove(name).ok_or_else(|| unknown(name))?;
        let mut connections = lock(&self.connections);
        let connection = connections
            .entry(name.to_owned())
            .or_insert_with(|| Connection::new(name.to_owned(), definition, Arc::clone(&self.log)));
        connection.touch();
        Ok(Arc::clone(connection))
    }

    fn which(&self, which: Which) -> Result<Arc<Connection>, Failure> {
        let definition = match which {
            Which::Name(name) => return self.named(&name),
            Which::Definition(definition) => *definition,
        };
        let name = definition.target.clone();
        let connection = Connection::new(name, definition, Arc::clone(&self.log));
        let mut temporary = lock(&self.temporary);
        temporary.retain(|it| it.strong_count() > 0);
        temporary.push(Arc::downgrade(&connection));
        Ok(connection)
    }

    async fn connect(&self, request: Connect) -> Result<ConnectionState, Failure> {
        let Connect { name, definition } = request;
        super::check_name(&name)?;
        let _changing = self.changing.lock().await;
        let mut definitions = self.folder.definitions()?;
        if let Some(known) = definitions.get(&name)
            && !known.is_same(&definition)
        {
            let message = format!("there is a connection {name:?} to {} already", known.target);
            return Err(Failure::usage(message)
                .with_hint(format!("run `gudgeon disconnect {name}` first, or use another name")));
        }
        let is_new = definitions.insert(name.clone(), definition.clone()).is_none();
        let connection = match is_new {
            true => Connection::new(name.clone(), definition, Arc::clone(&self.log)),
            false => self.named(&name)?,
        };
        connection.client().await?;
        if is_new {
            self.folder.store(definitions)?;
            lock(&self.connections).insert(name, Arc::clone(&connection));
        }
        Ok(state(&connection.name, &connection.definition, Some(&connection)))
    }

    fn states(&self) -> Result<Vec<ConnectionState>, Failure> {
        let definitions = self.folder.definitions()?;
        let connections = lock(&self.connections);
        let states = definitions.iter().map(|(name, it)| state(name, it, connections.get(name)));
        Ok(states.collect())
    }

    async fn disconnect(&self, name: &str) -> Result<Value, Failure> {
        let _changing = self.changing.lock().await;
        let mut definitions = self.folder.definitions()?;
        definitions.remove(name).ok_or_else(|| unknown(name))?;
        self.folder.store(definitions)?;
        let connection = lock(&self.connections).remove(name);
        if let Some(connection) = connection {
            connection.close().await;
        }
        Ok(json!({}))
    }

    /// Returns the time of the last use of all connections; `None` while one is in use, or a question waits.
    pub fn idle_since(&self, start: std::time::Instant) -> Option<std::time::Instant> {
        if !self.kept.is_empty() || self.in_use() {
            return None;
        }
        let connections = lock(&self.connections);
        connections.values().try_fold(start, |last, it| it.idle_since().map(|it| last.max(it)))
    }

    /// Returns whether there is nothing to keep.
    pub fn is_unused(&self) -> bool {
        self.kept.is_empty()
            && !self.in_use()
            && self.folder.definitions().is_ok_and(|it| it.is_empty())
    }

    fn in_use(&self) -> bool {
        lock(&self.temporary).iter().any(|it| it.strong_count() > 0)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        let all: Vec<_> = lock(&self.connections).drain().map(|(_, it)| it).collect();
        let temporary: Vec<_> =
            lock(&self.temporary).drain(..).filter_map(|it| it.upgrade()).collect();
        let mut closing = tokio::task::JoinSet::new();
        for connection in all.into_iter().chain(temporary) {
            closing.spawn(async move { connection.close().await });
        }
        closing.join_all().await;
    }
}

fn state(
    name: &str,
    definition: &Definition,
    connection: Option<&Arc<Connection>>,
) -> ConnectionState {
    let client = connection.and_then(|it| it.connected());
    let server = client.as_ref().map(Client::server).map(|it| Server {
        name: it.info.name.clone(),
        version: it.info.version.clone(),
        revision: it.revision.to_string(),
    });
    ConnectionState {
        name: name.to_owned(),
        target: definition.target.clone(),
        is_connected: client.is_some(),
        server,
    }
}

fn read<T: DeserializeOwned>(params: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(params.get())
        .map_err(|it| Failure::usage(format!("the background process can't read a request: {it}")))
}

fn unknown(name: &str) -> Failure {
    Failure::new(FailureKind::NotFound, format!("there is no connection {name:?}"))
        .with_hint("`gudgeon connections` lists them; `gudgeon connect NAME TARGET` makes one")
}
