//! A member of a group of clients: it connects to one server, and while that fails, it tries again in the background.

use std::sync::{Arc, Mutex, Weak};

use tokio::{sync::watch, task::AbortHandle};

use super::backoff::Backoff;
use crate::{
    client::{Client, ClientBuilder, Event, builder::UnconnectedClient, connected::lock},
    driver::boxed,
    error::{Error, ErrorKind},
};

/// The client of one server. In a group it tries again in the background while the server can't be reached.
#[derive(Debug)]
pub struct Member {
    pub(super) name: String,
    /// `None` for a server that could not be started.
    unconnected: Option<UnconnectedClient>,
    state: Mutex<State>,
    /// Held during an attempt to connect.
    connecting: tokio::sync::Mutex<()>,
    /// Signals that the server was reached, or that this is closed or given up.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    client: Option<Client>,
    /// The number of attempts that ended.
    attempts: u32,
    /// The reason that the server can't be reached, or that its last list or subscription failed.
    error: Option<Arc<Error>>,
    /// True if no further attempt is made.
    is_final: bool,
    is_closed: bool,
    /// The task that tries again.
    retrying: Option<AbortHandle>,
}

impl Member {
    /// Returns an unconnected member. `builder` is one of [`ClientBuilder::for_group`], or else the client does not try
    /// again. Errors if the options of the client are invalid.
    pub fn new(name: String, builder: ClientBuilder) -> Result<Arc<Self>, Error> {
        let builder = if builder.keeps_trying { builder.stderr_named(&name) } else { builder };
        Ok(Self::with(name, Some(builder.prepare()?), State::default()))
    }

    /// Returns a member whose server could not be started, for this reason.
    pub fn failed(name: String, reason: &str) -> Arc<Self> {
        let message = format!("the server could not be started: {reason}");
        let error = Error::new(ErrorKind::Connect, message).with_target(&name);
        let error = Some(Arc::new(error));
        Self::with(name, None, State { error, is_final: true, ..State::default() })
    }

    fn with(name: String, unconnected: Option<UnconnectedClient>, state: State) -> Arc<Self> {
        let (state, connecting) = (Mutex::new(state), tokio::sync::Mutex::default());
        Arc::new(Self { name, unconnected, state, connecting, changed: watch::Sender::new(()) })
    }

    /// Returns the server's name in the group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connects to the server. In a group it is tried again in the background after an error that may pass.
    ///
    /// Must be called inside a tokio runtime.
    pub async fn connect(self: &Arc<Self>) -> Result<Client, Error> {
        let outcome = self.client().await;
        let is_grouped = self.unconnected.as_ref().is_some_and(|client| client.keeps_trying);
        if let Err(error) = &outcome
            && is_grouped
        {
            tracing::warn!(server = ?self.name, %error, "a server could not be reached");
            let mut state = lock(&self.state);
            if !state.is_final {
                let retrying = tokio::spawn(boxed(keep_trying(Arc::downgrade(self))));
                state.retrying = Some(retrying.abort_handle());
            }
        }
        outcome
    }

    /// Returns the client if it was connected; it may be lost meanwhile.
    pub fn connected(&self) -> Option<Client> {
        lock(&self.state).client.clone()
    }

    /// Returns the client; tries to connect if it is not connected. Concurrent callers wait for one attempt.
    pub async fn client(&self) -> Result<Client, Error> {
        let attempts = lock(&self.state).attempts;
        if let Some(outcome) = self.outcome(attempts) {
            return outcome;
        }
        let _turn = self.connecting.lock().await;
        match (self.outcome(attempts), &self.unconnected) {
            (Some(outcome), _) => outcome,
            // Boxed, so that the future of each call does not have the size of a handshake.
            (None, Some(it)) => self.ended(it, Box::pin(it.connect()).await),
            (None, None) => Err(self.closed()),
        }
    }

