//! Clients whose server is started again after it ended, for the languages that offer it.
//!
//! A lost connection (`ErrorKind::Lost`) is opened again before the next request, without delay. The roots and the log
//! level are set again. Requests that only read, and calls of tools that were listed as read-only or idempotent, are
//! sent again within the limits of [`Retry`]; with `only_safe` off all requests are. A connection that can't be opened
//! fails the request.

mod retry;
mod subscription;

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::Deserialize;
use tokio::runtime::Handle;

pub use self::{retry::Retry, subscription::ReconnectingSubscription};
use crate::{
    client::{CallOptions, Client, ClientBuilder, Event, Operation, Reply},
    error::{Error, ErrorKind},
    peer::ListKind,
    protocol::{LoggingLevel, Raw, Root, SubscriptionFilter, ToolAnnotations},
    session::client::{ServerIdentity, took_too_long},
};

/// A function that returns a new builder for the same client.
pub type BuilderFactory = Box<dyn Fn() -> Result<ClientBuilder, Error> + Send + Sync>;

/// A client that connects again, or a plain one.
pub struct ReconnectingClient {
    current: Mutex<Client>,
    factory: Option<BuilderFactory>,
    retry: Retry,
    on_reconnected: Box<dyn Fn(Reconnected) + Send + Sync>,
    state: Mutex<State>,
    /// Held while the connection is opened again.
    reopening: tokio::sync::Mutex<()>,
    is_closed: AtomicBool,
    runtime: Handle,
}

/// The settings of the server that are made again, and what is known of its tools.
#[derive(Debug, Default)]
struct State {
    roots: Option<Vec<Root>>,
    log_level: Option<LoggingLevel>,
    repeatable: HashSet<String>,
}

/// The event that the server's state was lost and the client is connected again.
#[derive(Debug)]
pub struct Reconnected {
    /// The attempt of the request that opened the connection again, from 1.
    pub attempt: u32,
    /// The loss, of kind [`ErrorKind::Lost`].
    pub reason: Error,
    /// The server that was started; `None` if it is the same.
    pub server: Option<ServerIdentity>,
}

/// An event that concerns the client as a whole.
#[derive(Debug)]
pub enum Notice {
    /// A URL elicitation is finished; with its id.
    UrlDone(String),
    Reconnected(Box<Reconnected>),
    /// The connection is lost for good, with the reason.
    Lost(String),
}

impl Notice {
    /// Returns the notice of an event. `target` is the server's name in errors, and `reconnects` is true for a client that
    /// connects again.
    pub fn of(event: Event, target: &str, reconnects: bool) -> Option<Self> {
        match event {
            Event::UrlDone(elicitation) => Some(Self::UrlDone(elicitation)),
            Event::Renewed => {
                let message = format!(
                    "{target}: the server did not know the session any more, so a new one was begun"
                );
                let reason = Error::new(ErrorKind::Lost, message).with_target(target);
                let reason = reason.in_phase("call");
                let event = Reconnected { attempt: 1, reason, server: None };
                Some(Self::Reconnected(Box::new(event)))
            }
            Event::Closed(reason) if !reconnects => Some(Self::Lost(reason)),
            _ => None,
        }
    }
}

