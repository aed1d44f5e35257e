//! The open subscriptions of a client or a group, by the number of the request that made them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use crate::{
    client::{Change, GroupSubscription, Subscription},
    error::Error,
};

/// Open subscriptions, by number.
#[derive(Debug, Default)]
pub struct OpenSubscriptions(Mutex<HashMap<u64, Arc<AnySubscription>>>);

/// A subscription of a client or a group.
#[derive(Debug)]
pub enum AnySubscription {
    Client(Subscription),
    Group(GroupSubscription),
}

/// The next event of a subscription.
#[derive(Debug)]
pub enum Taken {
    /// A change, in a group with the server's name.
    Change(Change, Option<String>),
    /// The subscription has ended, with the reason.
    End(Option<Error>),
}

impl OpenSubscriptions {
    /// Adds a subscription.
    pub fn keep(&self, number: u64, subscription: AnySubscription) {
        self.lock().insert(number, Arc::new(subscription));
    }

    /// Closes the subscription; waiters receive its end.
    pub fn leave(&self, number: u64) {
        let left = self.lock().remove(&number);
        if let Some(subscription) = left {
            subscription.close();
        }
    }

    /// Closes all subscriptions.
    pub fn leave_all(&self) {
        let left = std::mem::take(&mut *self.lock());
        for subscription in left.into_values() {
            subscription.close();
        }
    }

    /// Waits for the next event.
    pub fn ready(&self, number: u64) -> impl Future<Output = ()> + Send + 'static {
        let subscription = self.lock().get(&number).cloned();
        async move {
            match subscription.as_deref() {
                Some(AnySubscription::Client(it)) => it.ready().await,
                Some(AnySubscription::Group(it)) => it.ready().await,
                None => (),
            }
        }
    }

    /// Takes the next event; returns `None` if no event has arrived.
    pub fn take(&self, number: u64) -> Option<Taken> {
        let subscription = self.lock().get(&number).cloned();
        match subscription.map_or(Poll::Ready(Taken::End(None)), |subscription| subscription.take())
        {
            Poll::Ready(taken) => Some(taken),
            Poll::Pending => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<AnySubscription>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnySubscription {
    fn take(&self) -> Poll<Taken> {
        match self {
            Self::Client(it) => it.try_next().map(|next| match next {
                Some(Ok(change)) => Taken::Change(change, None),
                Some(Err(error)) => Taken::End(Some(error)),
                None => Taken::End(None),
            }),
            Self::Group(it) => it.try_next().map(|next| match next {
                Some((server, change)) => Taken::Change(change, Some(server)),
                None => Taken::End(None),
            }),
        }
    }

    fn close(&self) {
        match self {
            Self::Client(it) => it.close(),
            Self::Group(it) => it.close(),
        }
    }
}

impl From<Subscription> for AnySubscription {
    fn from(it: Subscription) -> Self {
        Self::Client(it)
    }
}

impl From<GroupSubscription> for AnySubscription {
    fn from(it: GroupSubscription) -> Self {
        Self::Group(it)
    }
}
