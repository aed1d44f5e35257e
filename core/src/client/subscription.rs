//! Subscriptions of a client: a stream of changes, in both eras.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::{Notify, oneshot};

use super::{Client, ListKind, listeners::SubscriptionEvent};
use crate::{
    error::Error,
    peer::subscriptions::{Changes, Interests, SubscriptionKey, SubscriptionSettings},
    protocol::SubscriptionFilter,
    session::client::Change,
};

/// A stream of changes that the server notifies of, until it is dropped. It keeps the client's connection open.
///
/// A change that occurs again before it was taken is reported once. After an interruption everything in the filter is
/// reported as changed, because notifications may have been missed.
pub struct Subscription {
    shared: Arc<Shared>,
    key: SubscriptionKey,
    client: Client,
}

#[derive(Debug)]
struct Shared {
    unread: Mutex<Unread>,
    arrived: Notify,
}

#[derive(Debug)]
struct Unread {
    changes: Changes,
    /// The waker of the task that polls the stream.
    waker: Option<Waker>,
}

impl Client {
    /// Subscribes to changes of these lists and resources.
    ///
    /// The stream ends if the server ends the subscription regularly, and yields an error if it fails. In the modern
    /// era a broken subscription is re-established; before, it ends with the connection.
    ///
    /// # Errors
    /// [`Misuse`](crate::error::ErrorKind::Misuse) if there are none.
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported) if the server does not declare or acknowledge all of
    /// them. [`Timeout`](crate::error::ErrorKind::Timeout) if it does not respond within the client's `timeout`.
    ///
    /// Spec: Base Protocol › Patterns › Subscriptions (2026-07-28); Server Features › Resources › Subscriptions (before).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), gudgeon::error::Error> {
    /// use gudgeon::{Client, Resource, Server, client::Change};
    ///
    /// let shelf = Server::new("shelf").add(Resource::new("shelf://about", || async { Ok("two books") }));
    /// let client = Client::connect(&shelf).await?;
    /// let about = Change::Updated("shelf://about".into());
    /// let mut changes = client.subscribe([about.clone()]).await?;
    /// shelf.registry().notify_updated("shelf://about");
    /// assert_eq!(changes.next().await.expect("one change")?, about);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(
        &self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<Subscription, Error> {
        let settings = SubscriptionSettings {
            timeout: self.options.timeout,
            ..SubscriptionSettings::default()
        };
        self.subscribe_with(&changes.into_iter().collect(), settings).await
    }

    pub(crate) async fn subscribe_with(
        &self,
        filter: &SubscriptionFilter,
        settings: SubscriptionSettings,
    ) -> Result<Subscription, Error> {
        let interests = Interests::of(filter).map_err(|it| it.in_phase("subscribe"))?;
        let shared = Arc::new(Shared::new(interests.clone()));
        let (events, tools) = (Arc::clone(&shared), Arc::clone(&self.inner.tools));
        let (key, opened) = self.listen(interests, settings, move |it| {
            if matches!(it, SubscriptionEvent::Changed(Change::List(ListKind::Tools))) {
                tools.lock().unwrap_or_else(PoisonError::into_inner).forget();
            }
            events.on_event(it);
        })?;
        // Dropping the future here drops the subscription, which cancels it.
        let subscription = Subscription { shared, key, client: self.clone() };
        opened.await.unwrap_or_else(|_| Err(self.inner.connection.closed()))?;
        Ok(subscription)
    }

    pub(super) fn listen(
        &self,
        interests: Interests,
        settings: SubscriptionSettings,
        on_event: impl FnMut(SubscriptionEvent) + Send + 'static,
    ) -> Result<(SubscriptionKey, oneshot::Receiver<Result<(), Error>>), Error> {
        self.inner.connection.subscribe(interests, settings, Box::new(on_event))
    }
}

impl Subscription {
    /// Returns the next change, or `None` at the end. After an error the stream is over.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        loop {
            self.ready().await;
            if let Poll::Ready(next) = self.try_next() {
                return next;
            }
        }
    }

    /// Returns the next change if there is one, without waiting.
    #[doc(hidden)] // For the language bindings; programs use the stream.
    pub fn try_next(&self) -> Poll<Option<Result<Change, Error>>> {
        self.shared.lock().changes.take()
    }

    /// Waits until [`Self::try_next`] returns a change or the end.
    #[doc(hidden)] // For the language bindings; programs use the stream.
    pub async fn ready(&self) {
        loop {
            let arrived = self.shared.arrived.notified();
            let mut arrived = std::pin::pin!(arrived);
            arrived.as_mut().enable();
            if self.shared.lock().changes.is_ready() {
                return;
            }
            arrived.await;
        }
    }

    /// Ends the subscription, as dropping it does; a pending [`Self::next`] returns `None`.
    pub fn close(&self) {
        self.client.inner.connection.unsubscribe(self.key);
        self.shared.on_event(SubscriptionEvent::Ended(None));
    }
}

impl futures_util::Stream for Subscription {
    type Item = Result<Change, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut unread = self.shared.lock();
        let next = unread.changes.take();
        if next.is_pending() {
            unread.waker = Some(context.waker().clone());
        }
        next
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.client.inner.connection.unsubscribe(self.key);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(interests: Interests) -> Self {
        let unread = Unread { changes: Changes::new(interests), waker: None };
        Self { unread: Mutex::new(unread), arrived: Notify::new() }
    }

    fn on_event(&self, event: SubscriptionEvent) {
        let mut unread = self.lock();
        match event {
            SubscriptionEvent::Changed(change) => unread.changes.push(change),
            SubscriptionEvent::Ended(why) => unread.changes.end(why),
        }
        let waker = unread.waker.take();
        drop(unread);
        self.arrived.notify_waiters();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