    /// Returns the outcome of connecting, also if an attempt failed after this number of `attempts`; `None` if another
    /// attempt is to be made.
    fn outcome(&self, attempts: u32) -> Option<Result<Client, Error>> {
        let state = lock(&self.state);
        match (&state.client, &state.error) {
            (Some(client), _) => Some(Ok(client.clone())),
            (None, Some(error)) if state.is_final || state.attempts != attempts => {
                Some(Err(error.duplicate()))
            }
            (None, _) => state.is_final.then(|| Err(self.closed())),
        }
    }

    fn closed(&self) -> Error {
        Error::new(ErrorKind::Lost, "the client is closed").with_target(&self.name)
    }

    /// Returns the reason that the server can't be reached, or that its last list or subscription failed.
    pub fn error(&self) -> Option<Arc<Error>> {
        lock(&self.state).error.clone()
    }

    /// Records whether the server answered.
    pub(super) fn report(&self, error: Option<Error>) {
        let mut state = lock(&self.state);
        if let Some(error) = &error
            && state.error.is_none()
        {
            tracing::warn!(server = ?self.name, %error, "a server failed");
        }
        state.error = error.map(Arc::new);
    }

    /// Closes the client, and makes no further attempt to connect.
    pub async fn close(&self) {
        let client = {
            let mut state = lock(&self.state);
            (state.is_final, state.is_closed) = (true, true);
            state.stop_retrying();
            state.client.clone()
        };
        self.changed.send_replace(());
        if let Some(client) = client {
            client.close().await;
        }
    }

    /// Records the outcome of an attempt.
    fn ended(
        &self,
        unconnected: &UnconnectedClient,
        outcome: Result<Client, Error>,
    ) -> Result<Client, Error> {
        let mut state = lock(&self.state);
        state.attempts += 1;
        match outcome {
            // Closed meanwhile: dropping the client closes its connection.
            Ok(_) if state.is_final => Err(self.closed()),
            Ok(client) => {
                state.client = Some(client.clone());
                let failed = state.error.take();
                let attempt = state.attempts;
                drop(state);
                self.changed.send_replace(());
                if let Some(reason) = failed {
                    let server = client.server();
                    let event = Event::Reconnected { attempt, reason, server };
                    unconnected.connector.hooks.notify(event);
                }
                Ok(client)
            }
            Err(error) => {
                state.is_final |= !(unconnected.can_try_again() && may_pass(&error));
                state.error = Some(Arc::new(error.duplicate()));
                drop(state);
                self.changed.send_replace(());
                Err(error)
            }
        }
    }

    /// Waits for the client to be connected; `None` once it is closed, or no further attempt is made.
    pub(crate) async fn reached(this: &Weak<Self>) -> Option<Client> {
        let mut changes = this.upgrade()?.changed.subscribe();
        loop {
            {
                let this = this.upgrade()?;
                let state = lock(&this.state);
                match &state.client {
                    _ if state.is_closed => return None,
                    Some(client) => return Some(client.clone()),
                    None if state.is_final => return None,
                    None => (),
                }
            }
            changes.changed().await.ok()?;
        }
    }

    /// Waits until the client is closed.
    pub(super) async fn until_closed(this: &Weak<Self>) {
        let Some(mut changes) = this.upgrade().map(|member| member.changed.subscribe()) else {
            return;
        };
        while this.upgrade().is_some_and(|member| !lock(&member.state).is_closed) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

impl State {
    fn stop_retrying(&mut self) {
        if let Some(task) = self.retrying.take() {
            task.abort();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.state).stop_retrying();
    }
}

async fn keep_trying(member: Weak<Member>) {
    let mut backoff = Backoff::new();
    loop {
        backoff.wait().await;
        let Some(member) = member.upgrade() else { return };
        if member.client().await.is_ok() || lock(&member.state).is_final {
            return;
        }
    }
}

/// Returns whether waiting may help, unlike against missing credentials or a server that speaks no common revision.
pub(super) fn may_pass(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Auth | ErrorKind::Unsupported | ErrorKind::Misuse)
}
