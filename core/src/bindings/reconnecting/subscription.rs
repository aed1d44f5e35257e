//! Subscriptions that are made again after the connection was lost.

use std::{
    sync::{Arc, Mutex},
    task::Poll,
    time::{Duration, Instant},
};

use super::{ReconnectingClient, lock};
use crate::{
    client::{Change, Client, Subscription},
    error::{Error, ErrorKind},
    peer::subscriptions::SubscriptionSettings,
    protocol::SubscriptionFilter,
};

/// The time that a connection must last to be opened once more; without it a server that always ends at once would be
/// started without end.
const MIN_LIFE: Duration = Duration::from_secs(1);

/// A stream of changes. After the connection was opened again everything counts as changed, because changes may have
/// been missed.
#[derive(Debug)]
pub struct ReconnectingSubscription {
    client: Arc<ReconnectingClient>,
    filter: SubscriptionFilter,
    state: Mutex<State>,
    /// Held while the subscription is made again.
    reopening: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    subscription: Arc<Subscription>,
    /// The time of the last reconnection.
    since: Option<Instant>,
    is_lost: bool,
    /// The error that ends the stream.
    failure: Option<Error>,
    is_closed: bool,
}

impl ReconnectingSubscription {
    pub(super) async fn open(
        client: Arc<ReconnectingClient>,
        filter: SubscriptionFilter,
    ) -> Result<Self, Error> {
        let subscription = Arc::new(subscribe(&client, &filter, false).await?);
        let (since, is_lost, failure, is_closed) = (None, false, None, false);
        let state = Mutex::new(State { subscription, since, is_lost, failure, is_closed });
        Ok(Self { client, filter, state, reopening: tokio::sync::Mutex::default() })
    }

    /// Returns the next change if there is one, without waiting.
    pub fn try_next(&self) -> Poll<Option<Result<Change, Error>>> {
        let mut state = lock(&self.state);
        if let Some(error) = state.failure.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if state.is_lost {
            return Poll::Pending;
        }
        match state.subscription.try_next() {
            Poll::Ready(Some(Err(error))) if self.reconnects(&state, &error) => {
                state.is_lost = true;
                Poll::Pending
            }
            next => next,
        }
    }

    /// Waits until [`Self::try_next`] may return a change or the end. Connects again if necessary.
    pub async fn ready(&self) {
        let (subscription, is_lost) = {
            let state = lock(&self.state);
            (Arc::clone(&state.subscription), state.is_lost)
        };
        if !is_lost {
            return subscription.ready().await;
        }
        let _turn = self.reopening.lock().await;
        if !lock(&self.state).is_lost {
            return;
        }
        let outcome = subscribe(&self.client, &self.filter, true).await;
        let mut state = lock(&self.state);
        state.is_lost = false;
        match outcome {
            Ok(subscription) => {
                if state.is_closed {
                    subscription.close();
                }
                state.subscription = Arc::new(subscription);
                state.since = Some(Instant::now());
            }
            Err(error) => state.failure = Some(error),
        }
    }

    /// Ends the subscription; a pending [`Self::ready`] returns.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        (state.is_closed, state.is_lost) = (true, false);
        state.subscription.close();
    }

    fn reconnects(&self, state: &State, error: &Error) -> bool {
        let is_quick = state.since.is_some_and(|it| it.elapsed() < MIN_LIFE);
        error.kind == ErrorKind::Lost && self.client.reconnects() && !state.is_closed && !is_quick
    }
}

async fn subscribe(
    client: &ReconnectingClient,
    filter: &SubscriptionFilter,
    may_have_missed: bool,
) -> Result<Subscription, Error> {
    let subscribe = |client: Client| async move {
        let timeout = client.options().timeout;
        let settings = SubscriptionSettings { timeout, may_have_missed, ..Default::default() };
        client.subscribe_with(filter, settings).await
    };
    client.repeat(true, subscribe).await
}
