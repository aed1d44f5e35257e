//! A named connection: the client of its server, and the commands that use it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use gudgeon::{
    Client, Error, LoggingLevel,
    client::{Event, LogMessage, Question},
    error::ErrorKind,
    protocol::{Raw, Root},
};
use serde_json::json;

use super::{
    Definition,
    log::Log,
    message::{failure_with_stderr, lock, notification, raw},
    notice,
    peer::Peer,
    questions::Questions,
};
use crate::failure::Failure;

/// The level of log messages for commands that name none.
pub const DEFAULT_LEVEL: LoggingLevel = LoggingLevel::Info;

pub struct Connection {
    /// The name, or the target of a connection that only one call uses.
    pub name: String,
    /// The server, for the next attempt to connect.
    definition: Mutex<Definition>,
    pub questions: Questions,
    client: tokio::sync::Mutex<Option<Client>>,
    /// A copy of `client` that reports of the state read without waiting for its lock.
    open: Mutex<Option<Client>>,
    /// The level of log messages that a command has set, of a server before 2026-07-28. All commands share it.
    level: tokio::sync::Mutex<Option<LoggingLevel>>,
    /// The commands that use the connection.
    peers: Mutex<HashMap<u64, Arc<Peer>>>,
    next: AtomicU64,
    last_used: Mutex<Instant>,
    log: Arc<Log>,
}

/// A command that uses the connection, until it is dropped.
pub struct Joined {
    connection: Arc<Connection>,
    number: u64,
}

impl Connection {
    pub fn new(name: String, definition: Definition, log: Arc<Log>) -> Arc<Self> {
        Arc::new(Self {
            name,
            definition: Mutex::new(definition),
            questions: Questions::default(),
            client: tokio::sync::Mutex::default(),
            open: Mutex::default(),
            level: tokio::sync::Mutex::default(),
            peers: Mutex::default(),
            next: AtomicU64::new(0),
            last_used: Mutex::new(Instant::now()),
            log,
        })
    }

    /// Returns the client, connecting first if necessary. Commands that come at the same time share the attempt.
    pub async fn client(self: &Arc<Self>) -> Result<Client, Failure> {
        let mut slot = self.client.lock().await;
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        let connected = self.connect().await;
        if let Err(failure) = &connected {
            self.log.write(format_args!("{}: not connected: {failure}", self.name));
        }
        let client = connected?;
        self.log.write(format_args!("{}: connected", self.name));
        *slot = Some(client.clone());
        *lock(&self.open) = Some(client.clone());
        Ok(client)
    }

    /// Sets the server for the next attempt to connect.
    pub fn define(&self, definition: Definition) {
        *lock(&self.definition) = definition;
    }

    /// Returns the folders that the server may use.
    pub fn roots(&self) -> Option<Vec<Root>> {
        lock(&self.definition).roots()
    }

    /// Returns the client if it is connected.
    pub fn connected(&self) -> Option<Client> {
        lock(&self.open).clone()
    }

    async fn connect(self: &Arc<Self>) -> Result<Client, Failure> {
        let hook = |on_event: fn(&Self, Event)| {
            let this = Arc::downgrade(self);
            move |event| {
                if let Some(this) = Weak::upgrade(&this) {
                    on_event(&this, event);
                }
            }
        };
        let logged = Arc::downgrade(self);
        let asked = Arc::downgrade(self);
        let answerer: gudgeon::client::Answerer = Arc::new(move |question| {
            let this = Weak::clone(&asked);
            Box::pin(async move {
                match this.upgrade() {
                    Some(this) => this.ask(question).await,
                    None => Err(nobody()),
                }
            })
        });
        let builder = lock(&self.definition).builder()?;
        let client = builder
            .on_event(hook(Self::on_event))
            .on_log(move |message| {
                if let Some(this) = logged.upgrade() {
                    this.on_log(&message);
                }
            })
            .on_elicit_raw(Arc::clone(&answerer))
            .on_sample_raw(answerer)
            .connect()
            .await;
        client.map_err(failure_with_stderr)
    }

