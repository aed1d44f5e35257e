//! Requests that survive an outage: the connection is opened again, and what may be sent twice is repeated.
//!
//! Over HTTP a request needs no connection of its own, and a lost session is renewed by the transport. Other
//! connections, and commands with [`ClientOptions::restart`](super::ClientOptions::restart), are opened again before
//! the next request. The roots and the log level are set again.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{runtime::Handle, sync::watch};

use super::{
    CallOptions, Event, Operation, OperationReply,
    connected::{Connected, Connector, lock},
    retry::{Attempts, is_outage},
    target::Reconnect,
};
use crate::{
    driver::boxed,
    error::{Error, ErrorKind},
    protocol::{MethodName, Raw, Root},
    session::client::took_too_long,
};

/// The time limit for listing tools after an outage, to learn whether the one that was called may be called again. The
/// error of the call waits for it.
const LOOKUP: Duration = Duration::from_secs(2);

/// The connection of a client, which all its clones share, and the way to open it again.
pub(super) struct Reconnecting {
    current: Mutex<Arc<Connected>>,
    connector: Arc<Connector>,
    /// The target to connect to again; `None` if the connection can't be opened again.
    target: Option<Reconnect>,
    /// Held while the connection is opened again.
    reopening: tokio::sync::Mutex<()>,
    is_closed: watch::Sender<bool>,
    runtime: Handle,
}

/// The rule for sending a request twice.
#[derive(Clone, Copy, Debug)]
enum Repetition<'a> {
    Allowed,
    Forbidden,
    /// Allowed if the server marks this tool, which is not known yet, as read-only or idempotent. It is looked up within
    /// the limits of the call.
    IfToolAllows(&'a str, &'a CallOptions),
}

impl Reconnecting {
    /// Must be called inside a tokio runtime.
    pub(super) fn new(
        connected: Arc<Connected>,
        connector: Arc<Connector>,
        target: Option<Reconnect>,
    ) -> Self {
        Self {
            current: Mutex::new(connected),
            connector,
            target,
            reopening: tokio::sync::Mutex::default(),
            is_closed: watch::Sender::new(false),
            runtime: Handle::current(),
        }
    }

    /// Returns the connection that is or was open.
    pub(super) fn current(&self) -> Arc<Connected> {
        Arc::clone(&lock(&self.current))
    }

    /// Performs an operation, again if that is allowed after an outage.
    pub(super) async fn perform(
        &self,
        operation: Operation,
        options: CallOptions,
    ) -> Result<OperationReply, Error> {
        let (operation, options) = (&operation, &options);
        let perform = |connected: Arc<Connected>| async move {
            connected.perform(operation, options.clone()).await
        };
        let repeat = self.repeat(Some((operation, options)), perform);
        let reply = match options.max_timeout.filter(|_| self.reconnects()) {
            None => repeat.await?,
            // A connection that is opened again counts, which no request's own limit covers.
            Some(limit) => tokio::time::timeout(limit, repeat).await.unwrap_or_else(|_| {
                let error = took_too_long(&operation.subject(), limit);
                Err(self.current().name(error))
            })?,
        };
        if let Operation::SetLogLevel(level) = operation {
            self.connector.keep_log_level(*level);
        }
        Ok(reply)
    }

