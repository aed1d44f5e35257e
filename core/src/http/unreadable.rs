//! Messages in the store that this server has no key for. A writer without keys can send any number of them, so the server answers all
//! that come within a pause together.

use std::time::{Duration, Instant};

use super::Endpoint;
use crate::log_events::{EventFacts, EventKind, LogEvent};

/// The shortest time between two announcements that everything may have changed.
const PAUSE: Duration = Duration::from_secs(60);

/// The messages that nobody was told of yet.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    count: u64,
    /// The earliest time of the next announcement.
    next: Option<Instant>,
}

impl Unreadable {
    /// Returns the time of an announcement that has to be made.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next.filter(|_| self.count > 0)
    }

    /// Returns the number of messages if they are to be announced now, which begins a pause.
    fn due(&mut self, now: Instant) -> Option<u64> {
        if self.count == 0 || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + PAUSE);
        Some(std::mem::take(&mut self.count))
    }
}

impl Endpoint {
    /// Notes messages that can't be opened.
    pub(super) fn note_unreadable(&mut self, now: Instant, count: u64) {
        self.unreadable.count = self.unreadable.count.saturating_add(count);
        self.announce_unreadable(now);
    }

    /// Makes up for messages that can't be opened, which may have told anything, and logs them, once in a while.
    pub(super) fn announce_unreadable(&mut self, now: Instant) {
        let Some(count) = self.unreadable.due(now) else { return };
        let facts = EventFacts { messages: Some(count), ..EventFacts::default() };
        self.engine.log(LogEvent::new(EventKind::StoreUnreadable, "").with(facts));
        self.make_up_for_lost_messages(now);
    }
}
