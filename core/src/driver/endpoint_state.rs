//! An endpoint with one outbox for each exchange and each message connection. A lock of the driver's guards all of it.

use std::{collections::HashSet, time::Instant};

use rustc_hash::FxHashMap;

use super::{Work, work::Step};
use crate::{
    clock,
    http::{ConnectionId, Endpoint, EndpointInput, EndpointOutput, ExchangeId, Part, Reader},
};

/// Bytes of unread changes above which the subscription of a stream ends.
const MAX_CHANGES_ON_STREAM: usize = 1024 * 1024;
/// Bytes of unread changes above which the subscriptions of a connection end. It is higher because changes wait behind
/// answers there.
const MAX_CHANGES_ON_CONNECTION: usize = 4 * 1024 * 1024;

/// A receiver of the pieces of one response, in order. It is called under a lock, so it only stores the piece and wakes its
/// reader.
pub trait Outbox: Send {
    fn deliver(&mut self, part: Part);
    /// Ends a message connection whose access token has expired.
    fn expire(&mut self) {
        self.deliver(Part::End);
    }
    /// Returns the bytes that were delivered and not yet taken to be written.
    fn unread(&self) -> usize;
}

/// One endpoint and the outboxes of its readers.
pub(super) struct EndpointState<H> {
    pub(super) endpoint: Endpoint<H>,
    pub(super) exchanges: FxHashMap<ExchangeId, Sending>,
    pub(super) connections: FxHashMap<ConnectionId, Sending>,
    /// Lines for the log that no caller could take yet.
    pub(super) reports: Vec<String>,
    /// The time for which the shell's timer is set.
    pub(super) armed: Option<Instant>,
}

impl<H: Clone> EndpointState<H> {
    pub(super) fn new(endpoint: Endpoint<H>) -> Self {
        Self {
            endpoint,
            exchanges: FxHashMap::default(),
            connections: FxHashMap::default(),
            reports: Vec::new(),
            armed: None,
        }
    }

    pub(super) fn handle(&mut self, input: EndpointInput<'_, H>) -> Step<H> {
        let now = clock::now();
        self.endpoint.handle(now, input);
        let reports = std::mem::take(&mut self.reports);
        let mut step = Step::new(Work::reporting(reports));
        while let Some(output) = self.endpoint.poll() {
            let lagging = match output {
                EndpointOutput::Exchange(id, part) => {
                    let is_last = matches!(part, Part::End | Part::Head { more: false, .. });
                    if is_last {
                        if let Some(mut sending) = self.exchanges.remove(&id) {
                            sending.outbox.deliver(part);
                        }
                    } else if let Some(sending) = self.exchanges.get_mut(&id) {
                        sending.deliver(part);
                    }
                    None
                }
                EndpointOutput::Connection(id, part) => {
                    if let Some(sending) = self.connections.get_mut(&id) {
                        sending.deliver(part);
                    }
                    None
                }
                EndpointOutput::Expired(id) => {
                    if let Some(sending) = self.connections.get_mut(&id) {
                        sending.outbox.expire();
                    }
                    None
                }
                EndpointOutput::Change(reader, bytes) => {
                    let (sending, limit) = match reader {
                        Reader::Exchange(id) => {
                            (self.exchanges.get_mut(&id), MAX_CHANGES_ON_STREAM)
                        }
                        Reader::Connection(id) => {
                            (self.connections.get_mut(&id), MAX_CHANGES_ON_CONNECTION)
                        }
                    };
                    let is_lagging = sending.is_some_and(|it| it.change(bytes, limit));
                    is_lagging.then_some(reader)
                }
                EndpointOutput::Effect(effect) => {
                    step.add(effect);
                    None
                }
            };
            if let Some(reader) = lagging {
                self.endpoint.handle(now, EndpointInput::Lagging(reader));
            }
        }
        let deadline = self.endpoint.deadline();
        if deadline.is_some_and(|it| self.armed.is_none_or(|armed| it < armed)) {
            self.armed = deadline;
            step.work.wake = deadline;
        }
        step
    }
}

/// The output for one reader.
pub(super) struct Sending {
    outbox: Box<dyn Outbox>,
    /// Changes that were delivered and not yet taken.
    changes: Option<Box<Changes>>,
}

#[derive(Default)]
struct Changes {
    delivered: HashSet<Vec<u8>>,
    bytes: usize,
}

impl Sending {
    pub(super) fn to(outbox: Box<dyn Outbox>) -> Self {
        Self { outbox, changes: None }
    }

    fn deliver(&mut self, part: Part) {
        self.forget_taken();
        self.outbox.deliver(part);
    }

    /// Delivers a change, unless an equal one waits. Returns whether the waiting changes exceed `limit` bytes with it.
    fn change(&mut self, bytes: Vec<u8>, limit: usize) -> bool {
        self.forget_taken();
        let changes = self.changes.get_or_insert_default();
        if !changes.delivered.insert(bytes.clone()) {
            return false;
        }
        let before = changes.bytes;
        changes.bytes += bytes.len();
        let is_lagging = before <= limit && changes.bytes > limit;
        self.outbox.deliver(Part::Bytes(bytes));
        is_lagging
    }

    /// Forgets the changes once the reader has taken everything.
    fn forget_taken(&mut self) {
        if self.outbox.unread() == 0 {
            self.changes = None;
        }
    }
}