impl ReconnectingClient {
    /// Connects. `factory` is given if the connection is to be opened again when it is lost.
    pub async fn connect(
        builder: ClientBuilder,
        factory: Option<BuilderFactory>,
        retry: Retry,
        on_reconnected: impl Fn(Reconnected) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            current: Mutex::new(builder.connect().await?),
            factory,
            retry,
            on_reconnected: Box::new(on_reconnected),
            state: Mutex::default(),
            reopening: tokio::sync::Mutex::default(),
            is_closed: AtomicBool::new(false),
            runtime: Handle::current(),
        }))
    }

    /// Returns the client that is or was connected.
    pub fn current(&self) -> Client {
        lock(&self.current).clone()
    }

    /// Performs an operation, again if that is allowed after the connection was lost.
    pub async fn call(&self, operation: Operation, options: CallOptions) -> Result<Reply, Error> {
        if self.factory.is_none() {
            return self.current().call(operation, options).await;
        }
        let is_safe = self.is_safe(&operation);
        let call = |client: Client| {
            let (operation, options) = (operation.clone(), options.clone());
            async move { client.call(operation, options).await }
        };
        let limit = options.max_timeout;
        let reply = match limit {
            None => self.repeat(is_safe, call).await?,
            // A connection that is opened again counts, which no request's own limit covers.
            Some(limit) => tokio::time::timeout(limit, self.repeat(is_safe, call))
                .await
                .unwrap_or_else(|_| Err(took_too_long(operation.method().as_str(), limit)))?,
        };
        self.learn(&operation, &reply);
        Ok(reply)
    }

    /// Subscribes to changes. The subscription is made again when the connection is.
    pub async fn subscribe(
        self: &Arc<Self>,
        filter: SubscriptionFilter,
    ) -> Result<ReconnectingSubscription, Error> {
        ReconnectingSubscription::open(Arc::clone(self), filter).await
    }

    /// Sends a notification; where the connection is lost, once it is open again.
    pub fn notify(self: &Arc<Self>, method: &str, params: Raw) -> Result<(), Error> {
        let client = self.current();
        if !self.is_lost(&client) {
            return client.notify(method, params);
        }
        let (this, method) = (Arc::clone(self), method.to_owned());
        self.runtime.spawn(async move {
            let sent = this.reopened(1).await.and_then(|it| it.notify(&method, params));
            if let Err(error) = sent {
                tracing::warn!(%error, "a notification could not be sent");
            }
        });
        Ok(())
    }

    /// Replaces the roots, also for connections that are opened later.
    pub fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        let client = self.current();
        if !self.is_lost(&client) {
            client.set_roots(roots.clone())?;
        }
        lock(&self.state).roots = Some(roots);
        Ok(())
    }

    /// Closes the connection for good.
    pub async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.current().close().await;
    }

    /// Returns `true` if the connection is opened again once it is lost.
    fn reconnects(&self) -> bool {
        self.factory.is_some() && !self.is_closed.load(Ordering::SeqCst)
    }

    fn is_lost(&self, client: &Client) -> bool {
        self.reconnects() && !client.is_connected()
    }

    /// Sends a request until it does not fail because the connection is lost.
    async fn repeat<T, F>(&self, is_safe: bool, ask: impl Fn(Client) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut tries = self.retry.tries(is_safe);
        loop {
            let outcome = match self.reopened(tries.attempt()).await {
                Ok(client) => ask(client).await,
                Err(error) => Err(error),
            };
            let is_lost = matches!(&outcome, Err(error) if error.kind == ErrorKind::Lost);
            if !is_lost || !self.reconnects() || !tries.next() {
                return outcome;
            }
        }
    }

    /// Returns the connected client, which is connected again first if necessary. Concurrent callers wait for one attempt.
    async fn reopened(&self, attempt: u32) -> Result<Client, Error> {
        let (client, Some(factory)) = (self.current(), &self.factory) else {
            return Ok(self.current());
        };
        if !self.is_lost(&client) {
            return Ok(client);
        }
        let _turn = self.reopening.lock().await;
        let old = self.current();
        if !self.is_lost(&old) {
            return Ok(old);
        }
        // Every request at a lost connection fails with the reason.
        let lost = old.call(Operation::Ping, old.options()).await.err();
        let reason = lost.unwrap_or_else(|| Error::new(ErrorKind::Lost, "the connection was lost"));
        old.close().await;
        let fresh = factory()?.connect().await?;
        *lock(&self.current) = fresh.clone();
        if self.is_closed.load(Ordering::SeqCst) {
            fresh.close().await;
            return Ok(fresh);
        }
        let (roots, log_level) = {
            let state = lock(&self.state);
            (state.roots.clone(), state.log_level)
        };
        if let Some(roots) = roots {
            fresh.set_roots(roots)?;
        }
        if let Some(level) = log_level {
            fresh.set_log_level(level).await?;
        }
        let server = Some(fresh.server().clone());
        (self.on_reconnected)(Reconnected { attempt, reason, server });
        Ok(fresh)
    }

    /// Returns `true` for requests that may be sent twice.
    fn is_safe(&self, operation: &Operation) -> bool {
        match operation {
            Operation::List(_)
            | Operation::ListPage(..)
            | Operation::ReadResource { .. }
            | Operation::GetPrompt { .. }
            | Operation::Complete { .. }
            | Operation::Ping => true,
            Operation::CallTool { name, .. } => lock(&self.state).repeatable.contains(name),
            Operation::CallToolRound { .. }
            | Operation::SetLogLevel(_)
            | Operation::Request { .. } => false,
        }
    }

    fn learn(&self, operation: &Operation, reply: &Reply) {
        match operation {
            Operation::SetLogLevel(level) => lock(&self.state).log_level = Some(*level),
            Operation::List(ListKind::Tools) => {
                lock(&self.state).repeatable = repeatable(&reply.result);
            }
            _ => (),
        }
    }
}

/// Returns the names of the tools in a list that are marked read-only or idempotent.
fn repeatable(tools: &Raw) -> HashSet<String> {
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        annotations: Option<ToolAnnotations>,
    }
    let tools: Vec<Raw> = serde_json::from_str(tools.get()).unwrap_or_default();
    let tools = tools.iter().filter_map(|it| serde_json::from_str::<Listed>(it.get()).ok());
    let is_repeatable =
        |it: &ToolAnnotations| it.read_only_hint == Some(true) || it.idempotent_hint == Some(true);
    tools
        .filter(|it| it.annotations.as_ref().is_some_and(is_repeatable))
        .map(|it| it.name)
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ReconnectingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectingClient")
            .field("current", &self.current)
            .field("reconnects", &self.factory.is_some())
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}
