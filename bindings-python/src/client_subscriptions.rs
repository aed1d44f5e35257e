//! The subscriptions of Python's clients, by the ticket of their request.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    task::Poll,
};

use gudgeon::{
    client::{Change, Subscription},
    error::Error,
};
use pyo3::{prelude::*, types::PyBytes};

use crate::{client_error::error_json, stream::lock};

#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<HashMap<u64, Arc<Subscription>>>);

/// The next event of a subscription.
pub(crate) enum Taken {
    Change(Change),
    /// The subscription has ended, with the reason.
    End(Option<Error>),
}

impl Held {
    pub(crate) fn keep(&self, ticket: u64, subscription: Subscription) {
        lock(&self.0).insert(ticket, Arc::new(subscription));
    }

    /// Closes the subscription; waiters receive its end.
    pub(crate) fn leave(&self, ticket: u64) {
        let left = lock(&self.0).remove(&ticket);
        if let Some(subscription) = left {
            subscription.close();
        }
    }

    /// Waits for the next event.
    pub(crate) fn ready(&self, ticket: u64) -> impl Future<Output = ()> + Send + 'static {
        let subscription = lock(&self.0).get(&ticket).cloned();
        async move {
            if let Some(subscription) = subscription {
                subscription.ready().await;
            }
        }
    }

    /// Returns the next event; `None` if there is none yet.
    pub(crate) fn take(&self, ticket: u64) -> Option<Taken> {
        let subscription = lock(&self.0).get(&ticket).cloned();
        match subscription.map(|it| it.try_next()) {
            Some(Poll::Pending) => None,
            Some(Poll::Ready(Some(Ok(change)))) => Some(Taken::Change(change)),
            Some(Poll::Ready(Some(Err(error)))) => Some(Taken::End(Some(error))),
            Some(Poll::Ready(None)) | None => Some(Taken::End(None)),
        }
    }
}

impl Taken {
    /// Returns `(kind, uri)`, `("failed", error)` or `("end", None)`.
    pub(crate) fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let tuple = match self {
            Self::Change(Change::List(list)) => (list.as_str(), None::<()>).into_pyobject(py),
            Self::Change(Change::Updated(uri)) => {
                return Ok(("updated", uri).into_pyobject(py)?.into_any());
            }
            Self::End(None) => ("end", None::<()>).into_pyobject(py),
            Self::End(Some(error)) => {
                let error = PyBytes::new(py, error_json(&error).as_bytes());
                return Ok(("failed", error).into_pyobject(py)?.into_any());
            }
        };
        tuple.map(Bound::into_any)
    }
}
