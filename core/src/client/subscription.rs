//! What a client is told of changes: something to iterate over, in every era.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::{Notify, oneshot};

use super::{Client, ListKind, listeners::News};
use crate::{
    error::Error,
    peer::subscriptions::{Changes, Interests, SubscriptionKey, SubscriptionSettings},
    protocol::SubscriptionFilter,
    session::client::Change,
};

/// Changes that the server tells of, until it is dropped. It keeps its client's connection open.
///
/// A change that comes again before it was taken is one change. Where the connection broke and was made again,
/// everything that was asked for counts as changed: it may have, while nobody listened.
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
    /// Of whoever polls the stream.
    waker: Option<Waker>,
}

impl Client {
    /// Changes of the resources and lists that the filter names, from now on.
    ///
    /// What a server ends well ends the iteration; what it tears down is an error with its reason. One that breaks is
    /// taken up again in the modern era; before, it ends with the connection.
    ///
    /// # Errors
    /// [`Misuse`](crate::error::ErrorKind::Misuse): the filter is empty.
    /// [`Unsupported`](crate::error::ErrorKind::Unsupported): the server did not declare that it tells of all this, or
    /// does not acknowledge it. [`Timeout`](crate::error::ErrorKind::Timeout): it does not answer within the client's
    /// `timeout`.
    ///
    /// Spec: Base Protocol › Patterns › Subscriptions (2026-07-28); Server Features › Resources › Subscriptions (before).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), gudgeon::error::Error> {
    /// use gudgeon::{Client, Resource, Server, client::Change, protocol::SubscriptionFilter};
    ///
    /// let shelf = Server::new("shelf").add(Resource::new("shelf://about", || async { Ok("two books") }));
    /// let client = Client::connect(&shelf).await?;
    /// let mut changes = client.subscribe(SubscriptionFilter::default().uri("shelf://about")).await?;
    /// shelf.registry().notify_updated("shelf://about");
    /// let change = changes.next().await.expect("one change")?;
    /// assert_eq!(change, Change::Updated("shelf://about".into()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(&self, filter: SubscriptionFilter) -> Result<Subscription, Error> {
        let timeout = self.inner.options.timeout;
        self.subscribe_with(filter, SubscriptionSettings { timeout, ..Default::default() }).await
    }

    /// As [`Self::subscribe`], with settings of its own.
    pub async fn subscribe_with(
        &self,
        filter: SubscriptionFilter,
        settings: SubscriptionSettings,
    ) -> Result<Subscription, Error> {
        let interests = Interests::of(&filter).map_err(|it| it.in_phase("subscribe"))?;
        let shared = Arc::new(Shared::new(interests.clone()));
        let (news, tools) = (Arc::clone(&shared), Arc::clone(&self.inner.tools));
        let (key, opened) = self.listen(interests, settings, move |it| {
            if matches!(it, News::Changed(Change::List(ListKind::Tools))) {
                tools.lock().unwrap_or_else(PoisonError::into_inner).forget();
            }
            news.take_in(it);
        })?;
        // Dropped while it waits, it is taken back.
        let subscription = Subscription { shared, key, client: self.clone() };
        opened.await.unwrap_or_else(|_| Err(self.inner.connection.closed()))?;
        Ok(subscription)
    }

    pub(super) fn listen(
        &self,
        interests: Interests,
        settings: SubscriptionSettings,
        on_news: impl FnMut(News) + Send + 'static,
    ) -> Result<(SubscriptionKey, oneshot::Receiver<Result<(), Error>>), Error> {
        self.inner.connection.subscribe(interests, settings, Box::new(on_news))
    }
}

impl Subscription {
    /// The next change; `None` at the end. An error is the last thing that it gives.
    ///
    /// Loses nothing when dropped half-way.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        loop {
            self.ready().await;
            if let Poll::Ready(next) = self.try_next() {
                return next;
            }
        }
    }

    /// What [`Self::next`] would give, if it would not wait.
    pub fn try_next(&self) -> Poll<Option<Result<Change, Error>>> {
        self.shared.lock().changes.take()
    }

    /// Waits until [`Self::try_next`] has something, be it the end.
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

    /// Leaves it, as dropping it does; whoever waits for a change finds the end.
    pub fn close(&self) {
        self.client.inner.connection.unsubscribe(self.key);
        self.shared.take_in(News::Ended(None));
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

    fn take_in(&self, news: News) {
        let mut unread = self.lock();
        match news {
            News::Changed(change) => unread.changes.push(change),
            News::Ended(why) => unread.changes.end(why),
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
