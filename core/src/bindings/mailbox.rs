//! Events that a client has received and its program has not taken: outcomes of requests, questions and notifications.
//!
//! Entries are taken in the order in which they arrived, with at most one notification at a time, because its callback
//! may be slow. An outcome that its program could have taken for [`MAX_DELAY`] overtakes the notifications before it, so
//! that neither a time limit nor `close()` waits for the callbacks of a server that sends many.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

/// The time for which an outcome waits for callbacks of notifications that arrived before it.
const MAX_DELAY: Duration = Duration::from_millis(200);
/// The maximum size of the notifications that wait, in bytes; beyond it the newest are dropped.
const MAX_WAITING: usize = 16 * 1024 * 1024;
/// The size of outcomes after which [`Mailbox::take`] stops, in bytes.
const BATCH: usize = 1024 * 1024;
/// The bytes that an entry counts for in addition to its text.
const ENTRY: usize = 256;
/// The minimum time between two log lines about dropped notifications.
const BETWEEN_LOGS: Duration = Duration::from_secs(60);

/// The kind of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The end of a request, with the bytes of its text.
    Outcome(usize),
    /// The progress of a request, with the bytes of its text. It may be dropped.
    Progress(usize),
    /// A notification that belongs to no request, with the bytes of its text. It may be dropped.
    Notification(usize),
    /// The change of a list. Equal changes that wait are one.
    Changed(&'static str),
    /// An event that is never dropped: its number is bounded elsewhere.
    Event,
    /// An event of a request, for the one that waits for it.
    OfRequest,
}

/// Holds entries of type `T`, each addressed to the number of a request or of a client.
#[derive(Debug)]
pub struct Mailbox<T> {
    outcomes: VecDeque<Entry<T>>,
    others: VecDeque<Entry<T>>,
    changed: HashSet<(u64, &'static str)>,
    /// The number of entries that ever arrived.
    arrived: u64,
    /// The size of the entries that may be dropped, in bytes.
    bytes: usize,
    /// The notifications that were dropped since the last log line.
    dropped: u64,
    logged: Option<Instant>,
}

#[derive(Debug)]
struct Entry<T> {
    to: u64,
    kind: Kind,
    /// The position in the order of arrival.
    number: u64,
    /// The first time at which the entry could have been taken.
    seen: Option<Instant>,
    content: T,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self {
            outcomes: VecDeque::new(),
            others: VecDeque::new(),
            changed: HashSet::new(),
            arrived: 0,
            bytes: 0,
            dropped: 0,
            logged: None,
        }
    }
}

