//! The rule that no handler starts while its client leaves much unread, because its answer would only take memory.
//!
//! Hosts ask before they start a handler, and hand it back when it has to wait. They are given it again, in later work, once
//! the client has read, unless the call was cancelled in the meantime.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustc_hash::FxHashSet;

use super::{ledger::Ledger, sending::Sending};
use crate::{
    engine::{Run, RunId},
    http::{ConnectionId, Part},
};

/// Bytes that the reader of a message connection may leave unread before its handlers wait.
const MAX_UNREAD: usize = 4 * 1024 * 1024;
/// Up to so many bytes, messages are bounded by the input that is read before reading pauses.
const SMALL: usize = 16 * 1024;
/// The time until handlers that wait are looked at. It doubles while none may start.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(64);
/// The handlers that may start at once after they have waited: not all of them, because none of them has answered yet.
pub(super) const MAX_AT_ONCE: usize = 16;

/// The part of the state of unread answers that is seen without the lock.
#[derive(Debug)]
pub(super) struct Backlog {
    /// The bytes that exchanges and connections leave unread, by client.
    pub(super) unread: Arc<Ledger>,
    /// `true` if the reader of a message connection was found to leave too much unread.
    has_slow_reader: AtomicBool,
}

/// Message connections whose readers leave too much unread, and the handlers that wait.
pub(super) struct StartGate {
    backlog: Arc<Backlog>,
    slow_readers: FxHashSet<ConnectionId>,
    waiting: VecDeque<Run>,
    /// The time at which the waiting handlers are looked at next, and the interval that ends then.
    next_look: Option<Instant>,
    interval: Duration,
}

impl Backlog {
    pub(super) fn new(unread: &Arc<Ledger>) -> Arc<Self> {
        Arc::new(Self { unread: Arc::clone(unread), has_slow_reader: AtomicBool::new(false) })
    }

    /// Returns `false` if every handler may start.
    pub(super) fn exists(&self) -> bool {
        self.unread.is_half_full() || self.has_slow_reader.load(Ordering::Relaxed)
    }
}

impl StartGate {
    pub(super) fn new(backlog: Arc<Backlog>) -> Self {
        Self {
            backlog,
            slow_readers: FxHashSet::default(),
            waiting: VecDeque::new(),
            next_look: None,
            interval: FIRST_LOOK,
        }
    }

    /// Delivers a message to a connection, and notes whether its reader leaves too much unread now.
    pub(super) fn deliver(&mut self, id: ConnectionId, sending: &mut Sending, part: Part) {
        let is_small = matches!(&part, Part::Bytes(bytes) if bytes.len() <= SMALL);
        sending.deliver(part);
        if !is_small && sending.unread_bytes() > MAX_UNREAD {
            self.slow_readers.insert(id);
            self.backlog.has_slow_reader.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether handlers of this connection have to wait, as far as is known.
    pub(super) fn is_slow(&self, id: ConnectionId) -> bool {
        self.slow_readers.contains(&id)
    }

    /// Forgets the connections for which `unread` returns so little that their handlers may start.
    pub(super) fn look_at_readers(&mut self, unread: impl Fn(ConnectionId) -> usize) {
        self.slow_readers.retain(|id| unread(*id) > MAX_UNREAD);
        self.backlog.has_slow_reader.store(!self.slow_readers.is_empty(), Ordering::Relaxed);
    }

    /// Keeps a handler until its client has read.
    pub(super) fn keep(&mut self, now: Instant, run: Run) {
        self.waiting.push_back(run);
        self.next_look.get_or_insert(now + self.interval);
    }

    /// Forgets a handler whose call was cancelled.
    pub(super) fn forget(&mut self, run: RunId) {
        self.waiting.retain(|waiting| waiting.id != run);
    }

    /// Returns the time of the next look at the handlers that wait, if there are any.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    /// Returns whether it is time to look at the handlers that wait.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_look.is_some_and(|at| at <= now)
    }

    /// Takes the handlers that wait.
    pub(super) fn take(&mut self) -> VecDeque<Run> {
        self.next_look = None;
        std::mem::take(&mut self.waiting)
    }

    /// Keeps those of the taken handlers that may still not start.
    pub(super) fn keep_rest(
        &mut self,
        now: Instant,
        rest: VecDeque<Run>,
        has_started_others: bool,
    ) {
        self.interval = match has_started_others {
            true => FIRST_LOOK,
            false => MAX_INTERVAL.min(2 * self.interval),
        };
        for run in rest {
            self.keep(now, run);
        }
    }
}
