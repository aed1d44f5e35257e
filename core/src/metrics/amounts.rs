//! The amounts that an endpoint holds at the moment, beside their limits.

use std::{collections::BTreeMap, sync::Weak, time::Duration};

use serde::{Deserialize, Serialize};

/// A number and its limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Amount {
    pub now: usize,
    pub limit: usize,
}

/// The amounts that an endpoint holds.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)] // Processes of two versions may serve together during an update.
pub struct Amounts {
    /// Sessions in memory.
    pub sessions: Amount,
    /// Streams of sessions, and subscriptions.
    pub streams: usize,
    /// Requests that are not answered.
    pub in_flight: Amount,
    /// Handlers that wait for a later request.
    pub suspended: Amount,
    /// Connections that the server has accepted.
    pub connections: Amount,
    /// Bytes of unanswered requests.
    pub request_bytes: Amount,
    /// Bytes of suspended handlers.
    pub suspended_bytes: Amount,
    /// Bytes of requests that are being received.
    pub input_bytes: Amount,
    /// Bytes of answers that wait to be read.
    pub unread_bytes: Amount,
    /// The age of the keys of each issuer that were fetched.
    pub key_sets: BTreeMap<String, Duration>,
    /// The number of this process, if others serve the address as well and can't be asked for their numbers.
    pub worker: Option<u32>,
}

/// An endpoint that can be asked for its amounts.
pub trait HasAmounts: Send + Sync {
    fn amounts(&self) -> Amounts;
}

/// The endpoints of one server.
pub trait Endpoints: Send + Sync {
    /// Adds an endpoint.
    fn add(&self, endpoint: Weak<dyn HasAmounts>);

    /// Returns the amounts of each endpoint that is not gone.
    fn amounts(&self) -> Vec<Amounts>;
}

impl Amount {
    fn with(self, other: Self) -> Self {
        Self { now: self.now + other.now, limit: self.limit.saturating_add(other.limit) }
    }
}

impl Amounts {
    /// Returns the sums. Of two sets of keys of one issuer the older one counts.
    pub(super) fn with(self, other: Self) -> Self {
        let mut key_sets = self.key_sets;
        for (issuer, age) in other.key_sets {
            let oldest = key_sets.entry(issuer).or_default();
            *oldest = age.max(*oldest);
        }
        Self {
            sessions: self.sessions.with(other.sessions),
            streams: self.streams + other.streams,
            in_flight: self.in_flight.with(other.in_flight),
            suspended: self.suspended.with(other.suspended),
            connections: self.connections.with(other.connections),
            request_bytes: self.request_bytes.with(other.request_bytes),
            suspended_bytes: self.suspended_bytes.with(other.suspended_bytes),
            input_bytes: self.input_bytes.with(other.input_bytes),
            unread_bytes: self.unread_bytes.with(other.unread_bytes),
            key_sets,
            worker: self.worker.or(other.worker),
        }
    }
}