impl<T> Mailbox<T> {
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.others.is_empty()
    }

    /// Adds an entry to the request or client `to`. Returns `false` if it was dropped or merged with an equal one.
    pub fn push(&mut self, now: Instant, to: u64, kind: Kind, content: T) -> bool {
        let bytes = kind.bytes();
        if bytes > 0 && self.bytes + bytes > MAX_WAITING {
            self.drop_one(now);
            return false;
        }
        if let Kind::Changed(list) = kind
            && !self.changed.insert((to, list))
        {
            return false;
        }
        self.bytes += bytes;
        self.arrived += 1;
        let entry = Entry { to, kind, number: self.arrived, seen: None, content };
        match kind {
            Kind::Outcome(_) => self.outcomes.push_back(entry),
            _ => self.others.push_back(entry),
        }
        true
    }

    /// Takes the outcomes that are next, until they exceed 1 MiB, and the entry after them.
    pub fn take(&mut self, now: Instant) -> Vec<T> {
        self.outcomes.iter_mut().for_each(|it| it.see(now));
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(outcome) = self.outcomes.front() {
            if !outcome.is_next(now, self.others.front()) {
                break;
            }
            if bytes > BATCH {
                return taken;
            }
            if let Kind::Outcome(size) = outcome.kind {
                bytes += size;
            }
            taken.extend(self.outcomes.pop_front().map(|it| it.content));
        }
        taken.extend(self.take_other(0));
        taken
    }

    /// Takes the next entry for this request, or for a client as a whole.
    pub fn take_for(&mut self, now: Instant, request: u64) -> Option<T> {
        let is_mine = |it: &Entry<T>| it.to == request || !it.kind.is_of_request();
        let other = self.others.iter().position(is_mine);
        let outcome = self.outcomes.iter().position(|it| it.to == request);
        if let Some(at) = outcome {
            self.outcomes[at].see(now);
            if self.outcomes[at].is_next(now, other.map(|it| &self.others[it])) {
                return self.outcomes.remove(at).map(|it| it.content);
            }
        }
        self.take_other(other?)
    }

    /// Drops the entries of a cancelled request.
    pub fn forget(&mut self, request: u64) {
        self.outcomes.retain(|it| it.to != request);
        let is_other = |it: &Entry<T>| it.to != request || !it.kind.is_of_request();
        self.others.retain(is_other);
        self.bytes = self.others.iter().map(|it| it.kind.bytes()).sum();
    }

    /// Takes all entries of a client as a whole, for another mailbox.
    pub fn take_all(&mut self, client: u64) -> Vec<(Kind, T)> {
        let mut taken = Vec::new();
        while let Some(at) = self.others.iter().position(|it| it.to == client) {
            let kind = self.others[at].kind;
            taken.extend(self.take_other(at).map(|content| (kind, content)));
        }
        taken
    }

    fn take_other(&mut self, at: usize) -> Option<T> {
        let Entry { to, kind, content, .. } = self.others.remove(at)?;
        self.bytes -= kind.bytes();
        if let Kind::Changed(list) = kind {
            self.changed.remove(&(to, list));
        }
        Some(content)
    }

    fn drop_one(&mut self, now: Instant) {
        self.dropped += 1;
        if self.logged.is_some_and(|it| now.saturating_duration_since(it) < BETWEEN_LOGS) {
            return;
        }
        self.logged = Some(now);
        let dropped = std::mem::take(&mut self.dropped);
        tracing::warn!(
            dropped,
            waiting_bytes = self.bytes,
            "dropped notifications of a server, because the client's callbacks are slower than it sends"
        );
    }
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::Progress(bytes) | Self::Notification(bytes) => bytes + ENTRY,
            Self::Outcome(_) | Self::Changed(_) | Self::Event | Self::OfRequest => 0,
        }
    }

    /// Returns `true` for an event that only the one who waits for its request takes.
    fn is_of_request(self) -> bool {
        matches!(self, Self::Progress(_) | Self::OfRequest)
    }
}

impl<T> Entry<T> {
    fn see(&mut self, now: Instant) {
        self.seen.get_or_insert(now);
    }

