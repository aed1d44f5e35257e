//! Output that waits until the store has what it promises. The id of an event promises that its stream can be resumed after it, and
//! the answer to a subscription that changes will be told, also when this process is gone.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::{
    Endpoint, EndpointOutput, ExchangeId, Part, StoreTicket, process_message::ProcessMessage,
};
use crate::{protocol::json, store::StoreOperation};

/// The time after which output is sent although the store has not replied.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of bytes that wait for one reader. What is above is sent, and counts as what the reader leaves unread.
const MAX_UNSENT: usize = 1024 * 1024;

/// The output that waits for the store.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    by_reader: FxHashMap<ExchangeId, Waiting>,
    /// The things that the store does not have yet, by the operation that stores them: the oldest comes first.
    unstored: BTreeMap<StoreTicket, Unstored>,
}

/// The output for one reader, in its order.
#[derive(Debug, Default)]
struct Waiting {
    parts: VecDeque<(Option<StoreTicket>, Part)>,
    bytes: usize,
}

/// A thing that the store does not have yet.
#[derive(Debug)]
pub(super) struct Unstored {
    /// The readers whose output waits for it.
    pub(super) readers: Vec<ExchangeId>,
    /// `None` if it is not an event.
    pub(super) event: Option<UnstoredEvent>,
    /// The time at which the output is sent without it.
    pub(super) until: Instant,
}

/// An event of a stream.
#[derive(Debug)]
pub(super) struct UnstoredEvent {
    pub(super) session: u64,
    pub(super) stream: u64,
    pub(super) number: u64,
    pub(super) is_last: bool,
    /// `true` if the client goes on with the stream in another process.
    pub(super) is_followed: bool,
}

impl Unstored {
    pub(super) fn new(
        now: Instant,
        reader: Option<ExchangeId>,
        event: Option<UnstoredEvent>,
    ) -> Self {
        Self { readers: reader.into_iter().collect(), event, until: now + PATIENCE }
    }
}

impl Unsent {
    /// Returns whether the store does not have the thing yet that this operation stores.
    pub(super) fn awaits(&self, ticket: StoreTicket) -> bool {
        self.unstored.contains_key(&ticket)
    }

    /// Returns the events of a stream that are not stored yet, with the readers that wait for them.
    pub(super) fn events_of(
        &mut self,
        session: u64,
        stream: u64,
    ) -> impl Iterator<Item = (StoreTicket, &mut UnstoredEvent, &mut Vec<ExchangeId>)> {
        self.unstored.iter_mut().filter_map(move |(ticket, unstored)| {
            let event = unstored.event.as_mut()?;
            let is_of_it = (event.session, event.stream) == (session, stream);
            is_of_it.then_some((*ticket, event, &mut unstored.readers))
        })
    }

    /// Has the output for a reader wait for an operation, if that is under way.
    pub(super) fn wait_for(
        &mut self,
        reader: ExchangeId,
        ticket: Option<StoreTicket>,
    ) -> Option<StoreTicket> {
        let ticket = ticket?;
        self.unstored.get_mut(&ticket)?.readers.push(reader);
        Some(ticket)
    }

    /// Returns the oldest thing that was not stored in time.
    fn late(&self, now: Instant) -> Option<StoreTicket> {
        let (ticket, oldest) = self.unstored.first_key_value()?;
        (oldest.until <= now).then_some(*ticket)
    }

    /// Discards what waits for a reader, which has left or goes on elsewhere.
    pub(super) fn discard(&mut self, reader: ExchangeId) {
        self.by_reader.remove(&reader);
    }
}

impl Endpoint {
    /// Sends a part once the store has what it promises, if it does, and after the parts before it.
    pub(super) fn send_after(
        &mut self,
        reader: ExchangeId,
        stored: Option<StoreTicket>,
        part: Part,
    ) {
        if stored.is_none() && !self.unsent.by_reader.contains_key(&reader) {
            self.outputs.push_back(EndpointOutput::Exchange(reader, part));
            return;
        }
        let waiting = self.unsent.by_reader.entry(reader).or_default();
        waiting.bytes += length(&part);
        waiting.parts.push_back((stored, part));
        if waiting.bytes > MAX_UNSENT {
            self.send_ready(reader, MAX_UNSENT);
        }
    }

    /// Stores something before clients are told of it. Returns the operation that their output waits for.
    pub(super) fn store_before(
        &mut self,
        operation: StoreOperation,
        unstored: Unstored,
    ) -> StoreTicket {
        let ticket = self.tell_store(operation);
        self.sweep_at(Some(unstored.until));
        self.unsent.unstored.insert(ticket, unstored);
        ticket
    }

    /// Handles that the store has something, or does not get it. The driver reports a failure; the output is sent nevertheless, because
    /// its client waits for it.
    pub(super) fn end_waiting(&mut self, ticket: StoreTicket) {
        let Some(stored) = self.unsent.unstored.remove(&ticket) else { return };
        if let Some(event) = &stored.event
            && event.is_followed
        {
            self.send_elsewhere(event);
        }
        for reader in &stored.readers {
            self.send_ready(*reader, MAX_UNSENT);
        }
    }

    /// Sends that for which the store has not replied in time.
    pub(super) fn check_unsent(&mut self, now: Instant) {
        while let Some(late) = self.unsent.late(now) {
            self.end_waiting(late);
        }
        let next = self.unsent.unstored.values().next().map(|oldest| oldest.until);
        self.sweep_at(next);
    }

    /// Sends all that waits.
    pub(super) fn send_unsent(&mut self) {
        self.unsent.unstored.clear();
        for reader in self.unsent.by_reader.keys().copied().collect::<Vec<_>>() {
            self.send_ready(reader, MAX_UNSENT);
        }
    }

    /// Sends the first parts for a reader, up to the first one whose promise is not stored; more while more bytes wait.
    fn send_ready(&mut self, reader: ExchangeId, max_bytes: usize) {
        let Some(mut waiting) = self.unsent.by_reader.remove(&reader) else { return };
        while let Some((stored, part)) = waiting.parts.pop_front() {
            let is_unstored = stored.is_some_and(|ticket| self.unsent.awaits(ticket));
            if is_unstored && waiting.bytes <= max_bytes {
                waiting.parts.push_front((stored, part));
                self.unsent.by_reader.insert(reader, waiting);
                return;
            }
            waiting.bytes -= length(&part);
            self.outputs.push_back(EndpointOutput::Exchange(reader, part));
        }
    }

    /// Sends an event to the process in which the client goes on with its stream.
    fn send_elsewhere(&mut self, event: &UnstoredEvent) {
        let Some(session) = self.sessions.get_mut(event.session) else { return };
        // Without its frame the other process reads it from the store.
        let frame = session.log().frame(event.stream, event.number);
        let Some(text) = frame.and_then(|frame| String::from_utf8(frame.to_vec()).ok()) else {
            return;
        };
        let message = ProcessMessage::Event {
            session: session.id.to_string(),
            stream: event.stream,
            event: event.number,
            frame: json::raw(text),
            is_last: event.is_last,
        };
        self.publish(&message);
    }
}

fn length(part: &Part) -> usize {
    match part {
        Part::Head { body, .. } => body.len(),
        Part::Bytes(bytes) => bytes.len(),
        Part::End => 0,
    }
}