    /// Passes a question of a legacy server on to the command whose call asks it.
    async fn ask(&self, question: Question) -> Result<Raw, Error> {
        let open = self.questions.open().await.ok_or_else(nobody)?;
        open.peer.ask(question.method.as_str(), &question.params).await
    }

    fn on_event(&self, event: Event) {
        let (method, params) = match event {
            Event::ListChanged(list) => {
                let method = match list {
                    gudgeon::client::ListKind::Tools => "notifications/tools/list_changed",
                    gudgeon::client::ListKind::Resources => "notifications/resources/list_changed",
                    gudgeon::client::ListKind::Prompts => "notifications/prompts/list_changed",
                };
                (method.to_owned(), raw(&json!({})))
            }
            Event::ResourceUpdated(uri) => {
                ("notifications/resources/updated".to_owned(), raw(&json!({ "uri": uri })))
            }
            Event::UrlDone(id) => (
                "notifications/elicitation/complete".to_owned(),
                raw(&json!({ "elicitationId": id })),
            ),
            Event::Notified { method, params } => (method.to_string(), params),
            Event::Reconnected { reason, server, .. } => {
                self.log.write(format_args!("{}: connected again after: {reason}", self.name));
                self.end_peers_of_other_revisions(server.revision);
                return;
            }
            Event::Closed(reason) => {
                self.log.write(format_args!("{}: connection lost: {reason}", self.name));
                return;
            }
            // Log messages have a hook of their own.
            Event::Log(_) => return,
        };
        self.broadcast(&notification(&method, &params));
    }

    fn on_log(&self, message: &LogMessage) {
        let line = notice::log(message);
        // From 2026-07-28 on, a log message belongs to a request, and before to the connection. It names neither.
        let is_of_call =
            self.connected().is_some_and(|client| client.server().spoken().is_stateless);
        for peer in lock(&self.peers).values() {
            if peer.shows(message.level) && (!is_of_call || self.questions.has_call_of(peer)) {
                peer.notify(line.clone());
            }
        }
    }

    fn broadcast(&self, line: &str) {
        for peer in lock(&self.peers).values() {
            peer.notify(line.to_owned());
        }
    }

    /// A server that was replaced by another version may speak another revision, which open commands can't learn.
    fn end_peers_of_other_revisions(&self, revision: gudgeon::Revision) {
        for peer in lock(&self.peers).values() {
            peer.end_unless(revision);
        }
    }

    /// Sets the level of the server to the lowest of all commands. Without `sets`, only a level that a command has set
    /// before is changed.
    pub async fn update_level(&self, client: &Client, sets: bool) -> Result<(), Error> {
        let mut level = self.level.lock().await;
        let wanted = lock(&self.peers).values().filter_map(|peer| peer.level()).min();
        let wanted = wanted.unwrap_or(DEFAULT_LEVEL);
        if level.map_or(sets, |level| level != wanted) {
            client.set_log_level(wanted).await?;
            *level = Some(wanted);
        }
        Ok(())
    }

    pub fn join(self: &Arc<Self>, peer: Arc<Peer>) -> Joined {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.peers).insert(number, peer);
        self.touch();
        Joined { connection: Arc::clone(self), number }
    }

    /// Returns the time of the last use, `None` while it is in use.
    pub fn idle_since(&self) -> Option<Instant> {
        lock(&self.peers).is_empty().then(|| *lock(&self.last_used))
    }

    pub fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    /// Ends the connection to the server; commands that use it fail.
    pub async fn close(&self) {
        for (_, peer) in lock(&self.peers).drain() {
            peer.end();
        }
        lock(&self.open).take();
        let client = self.client.lock().await.take();
        if let Some(client) = client {
            client.close().await;
        }
        self.log.write(format_args!("{}: closed", self.name));
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        lock(&self.connection.peers).remove(&self.number);
        self.connection.touch();
        let connection = Arc::clone(&self.connection);
        if let Some(client) =
            connection.connected().filter(|client| !client.server().spoken().is_stateless)
        {
            tokio::spawn(async move {
                // A server that is gone gets its level from the next command.
                let _ = connection.update_level(&client, false).await;
            });
        }
    }
}

fn nobody() -> Error {
    let message = "the question belongs to no call of a command";
    Error::new(ErrorKind::Cancelled, message)
}