    /// Returns `true` for an outcome that comes before the next other entry.
    fn is_next(&self, now: Instant, other: Option<&Self>) -> bool {
        let is_late = self.seen.is_some_and(|it| now.saturating_duration_since(it) > MAX_DELAY);
        is_late || other.is_none_or(|it| self.number < it.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: Kind = Kind::Notification(10);

    #[test]
    fn entries_are_taken_in_their_order_one_notification_at_a_time() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        for (to, kind, name) in [
            (1, Kind::Outcome(0), "first"),
            (2, Kind::Outcome(0), "second"),
            (9, LOG, "log"),
            (3, Kind::Progress(0), "progress"),
            (3, Kind::Outcome(0), "third"),
        ] {
            assert!(mailbox.push(now, to, kind, name));
        }
        assert_eq!(mailbox.take(now), ["first", "second", "log"]);
        assert_eq!(mailbox.take(now), ["progress"]);
        assert_eq!(mailbox.take(now), ["third"]);
        assert!(mailbox.is_empty() && mailbox.take(now).is_empty());
    }

    #[test]
    fn an_outcome_overtakes_notifications_whose_callbacks_are_slow() {
        let (start, mut mailbox) = (Instant::now(), Mailbox::default());
        for log in ["1", "2", "3", "4"] {
            mailbox.push(start, 9, LOG, log);
        }
        mailbox.push(start, 5, Kind::Outcome(0), "done");
        mailbox.push(start, 6, Kind::Outcome(0), "of another");
        let late = start + Duration::from_secs(60);
        assert_eq!(mailbox.take_for(late, 5), Some("1"), "it could not have been taken before");
        assert_eq!(mailbox.take_for(late + MAX_DELAY, 5), Some("2"));
        let later = late + MAX_DELAY * 2;
        assert_eq!(mailbox.take_for(later, 5), Some("done"));
        assert_eq!(mailbox.take_for(later, 5), Some("3"), "the rest is kept");
        assert_eq!(mailbox.take(later), ["4"]);
        assert_eq!(mailbox.take(later), ["of another"]);
    }

    #[test]
    fn large_outcomes_are_taken_in_several_batches() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        for request in 0..5 {
            mailbox.push(now, request, Kind::Outcome(BATCH), request);
        }
        mailbox.push(now, 9, LOG, 9);
        assert_eq!(mailbox.take(now), [0, 1]);
        assert_eq!(mailbox.take(now), [2, 3]);
        assert_eq!(mailbox.take(now), [4, 9]);
    }

    #[test]
    fn progress_belongs_to_its_request() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        mailbox.push(now, 5, Kind::Progress(0), "5");
        mailbox.push(now, 6, Kind::Progress(0), "6");
        mailbox.push(now, 9, LOG, "log");
        assert_eq!(mailbox.take_for(now, 6), Some("6"));
        assert_eq!(mailbox.take_for(now, 6), Some("log"));
        assert_eq!(mailbox.take_for(now, 6), None);
        mailbox.forget(5);
        assert!(mailbox.is_empty());
        assert_eq!(mailbox.bytes, 0);
    }

    #[test]
    fn a_client_that_moves_takes_its_events_along() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        for (to, kind, name) in
            [(9, LOG, "log"), (8, LOG, "other"), (9, Kind::Changed("tools"), "changed")]
        {
            mailbox.push(now, to, kind, name);
        }
        assert_eq!(mailbox.take_all(9), [(LOG, "log"), (Kind::Changed("tools"), "changed")]);
        assert!(mailbox.take_all(9).is_empty());
        assert_eq!(mailbox.take(now), ["other"]);
        assert_eq!(mailbox.bytes, 0);
    }

    #[test]
    fn equal_changes_are_one_until_they_are_taken() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        assert!(mailbox.push(now, 9, Kind::Changed("tools"), ()));
        assert!(!mailbox.push(now, 9, Kind::Changed("tools"), ()));
        assert!(mailbox.push(now, 9, Kind::Changed("prompts"), ()));
        assert!(mailbox.push(now, 8, Kind::Changed("tools"), ()));
        assert_eq!(mailbox.take(now).len(), 1);
        assert!(mailbox.push(now, 9, Kind::Changed("tools"), ()));
    }

    #[test]
    fn notifications_are_bounded_and_outcomes_are_not_dropped() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        let most = MAX_WAITING / (1024 * 1024 + ENTRY);
        for at in 0..most + 5 {
            let is_kept = mailbox.push(now, 9, Kind::Notification(1024 * 1024), at);
            assert_eq!(is_kept, at < most, "{at}");
        }
        // One is logged at once; the others are counted for the next line.
        assert_eq!(mailbox.dropped, 4);
        assert!(mailbox.push(now, 1, Kind::Outcome(0), 0));
        assert!(mailbox.push(now, 9, Kind::Event, 0));
        mailbox.take(now);
        assert!(mailbox.push(now, 9, Kind::Notification(1024 * 1024), 0));
        assert!(!mailbox.push(now + BETWEEN_LOGS, 9, Kind::Notification(1024 * 1024), 0));
        assert_eq!(mailbox.dropped, 0);
    }
}
