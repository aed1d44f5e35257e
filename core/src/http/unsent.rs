//! Events that wait until the store has them. The id of an event promises that its stream can be resumed after it, also when the
//! process of the stream is gone, so the id is not sent before.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::{
    Endpoint, EndpointOutput, ExchangeId, Part, StoreTicket, process_message::ProcessMessage,
};
use crate::protocol::json;

/// The time after which an event is sent although the store has not replied.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of bytes that wait for one reader. What is above is sent, and counts as what the reader leaves unread.
const MAX_UNSENT: usize = 1024 * 1024;

/// The output that waits, by its reader.
#[derive(Debug, Default)]
pub(super) struct Unsent(FxHashMap<ExchangeId, Waiting>);

/// The output for one reader, in its order.
#[derive(Debug, Default)]
struct Waiting {
    parts: VecDeque<(Option<StoreTicket>, Part)>,
    bytes: usize,
}

/// An event that the store does not have yet.
#[derive(Debug)]
pub(super) struct Unstored {
    session: u64,
    stream: u64,
    event: u64,
    is_last: bool,
    /// Its reader; `None` if there is none here.
    pub(super) reader: Option<ExchangeId>,
    /// `true` if the client goes on with the stream in another process.
    pub(super) is_followed: bool,
    until: Instant,
}

impl Unstored {
    pub(super) fn new(
        now: Instant,
        (session, stream): (u64, u64),
        event: u64,
        is_last: bool,
    ) -> Self {
        let until = now + PATIENCE;
        Self { session, stream, event, is_last, reader: None, is_followed: false, until }
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Returns the number of the event if it is of this stream.
    pub(super) fn of(&self, session: u64, stream: u64) -> Option<u64> {
        (self.session == session && self.stream == stream).then_some(self.event)
    }
}

impl Unsent {
    /// Returns whether something waits for this reader.
    pub(super) fn has(&self, reader: ExchangeId) -> bool {
        self.0.contains_key(&reader)
    }

    /// Discards what waits for a reader, which has left or goes on elsewhere.
    pub(super) fn discard(&mut self, reader: ExchangeId) {
        self.0.remove(&reader);
    }
}

impl Endpoint {
    /// Sends a part once the store has its event, if it has one, and after the parts before it.
    pub(super) fn send_after(
        &mut self,
        reader: ExchangeId,
        event: Option<StoreTicket>,
        part: Part,
    ) {
        if event.is_none() && !self.unsent.has(reader) {
            self.outputs.push_back(EndpointOutput::Exchange(reader, part));
            return;
        }
        let waiting = self.unsent.0.entry(reader).or_default();
        if let Part::Bytes(bytes) = &part {
            waiting.bytes += bytes.len();
        }
        waiting.parts.push_back((event, part));
        if waiting.bytes > MAX_UNSENT {
            self.send_ready(reader, MAX_UNSENT);
        }
    }

    /// Handles that the store has an event, or does not get it.
    pub(super) fn end_waiting(&mut self, event: &Unstored) {
        if event.is_followed {
            self.send_elsewhere(event);
        }
        if let Some(reader) = event.reader {
            self.send_ready(reader, MAX_UNSENT);
        }
    }

    /// Sends the events for which the store has not replied in time.
    pub(super) fn check_unsent(&mut self, now: Instant) {
        for event in self.stored.take_late_events(now) {
            self.end_waiting(&event);
        }
        let next = self.stored.next_late_event();
        self.sweep_at(next);
    }

    /// Sends all that waits.
    pub(super) fn send_unsent(&mut self) {
        for reader in self.unsent.0.keys().copied().collect::<Vec<_>>() {
            self.send_ready(reader, 0);
        }
    }

    /// Sends the first parts for a reader, up to the first event that the store does not have; more while so many bytes wait.
    fn send_ready(&mut self, reader: ExchangeId, max_bytes: usize) {
        let Some(mut waiting) = self.unsent.0.remove(&reader) else { return };
        while let Some((event, part)) = waiting.parts.pop_front() {
            let is_unstored = event.is_some_and(|event| self.stored.awaits(event));
            if is_unstored && waiting.bytes <= max_bytes {
                waiting.parts.push_front((event, part));
                self.unsent.0.insert(reader, waiting);
                return;
            }
            if let Part::Bytes(bytes) = &part {
                waiting.bytes -= bytes.len();
            }
            self.outputs.push_back(EndpointOutput::Exchange(reader, part));
        }
    }

    /// Sends an event to the process in which the client goes on with its stream.
    fn send_elsewhere(&mut self, event: &Unstored) {
        let Some(session) = self.sessions.get_mut(event.session) else { return };
        // Without its frame the other process reads it from the store.
        let frame = session.log().frame(event.stream, event.event);
        let Some(text) = frame.and_then(|frame| String::from_utf8(frame.to_vec()).ok()) else {
            return;
        };
        let message = ProcessMessage::Event {
            session: session.id.to_string(),
            stream: event.stream,
            event: event.event,
            frame: json::raw(text),
            is_last: event.is_last,
        };
        self.publish(&message);
    }
}
