//! The subscriptions of JavaScript clients, by the number of their request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    task::Poll,
};

use gudgeon::{
    client::{Change, Subscription, describe},
    protocol::json::ObjectWriter,
};

use crate::shared::lock;

#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<u32, Arc<Subscription>>>);

impl Held {
    pub(super) fn keep(&self, number: u32, subscription: Subscription) {
        lock(&self.0).insert(number, Arc::new(subscription));
    }

    /// Closes the subscription; waiters receive its end.
    pub(super) fn leave(&self, number: u32) {
        let left = lock(&self.0).remove(&number);
        if let Some(subscription) = left {
            subscription.close();
        }
    }

    pub(super) fn leave_all(&self) {
        let left = std::mem::take(&mut *lock(&self.0));
        for subscription in left.into_values() {
            subscription.close();
        }
    }

    /// Waits for the next event.
    pub(super) fn ready(&self, number: u32) -> impl Future<Output = ()> + Send + 'static {
        let subscription = lock(&self.0).get(&number).cloned();
        async move {
            if let Some(subscription) = subscription {
                subscription.ready().await;
            }
        }
    }

    /// Returns `{"change": …}`, `{}` or `{"error": …}` at the end, or `None` if there is no event yet.
    pub(super) fn take(&self, number: u32) -> Option<String> {
        let subscription = lock(&self.0).get(&number).cloned();
        let mut taken = ObjectWriter::with_capacity(64);
        match subscription.map(|it| it.try_next()) {
            Some(Poll::Pending) => return None,
            Some(Poll::Ready(Some(Ok(change)))) => {
                let mut entry = ObjectWriter::with_capacity(64);
                match change {
                    Change::List(list) => entry.member("kind", list.as_str()),
                    Change::Updated(uri) => entry.member("kind", "updated").member("uri", &uri),
                };
                taken.raw("change", &entry.finish());
            }
            Some(Poll::Ready(Some(Err(error)))) => {
                taken.raw("error", &describe(&error, &error.message));
            }
            Some(Poll::Ready(None)) | None => (),
        }
        Some(taken.finish())
    }
}
