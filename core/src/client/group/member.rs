//! A server of a group: its client, or the reason that there is none, and the attempts to connect.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use tokio::task::AbortHandle;

use crate::{
    client::{
        Client, ClientBuilder, Event, builder::UnconnectedClient, connected::lock,
        retry::with_jitter,
    },
    error::{Error, ErrorKind},
};

/// The delay before the second attempt to connect; each further one is twice as long, up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// A server of a group. While it can't be reached, it is tried again in the background.
#[derive(Debug)]
pub struct Member {
    pub(super) name: String,
    /// `None` if the options of the client are invalid.
    unconnected: Option<UnconnectedClient>,
    state: Mutex<State>,
    /// Held during an attempt to connect.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    client: Option<Client>,
    /// The number of attempts that ended.
    attempts: u32,
    /// The reason that the server can't be reached, or that its last list failed.
    error: Option<Arc<Error>>,
    /// True if no further attempt is made.
    is_final: bool,
    /// The task that tries again.
    retrying: Option<AbortHandle>,
}

impl Member {
    /// Errors if the options of the client are invalid. `builder` is one of [`ClientBuilder::for_group`].
    pub fn new(name: String, builder: ClientBuilder) -> Result<Arc<Self>, Error> {
        Ok(Self::with(name, Some(builder.prepare()?), State::default()))
    }

    /// Returns a server that can't be reached because of this error.
    pub fn failed(name: String, error: Error) -> Arc<Self> {
        let error = Some(Arc::new(error));
        Self::with(name, None, State { error, is_final: true, ..State::default() })
    }

    fn with(name: String, unconnected: Option<UnconnectedClient>, state: State) -> Arc<Self> {
        let (state, connecting) = (Mutex::new(state), tokio::sync::Mutex::default());
        Arc::new(Self { name, unconnected, state, connecting })
    }

    /// Returns the server's name in the group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connects to the server. After an error that may pass, it is tried again in the background.
    ///
    /// Must be called inside a tokio runtime.
    pub async fn connect(self: &Arc<Self>) -> Result<Client, Error> {
        let outcome = self.client().await;
        if let Err(error) = &outcome {
            tracing::warn!(server = ?self.name, %error, "a server of a group could not be reached");
            let mut state = lock(&self.state);
            if !state.is_final {
                let retrying = tokio::spawn(keep_trying(Arc::downgrade(self)));
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
        let attempts = match self.settled(None) {
            Ok(outcome) => return outcome,
            Err(attempts) => attempts,
        };
        let _turn = self.connecting.lock().await;
        match (self.settled(Some(attempts)), &self.unconnected) {
            // Boxed, so that the future of each call does not have the size of a handshake.
            (Err(_), Some(it)) => self.ended(it, Box::pin(it.connect()).await),
            (Err(_), None) => Err(self.closed()),
            (Ok(outcome), _) => outcome,
        }
    }

    /// Returns the outcome if no attempt is necessary, which is also the case if there was one since these `attempts`;
    /// else the number of attempts that ended.
    fn settled(&self, attempts: Option<u32>) -> Result<Result<Client, Error>, u32> {
        let state = lock(&self.state);
        match (&state.client, &state.error) {
            (Some(client), _) => Ok(Ok(client.clone())),
            (None, Some(error)) if state.is_final => Ok(Err(error.duplicate())),
            (None, Some(error)) if attempts.is_some_and(|it| it != state.attempts) => {
                Ok(Err(error.duplicate()))
            }
            _ if state.is_final => Ok(Err(self.closed())),
            _ => Err(state.attempts),
        }
    }

    fn closed(&self) -> Error {
        Error::new(ErrorKind::Lost, "the client is closed").with_target(&self.name)
    }

    /// Returns the reason that the server can't be reached, or that its last list failed.
    pub fn error(&self) -> Option<Arc<Error>> {
        lock(&self.state).error.clone()
    }

    /// Records whether the server answered.
    pub(super) fn report(&self, error: Option<Error>) {
        let mut state = lock(&self.state);
        if let Some(error) = &error
            && state.error.is_none()
        {
            tracing::warn!(server = ?self.name, %error, "a server of a group failed");
        }
        state.error = error.map(Arc::new);
    }

    /// Closes the client, and makes no further attempt to connect.
    pub async fn close(&self) {
        let client = {
            let mut state = lock(&self.state);
            state.is_final = true;
            state.stop_retrying();
            state.client.clone()
        };
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
                Err(error)
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
    let mut delay = FIRST_DELAY;
    loop {
        tokio::time::sleep(with_jitter(delay)).await;
        let Some(member) = member.upgrade() else { return };
        if member.client().await.is_ok() || lock(&member.state).is_final {
            return;
        }
        delay = (delay * 2).min(MAX_DELAY);
    }
}

/// Returns whether waiting may help, unlike against missing credentials or a server that speaks no common revision.
fn may_pass(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Auth | ErrorKind::Unsupported | ErrorKind::Misuse)
}
