//! Counts of the resources that clients occupy on an endpoint: in total and for each client.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    metrics::Amount,
    protocol::{ClientKey, Shares},
};

/// The bytes of a message that are not counted, so that small messages take no lock.
const SMALL_MESSAGE: usize = 16 * 1024;
/// The maximum number of counted bytes of unfinished messages.
const MAX_INPUT: usize = 128 * 1024 * 1024;
/// The maximum number of counted bytes of unread answers.
const MAX_UNREAD: usize = 256 * 1024 * 1024;

/// The number of files that count where a process may open any number.
#[cfg(feature = "http")]
const MAX_FILES: usize = 1024 * 1024;

/// The ledgers of one endpoint.
#[derive(Debug)]
pub struct Ledgers {
    /// Bytes of messages that clients have begun to send and not finished.
    pub(crate) input: Arc<Ledger>,
    /// Bytes of answers that clients have not read.
    pub(crate) unread: Arc<Ledger>,
    /// Connections to addresses at which the server listens.
    #[cfg(feature = "http")]
    pub(crate) connections: Arc<Ledger>,
}

/// The amounts that clients hold of one resource, which they share.
#[derive(Debug)]
pub(crate) struct Ledger {
    max: usize,
    /// The part of each holding that is not counted.
    free: usize,
    /// The amount that all hold together. Changed under the lock only, and read without it.
    total: AtomicUsize,
    shares: Mutex<Shares>,
}

/// The amount that a client occupies for one purpose, such as the received part of a message. Dropping it releases the amount.
#[derive(Debug)]
pub struct Holding {
    ledger: Arc<Ledger>,
    client: Option<ClientKey>,
    counted: usize,
}

impl Default for Ledgers {
    fn default() -> Self {
        Self {
            input: Ledger::new(MAX_INPUT, SMALL_MESSAGE),
            unread: Ledger::new(MAX_UNREAD, SMALL_MESSAGE),
            #[cfg(feature = "http")]
            connections: Ledger::new(max_connections(), 0),
        }
    }
}

/// Returns three quarters of the files that this process may open: handlers need some too, and other clients.
#[cfg(feature = "http")]
fn max_connections() -> usize {
    #[cfg(unix)]
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let files = None;
    let files = files.and_then(|limit: u64| limit.try_into().ok()).unwrap_or(MAX_FILES);
    files.min(MAX_FILES) / 4 * 3
}

impl Ledger {
    pub(crate) fn new(max: usize, free: usize) -> Arc<Self> {
        let shares = Mutex::new(Shares::new(max));
        Arc::new(Self { max, free, total: AtomicUsize::new(0), shares })
    }

    /// Returns whether at least half of the maximum is occupied. From then on, clients with their share of that half may start
    /// no new requests; the other half is reserved for answers to requests in progress.
    pub(crate) fn is_half_full(&self) -> bool {
        self.total.load(Ordering::Relaxed) >= self.max / 2
    }

    /// Returns whether this client holds its share of half of the maximum.
    pub(crate) fn has_half_share(&self, client: Option<ClientKey>) -> bool {
        self.lock().has_half_share(client)
    }

    fn replace(&self, client: Option<ClientKey>, before: usize, after: usize) -> bool {
        let mut shares = self.lock();
        let has_room = shares.replace(client, before, after);
        self.total.store(shares.total(), Ordering::Relaxed);
        has_room
    }

    /// Returns the occupied amount, with its maximum.
    pub(crate) fn amount(&self) -> Amount {
        Amount { now: self.total.load(Ordering::Relaxed), limit: self.max }
    }

    #[cfg(all(test, feature = "http"))]
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding {
    /// Creates an empty holding of this client.
    pub(crate) fn new(ledger: &Arc<Ledger>, client: Option<ClientKey>) -> Self {
        Self { ledger: Arc::clone(ledger), client, counted: 0 }
    }

    /// Sets the amount. Returns `false` and changes nothing if there is no room for it.
    #[must_use = "what has no room must not be held"]
    pub fn set(&mut self, amount: usize) -> bool {
        let after = amount.saturating_sub(self.ledger.free);
        let has_room =
            after == self.counted || self.ledger.replace(self.client, self.counted, after);
        if has_room {
            self.counted = after;
        }
        has_room
    }

    /// Returns whether nothing of it is counted.
    pub fn is_empty(&self) -> bool {
        self.counted == 0
    }

    /// Reduces the amount to zero.
    pub fn clear(&mut self) {
        drop(self.take());
    }

    /// Moves the amount to a holding of its own.
    #[must_use = "dropping it releases the amount"]
    pub fn take(&mut self) -> Self {
        let counted = std::mem::take(&mut self.counted);
        Self { ledger: Arc::clone(&self.ledger), client: self.client, counted }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.ledger.replace(self.client, self.counted, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Option<ClientKey> = Some(ClientKey::V4(1));
    const BOB: Option<ClientKey> = Some(ClientKey::V4(2));
    const MAX: usize = 1_000;
    const FREE: usize = 10;

    #[test]
    fn a_client_that_holds_everything_leaves_room_to_others() {
        let ledger = Ledger::new(MAX, FREE);
        let mut all = Holding::new(&ledger, ADA);
        assert!(all.set(MAX + FREE));
        assert!(!all.set(MAX + FREE + 1));
        let mut more = Holding::new(&ledger, ADA);
        assert!(more.set(FREE), "small amounts are not counted");
        assert!(!more.set(FREE + 1));
        let mut other = Holding::new(&ledger, BOB);
        assert!(other.set(MAX / 2 + FREE));
        assert!(!other.set(MAX / 2 + FREE + 1));
        drop(all);
        assert!(other.set(MAX / 2 + FREE + 1));
        drop((more, other));
        assert_eq!(ledger.total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_client_with_its_share_of_one_half_should_begin_nothing_new() {
        let ledger = Ledger::new(MAX, 0);
        let mut ada = Holding::new(&ledger, ADA);
        assert!(ada.set(MAX / 2 - 1) && !ledger.is_half_full());
        assert!(ada.set(MAX / 2) && ledger.is_half_full());
        assert!(ledger.has_half_share(ADA) && !ledger.has_half_share(BOB));
        let mut bob = Holding::new(&ledger, BOB);
        assert!(bob.set(MAX / 4) && ledger.has_half_share(BOB));
        assert!(bob.set(MAX / 4 - 1) && !ledger.has_half_share(BOB));
    }

    #[test]
    fn a_holding_that_ends_gives_its_amount_back() {
        let ledger = Ledger::new(MAX, FREE);
        let mut holding = Holding::new(&ledger, None);
        for _ in 0..3 {
            assert!(holding.set(MAX));
            let taken = holding.take();
            assert!(!holding.set(MAX));
            drop(taken);
            assert!(holding.set(MAX));
            assert!(holding.set(0));
        }
        assert_eq!(ledger.total.load(Ordering::Relaxed), 0);
    }
}
