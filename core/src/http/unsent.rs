//! Output that waits until the store has what it promises. The id of an event promises that its stream can be resumed after it, and
//! the answer to a subscription that changes will be told, also when this process is gone.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::{
    Endpoint, EndpointOutput, ExchangeId, Part, StoreTicket, process_message::ProcessMessage,
};
use crate::protocol::json;

/// The time after which output is sent although the store has not replied.
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
    /// Sends a part once the store has what it promises, if it does, and after the parts before it.
    pub(super) fn send_after(
        &mut self,
        reader: ExchangeId,
        stored: Option<StoreTicket>,
        part: Part,
    ) {
        if stored.is_none() && !self.unsent.has(reader) {
            self.outputs.push_back(EndpointOutput::Exchange(reader, part));
            return;
        }
        let waiting = self.unsent.0.entry(reader).or_default();
        waiting.bytes += length(&part);
        waiting.parts.push_back((stored, part));
        if waiting.bytes > MAX_UNSENT {
            self.send_ready(reader, MAX_UNSENT);
        }
    }

    /// Handles that the store has something, or does not get it.
    pub(super) fn end_waiting(&mut self, stored: &Unstored) {
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
        for late in self.stored.take_late(now) {
            self.end_waiting(&late);
        }
        let next = self.stored.next_late();
        self.sweep_at(next);
    }

    /// Sends all that waits.
    pub(super) fn send_unsent(&mut self) {
        self.stored.forget_unstored();
        for reader in self.unsent.0.keys().copied().collect::<Vec<_>>() {
            self.send_ready(reader, MAX_UNSENT);
        }
    }

    /// Sends the first parts for a reader, up to the first one whose promise is not stored; more while more bytes wait.
    fn send_ready(&mut self, reader: ExchangeId, max_bytes: usize) {
        let Some(mut waiting) = self.unsent.0.remove(&reader) else { return };
        while let Some((stored, part)) = waiting.parts.pop_front() {
            let is_unstored = stored.is_some_and(|ticket| self.stored.awaits(ticket));
            if is_unstored && waiting.bytes <= max_bytes {
                waiting.parts.push_front((stored, part));
                self.unsent.0.insert(reader, waiting);
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