    /// Makes attempts until one does not fail because of an outage, or the operation may not be repeated; `None` stands
    /// for a subscription.
    pub(super) async fn repeat<T, F>(
        &self,
        operation: Option<(&Operation, &CallOptions)>,
        attempt: impl Fn(Arc<Connected>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut attempts = Attempts::new(self.connector.options.retry);
        let mut known = None;
        loop {
            let outcome = match self.opened(attempts.number()).await {
                Ok(connected) => attempt(connected).await,
                Err(error) => Err(error),
            };
            let error = match outcome {
                Err(error) if is_outage(&error) && self.reconnects() => error,
                outcome => return outcome,
            };
            // The server may have been replaced by a newer version.
            self.current().known.clear_results();
            let repetition = known.get_or_insert_with(|| self.repetition(operation));
            if matches!(repetition, Repetition::Forbidden) {
                return Err(error);
            }
            loop {
                let Some(delay) = attempts.next() else { return Err(error) };
                self.pause(delay).await;
                let Repetition::IfToolAllows(name, options) = *repetition else { break };
                match Box::pin(self.is_repeatable(name, options, attempts.number())).await {
                    Ok(true) => *repetition = Repetition::Allowed,
                    Ok(false) => return Err(error),
                    // The server is still away.
                    Err(why) if is_outage(&why) => (),
                    Err(why) => {
                        tracing::debug!(%why, "the tools could not be listed");
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Sends a notification; where the connection is lost, once it is open again.
    pub(super) fn notify(self: &Arc<Self>, method: MethodName, params: Raw) -> Result<(), Error> {
        let connected = self.current();
        if !self.is_lost(&connected) {
            return connected.connection.notify(method, params);
        }
        let this = Arc::clone(self);
        self.runtime.spawn(boxed(async move {
            let sent = this
                .opened(1)
                .await
                .and_then(|connected| connected.connection.notify(method, params));
            if let Err(error) = sent {
                tracing::warn!(%error, "a notification could not be sent");
            }
        }));
        Ok(())
    }

    /// Replaces the roots, also for connections that are opened later.
    pub(super) fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        let connected = self.current();
        match self.is_lost(&connected) {
            true => self.connector.questions.set_roots(roots),
            false => connected.set_roots(roots),
        }
    }

    /// Closes the connection for good.
    pub(super) async fn close(&self) {
        self.is_closed.send_replace(true);
        self.current().connection.close().await;
    }

    /// Returns whether the connection is opened again once it is lost.
    fn reconnects(&self) -> bool {
        self.target.is_some() && !*self.is_closed.borrow()
    }

    /// Returns whether a connection is lost and will be opened again.
    pub(super) fn is_lost(&self, connected: &Connected) -> bool {
        !connected.connection.is_up() && self.reconnects()
    }

    /// Returns an open connection, which is opened again first if necessary. Concurrent callers wait for one attempt.
    async fn opened(&self, attempt: u32) -> Result<Arc<Connected>, Error> {
        let current = self.current();
        match self.target.as_ref().filter(|_| self.is_lost(&current)) {
            None => Ok(current),
            // Boxed, so that the future of each call does not have the size of a handshake.
            Some(target) => Box::pin(self.reopen(target, attempt)).await,
        }
    }

    async fn reopen(&self, target: &Reconnect, attempt: u32) -> Result<Arc<Connected>, Error> {
        let _turn = self.reopening.lock().await;
        let old = self.current();
        if !self.is_lost(&old) {
            return Ok(old);
        }
        // Every request at a lost connection fails with the reason.
        let lost = old.perform(&Operation::Ping, self.connector.calls()).await.err();
        let reason = lost.unwrap_or_else(|| Error::new(ErrorKind::Lost, "the connection was lost"));
        old.connection.close().await;
        let fresh = self.connector.connect(target.clone().into()).await?;
        fresh.expect_tools_of(&old);
        *lock(&self.current) = Arc::clone(&fresh);
        if *self.is_closed.borrow() {
            fresh.connection.close().await;
            return Ok(fresh);
        }
        let server = Arc::clone(fresh.connection.describe());
        let reason = Arc::new(reason);
        self.connector.hooks.notify(Event::Reconnected { attempt, reason, server });
        Ok(fresh)
    }

    /// Waits, but no longer than until the client is closed.
    async fn pause(&self, delay: Duration) {
        let mut closed = self.is_closed.subscribe();
        tokio::select! {
            () = tokio::time::sleep(delay) => (),
            _ = closed.wait_for(|is_closed| *is_closed) => (),
        }
    }

    fn repetition<'a>(
        &self,
        operation: Option<(&'a Operation, &'a CallOptions)>,
    ) -> Repetition<'a> {
        let only_safe = self.connector.options.retry.only_safe;
        let Some((operation, options)) = operation.filter(|_| only_safe) else {
            return Repetition::Allowed;
        };
        match operation {
            Operation::List(_)
            | Operation::ListPage(..)
            | Operation::ReadResource { .. }
            | Operation::GetPrompt { .. }
            | Operation::Complete { .. }
            | Operation::SetLogLevel(_)
            | Operation::Ping => Repetition::Allowed,
            Operation::CallTool { name, .. } => {
                match self.current().with_tools(|tools| tools.is_repeatable(name)) {
                    Some(true) => Repetition::Allowed,
                    Some(false) => Repetition::Forbidden,
                    None => Repetition::IfToolAllows(name, options),
                }
            }
            Operation::CallToolRound { .. } | Operation::Request { .. } => Repetition::Forbidden,
        }
    }

    /// Returns whether the server marks a tool as read-only or idempotent.
    async fn is_repeatable(
        &self,
        name: &str,
        options: &CallOptions,
        attempt: u32,
    ) -> Result<bool, Error> {
        let connected = self.opened(attempt).await?;
        let within =
            |limit: Option<Duration>| Some(limit.map_or(LOOKUP, |limit| limit.min(LOOKUP)));
        let limits = CallOptions {
            timeout: within(options.timeout),
            max_timeout: within(options.max_timeout),
            ..self.connector.calls()
        };
        connected.list_tools(limits).await?;
        Ok(connected.with_tools(|tools| tools.is_repeatable(name)).unwrap_or(false))
    }
}

impl fmt::Debug for Reconnecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconnecting")
            .field("current", &self.current)
            .field("target", &self.target.is_some())
            .finish_non_exhaustive()
    }
}
