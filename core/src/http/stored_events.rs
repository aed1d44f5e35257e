//! The events of the streams of sessions, stored for other processes: a client whose process is gone can resume there.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{
    Endpoint, StoreTicket, events,
    sessions::{MAX_EVENT_BYTES, MAX_EVENTS, Session},
    stored,
    unsent::{Unstored, UnstoredEvent},
};
use crate::{
    protocol::{Id, Raw, json},
    store::StoreOperation,
};

/// The time for which events are stored after the last one of their stream.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// An event of a stream as it is stored.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct StoredEvent {
    /// Its number in the stream.
    #[serde(rename = "n")]
    pub(super) number: u64,
    /// The id of the request that the stream answers.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Raw>,
    /// `None`: it has nothing but its id.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(super) frame: Option<Raw>,
    /// `true` if the stream is complete with it.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_last: bool,
}

impl Endpoint {
    /// Stores an event of a stream, and then sends it to the process in which the client goes on with the stream. Returns the
    /// operation that must be done before the event is sent; `None` if there is none.
    pub(super) fn store_event(
        &mut self,
        now: Instant,
        session: &mut Session,
        stream: u64,
        event: &str,
        frame: Option<&[u8]>,
        is_last: bool,
    ) -> Option<StoreTicket> {
        if !self.stored.is_there() {
            return None;
        }
        let (log, number) = log(&session.id, stream).zip(events::number_of(event))?;
        let in_session = session.number;
        let entry = session.stream(stream)?;
        let frame = match frame {
            None => None,
            // Every frame is UTF-8, because it is JSON.
            Some(frame) => match std::str::from_utf8(frame) {
                Ok(text) => Some(json::raw(text.to_owned())),
                Err(_) => return None,
            },
        };
        let is_followed = entry.is_followed && entry.exchange.is_none();
        let unstored = UnstoredEvent { session: in_session, stream, number, is_last, is_followed };
        let unstored = Unstored::new(now, entry.exchange, Some(unstored));
        let request = entry.request.as_ref().map(|id: &Id| json::raw(id.as_json().to_owned()));
        let mut event = String::new();
        json::push(&mut event, &StoredEvent { number, request, frame, is_last });
        let append = StoreOperation::Append {
            log,
            event: event.into_bytes(),
            max_events: MAX_EVENTS as u64,
            max_bytes: MAX_EVENT_BYTES as u64,
            ttl: KEPT,
        };
        Some(self.store_before(append, unstored))
    }
}

/// Returns the name of the log of a stream; `None` if its session exists in one process only.
pub(super) fn log(session: &str, stream: u64) -> Option<String> {
    Some(format!("{}:{stream}", stored::name("events", session)?))
}
