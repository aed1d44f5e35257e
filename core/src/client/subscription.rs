//! Subscriptions of a client: a stream of changes, in both eras.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::{
    Client,
    connected::{Connected, lock},
    listeners::SubscriptionEvent,
    reconnect::Reconnecting,
    unread::UnreadQueue,
};
use crate::{
    clock,
    driver::boxed,
    error::{Error, ErrorKind},
    peer::subscriptions::{Changes, Interests, SubscriptionKey, SubscriptionSettings},
    protocol::SubscriptionFilter,
    session::client::Change,
};

/// The time that a connection must last to be opened once more on behalf of a subscription; without it a server that
/// always ends at once would be started without end.
const MIN_LIFE: Duration = Duration::from_secs(1);

/// A stream of changes that the server notifies of, until it is dropped. It keeps the client's connection open.
///
/// A change that occurs again before it was taken is reported once. After an interruption everything in the filter is
/// reported as changed, because notifications may have been missed.
pub struct Subscription {
    shared: Arc<Shared>,
    /// Keeps the connection open.
    _client: Client,
}

#[derive(Debug)]
struct Shared {
    interests: Interests,
    timeout: Option<Duration>,
    unread: UnreadQueue<Changes>,
    source: Mutex<Source>,
}

/// The connection that the changes come from.
#[derive(Debug, Default)]
struct Source {
    current: Option<(Arc<Connected>, SubscriptionKey)>,
    /// The time of the last reconnection.
    since: Option<Instant>,
    is_closed: bool,
}

impl Client {
    /// Subscribes to changes of these lists and resources.
    ///
    /// The stream ends if the server ends the subscription regularly, and yields an error if it fails. A subscription that
    /// breaks is established again, in the modern era also over the same connection.
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
        self.subscribe_to(&changes.into_iter().collect()).await
    }

    /// Like [`Self::subscribe`], with the filter of the protocol.
    #[doc(hidden)] // For the language bindings.
    pub async fn subscribe_to(&self, filter: &SubscriptionFilter) -> Result<Subscription, Error> {
        let interests =
            Interests::from_filter(filter).map_err(|error| error.in_phase("subscribe"))?;
        let shared = Arc::new(Shared::new(interests, self.options.timeout));
        // Dropping the future drops the subscription, which cancels it.
        let subscription = Subscription { shared, _client: self.clone() };
        subscription.shared.open(&self.reconnecting, false).await?;
        Ok(subscription)
    }
}

impl Subscription {
    /// Returns the next change, or `None` at the end. After an error the stream is over.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Change, Error>> {
        self.shared.unread.next().await
    }

    /// Returns the next change if there is one, without waiting.
    #[doc(hidden)] // For the language bindings; programs use the stream.
    pub fn try_next(&self) -> Poll<Option<Result<Change, Error>>> {
        self.shared.unread.try_next()
    }

    /// Waits until [`Self::try_next`] returns a change or the end.
    #[doc(hidden)] // For the language bindings; programs use the stream.
    pub async fn ready(&self) {
        self.shared.unread.ready().await;
    }

    /// Ends the subscription; a pending [`Self::ready`] returns.
    #[doc(hidden)] // For the language bindings; programs drop the stream.
    pub fn close(&self) {
        self.shared.close();
        self.shared.end(None);
    }
}

impl futures_util::Stream for Subscription {
    type Item = Result<Change, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.shared.unread.poll_next(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(interests: Interests, timeout: Option<Duration>) -> Self {
        let unread = UnreadQueue::new(Changes::new(interests.clone()));
        Self { interests, timeout, unread, source: Mutex::default() }
    }

    /// Subscribes over an open connection, which is opened again first if necessary.
    async fn open(
        self: &Arc<Self>,
        client: &Arc<Reconnecting>,
        may_have_missed: bool,
    ) -> Result<(), Error> {
        let subscribe = |connected: Arc<Connected>| async move {
            let timeout = self.timeout;
            let settings = SubscriptionSettings { timeout, may_have_missed, ..Default::default() };
            let (shared, client) = (Arc::clone(self), Arc::downgrade(client));
            let source = Arc::downgrade(&connected);
            let on_event = move |event| {
                if let SubscriptionEvent::Changed(change) = &event
                    && let Some(connected) = source.upgrade()
                {
                    connected.known.changed(change);
                }
                shared.on_event(event, &client);
            };
            let interests = self.interests.clone();
            let connection = &connected.connection;
            let (key, opened) = connection.subscribe(interests, settings, Box::new(on_event))?;
            self.follow(&connected, key);
            opened.await.unwrap_or_else(|_| Err(connection.closed()))
        };
        client.repeat(None, subscribe).await
    }

    /// Takes changes from this connection from now on.
    fn follow(&self, connected: &Arc<Connected>, key: SubscriptionKey) {
        let mut source = lock(&self.source);
        match source.is_closed {
            true => connected.connection.unsubscribe(key),
            false => source.current = Some((Arc::clone(connected), key)),
        }
    }

    fn on_event(self: &Arc<Self>, event: SubscriptionEvent, client: &Weak<Reconnecting>) {
        match event {
            SubscriptionEvent::Changed(change) => {
                self.unread.update(|changes| changes.push(change));
            }
            SubscriptionEvent::Ended(Some(error)) => match client.upgrade() {
                Some(client) if self.may_reopen(&error, &client) => {
                    tokio::spawn(boxed(Arc::clone(self).reopen(client)));
                }
                _ => self.end(Some(error)),
            },
            SubscriptionEvent::Ended(None) => self.end(None),
        }
    }

    fn may_reopen(&self, error: &Error, client: &Reconnecting) -> bool {
        let source = lock(&self.source);
        let is_quick = source.since.is_some_and(|start| clock::since(start) < MIN_LIFE);
        // Over an open connection the subscription was renewed as far as that is possible.
        let is_lost = client.is_lost(&client.current());
        error.kind == ErrorKind::Lost && is_lost && !source.is_closed && !is_quick
    }

    async fn reopen(self: Arc<Self>, client: Arc<Reconnecting>) {
        match self.open(&client, true).await {
            Ok(()) => lock(&self.source).since = Some(clock::now()),
            Err(error) => self.end(Some(error)),
        }
    }

    /// Cancels the subscription.
    fn close(&self) {
        let mut source = lock(&self.source);
        source.is_closed = true;
        if let Some((connected, key)) = source.current.take() {
            connected.connection.unsubscribe(key);
        }
    }

    fn end(&self, why: Option<Error>) {
        self.unread.update(|changes| changes.end(why));
    }
}
