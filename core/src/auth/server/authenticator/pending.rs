//! The requests whose authentication waits.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    AuthTicket,
    attempt::{Attempt, Waiting},
};
use crate::protocol::{ClientKey, Shares};

/// The time in which a pending request is decided.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum number of pending requests.
const MAX_PENDING: usize = 1_000;

/// The requests whose authentication waits, in the order of their tickets, which is the order of their deadlines.
#[derive(Debug)]
pub(super) struct Pending {
    attempts: BTreeMap<AuthTicket, Attempt>,
    shares: Shares,
}

impl Default for Pending {
    fn default() -> Self {
        Self { attempts: BTreeMap::new(), shares: Shares::new(MAX_PENDING) }
    }
}

impl Pending {
    /// Returns whether another request of this client may wait.
    pub(super) fn has_room_for(&self, client: Option<ClientKey>) -> bool {
        self.shares.has_room_for(client)
    }

    pub(super) fn insert(&mut self, ticket: AuthTicket, attempt: Attempt) {
        self.shares.add(attempt.client);
        self.attempts.insert(ticket, attempt);
    }

    pub(super) fn get(&self, ticket: AuthTicket) -> Option<&Attempt> {
        self.attempts.get(&ticket)
    }

    pub(super) fn remove(&mut self, ticket: AuthTicket) -> Option<Attempt> {
        let attempt = self.attempts.remove(&ticket)?;
        self.shares.remove(attempt.client);
        Some(attempt)
    }

    /// Returns the time at which the next request is refused.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.attempts.values().next().map(|attempt| attempt.deadline)
    }

    /// Removes a request whose deadline has come.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<(AuthTicket, Attempt)> {
        let (ticket, _) =
            self.attempts.first_key_value().filter(|(_, attempt)| attempt.deadline <= now)?;
        let ticket = *ticket;
        self.remove(ticket).map(|attempt| (ticket, attempt))
    }

    /// Returns the requests that wait for this.
    pub(super) fn waiting(&self, event: Waiting) -> impl Iterator<Item = (AuthTicket, &Attempt)> {
        let waits = move |entry: &(&AuthTicket, &Attempt)| entry.1.waits_for == Some(event);
        self.attempts.iter().filter(waits).map(|(ticket, attempt)| (*ticket, attempt))
    }
}
