//! Events that clients have received and their program has not taken: outcomes of requests, questions and notifications.
//!
//! The entries of a client are taken in the order in which they arrived, with at most one notification at a time, because
//! its callback may be slow. An outcome that its program could have taken for [`MAX_DELAY`] overtakes the notifications
//! before it, so that neither a time limit nor `close()` waits for the callbacks of a server that sends many. Clients take
//! turns, so that the entries of one do not wait for the callbacks of another.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    ops::Bound,
    time::{Duration, Instant},
};

/// The time for which an outcome waits for callbacks of notifications that arrived before it.
const MAX_DELAY: Duration = Duration::from_millis(200);
/// The maximum size of a client's notifications that wait, in bytes; beyond it the newest are dropped.
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
    /// The other entries by client. No queue is empty.
    others: BTreeMap<Option<u64>, Waiting<T>>,
    /// The client whose turn was the last.
    last: Option<u64>,
    changed: HashSet<(u64, &'static str)>,
    /// The number of entries that ever arrived.
    arrived: u64,
    /// The notifications that were dropped since the last log line.
    dropped: u64,
    logged: Option<Instant>,
}

/// The entries of a client that are not outcomes.
#[derive(Debug)]
struct Waiting<T> {
    entries: VecDeque<Entry<T>>,
    /// The size of those that may be dropped, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    /// `None` for the outcome of several clients.
    client: Option<u64>,
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
            others: BTreeMap::new(),
            last: None,
            changed: HashSet::new(),
            arrived: 0,
            dropped: 0,
            logged: None,
        }
    }
}

impl<T> Mailbox<T> {
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.others.is_empty()
    }

    /// Adds an entry of a client, `None` for the outcome of several clients, to the request or client `to`. Returns `false` if it
    /// was dropped or merged with an equal one.
    pub fn push(
        &mut self,
        now: Instant,
        client: Option<u64>,
        to: u64,
        kind: Kind,
        content: T,
    ) -> bool {
        let (bytes, waiting) =
            (kind.bytes(), self.others.get(&client).map_or(0, |waiting| waiting.bytes));
        if bytes > 0 && waiting + bytes > MAX_WAITING {
            self.drop_one(now, waiting);
            return false;
        }
        if let Kind::Changed(list) = kind
            && !self.changed.insert((to, list))
        {
            return false;
        }
        self.arrived += 1;
        let entry = Entry { client, to, kind, number: self.arrived, seen: None, content };
        match kind {
            Kind::Outcome(_) => self.outcomes.push_back(entry),
            _ => self.others.entry(client).or_default().push(entry),
        }
        true
    }

    /// Takes the outcomes that are next, until they exceed 1 MiB, and the next other entry.
    pub fn take(&mut self, now: Instant) -> Vec<T> {
        self.outcomes.iter_mut().for_each(|outcome| outcome.see(now));
        let (mut taken, mut bytes, mut at) = (Vec::new(), 0, 0);
        while let Some(outcome) = self.outcomes.get(at) {
            if !self.is_next(now, outcome, |_| true) {
                at += 1;
                continue;
            }
            if bytes > BATCH {
                return taken;
            }
            if let Kind::Outcome(size) = outcome.kind {
                bytes += size;
            }
            taken.extend(self.outcomes.remove(at).map(|outcome| outcome.content));
        }
        let client = self.clients_in_turn().next();
        taken.extend(client.and_then(|client| self.take_other(client, 0)));
        taken
    }

    /// Takes the next entry for this request, or for a client as a whole.
    pub fn take_for(&mut self, now: Instant, request: u64) -> Option<T> {
        let is_mine = |entry: &Entry<T>| entry.to == request || !entry.kind.is_of_request();
        if let Some(at) = self.outcomes.iter().position(|outcome| outcome.to == request) {
            self.outcomes[at].see(now);
            if self.is_next(now, &self.outcomes[at], is_mine) {
                return self.outcomes.remove(at).map(|outcome| outcome.content);
            }
        }
        let place = |client| {
            let at = self.others.get(&client)?.entries.iter().position(is_mine)?;
            Some((client, at))
        };
        let (client, at) = self.clients_in_turn().find_map(place)?;
        self.take_other(client, at)
    }

    /// Drops the entries of a cancelled request.
    pub fn forget(&mut self, request: u64) {
        self.outcomes.retain(|outcome| outcome.to != request);
        let is_other = |entry: &Entry<T>| entry.to != request || !entry.kind.is_of_request();
        self.others.retain(|_, waiting| {
            waiting.entries.retain(is_other);
            waiting.bytes = waiting.entries.iter().map(|entry| entry.kind.bytes()).sum();
            !waiting.entries.is_empty()
        });
    }

    /// Takes all entries of a client as a whole, for another mailbox.
    pub fn take_all(&mut self, client: u64) -> Vec<(Kind, T)> {
        let mut taken = Vec::new();
        let place =
            |waiting: &Waiting<T>| waiting.entries.iter().position(|entry| entry.to == client);
        while let Some(at) = self.others.get(&Some(client)).and_then(place) {
            let kind = self.others[&Some(client)].entries[at].kind;
            taken.extend(self.take_other(Some(client), at).map(|content| (kind, content)));
        }
        taken
    }

    /// Returns `true` for an outcome that comes before those other entries of its client that are to be taken as well.
    fn is_next(
        &self,
        now: Instant,
        outcome: &Entry<T>,
        is_taken: impl Fn(&Entry<T>) -> bool,
    ) -> bool {
        let is_late =
            outcome.seen.is_some_and(|seen| now.saturating_duration_since(seen) > MAX_DELAY);
        let comes_before = |waiting: &Waiting<T>| {
            let other = waiting.entries.iter().find(|entry| is_taken(entry));
            other.is_none_or(|other| outcome.number < other.number)
        };
        is_late
            || match outcome.client {
                None => self.others.values().all(comes_before),
                client => self.others.get(&client).is_none_or(comes_before),
            }
    }

    /// Returns the clients that have entries other than outcomes, the one whose turn is next first.
    fn clients_in_turn(&self) -> impl Iterator<Item = Option<u64>> {
        let after = (Bound::Excluded(self.last), Bound::Unbounded);
        self.others.range(after).chain(self.others.range(..=self.last)).map(|(client, _)| *client)
    }

    fn take_other(&mut self, client: Option<u64>, at: usize) -> Option<T> {
        let waiting = self.others.get_mut(&client)?;
        let Entry { to, kind, content, .. } = waiting.entries.remove(at)?;
        waiting.bytes -= kind.bytes();
        if waiting.entries.is_empty() {
            self.others.remove(&client);
        }
        self.last = client;
        if let Kind::Changed(list) = kind {
            self.changed.remove(&(to, list));
        }
        Some(content)
    }

    fn drop_one(&mut self, now: Instant, waiting_bytes: usize) {
        self.dropped += 1;
        if self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < BETWEEN_LOGS) {
            return;
        }
        self.logged = Some(now);
        let dropped = std::mem::take(&mut self.dropped);
        tracing::warn!(
            dropped,
            waiting_bytes,
            "dropped notifications of a server, because the client's callbacks are slower than it sends"
        );
    }
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Waiting<T> {
    fn push(&mut self, entry: Entry<T>) {
        self.bytes += entry.kind.bytes();
        self.entries.push_back(entry);
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
            assert!(mailbox.push(now, Some(9), to, kind, name));
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
            mailbox.push(start, Some(9), 9, LOG, log);
        }
        mailbox.push(start, Some(9), 5, Kind::Outcome(0), "done");
        mailbox.push(start, Some(9), 6, Kind::Outcome(0), "of another");
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
    fn the_entries_of_a_client_do_not_wait_for_those_of_another() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        for log in ["1", "2", "3"] {
            mailbox.push(now, Some(9), 9, LOG, log);
        }
        mailbox.push(now, Some(8), 8, LOG, "of another");
        mailbox.push(now, Some(8), 5, Kind::Outcome(0), "done");
        mailbox.push(now, None, 6, Kind::Outcome(0), "of all");
        assert_eq!(mailbox.take(now), ["of another"]);
        assert_eq!(mailbox.take(now), ["done", "1"]);
        assert_eq!(mailbox.take(now), ["2"]);
        mailbox.push(now, Some(8), 8, LOG, "later");
        assert_eq!(mailbox.take_for(now, 7), Some("later"));
        assert_eq!(mailbox.take(now), ["3"]);
        assert_eq!(mailbox.take(now), ["of all"]);
        assert!(mailbox.is_empty());
    }

    #[test]
    fn an_outcome_does_not_wait_for_the_progress_of_another_request() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        mailbox.push(now, Some(9), 6, Kind::Progress(0), "6");
        mailbox.push(now, Some(9), 5, Kind::Outcome(0), "done");
        assert_eq!(mailbox.take_for(now, 5), Some("done"));
    }

    #[test]
    fn large_outcomes_are_taken_in_several_batches() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        for request in 0..5 {
            mailbox.push(now, Some(9), request, Kind::Outcome(BATCH), request);
        }
        mailbox.push(now, Some(9), 9, LOG, 9);
        assert_eq!(mailbox.take(now), [0, 1]);
        assert_eq!(mailbox.take(now), [2, 3]);
        assert_eq!(mailbox.take(now), [4, 9]);
    }

    #[test]
    fn progress_belongs_to_its_request() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        mailbox.push(now, Some(9), 5, Kind::Progress(0), "5");
        mailbox.push(now, Some(9), 6, Kind::Progress(0), "6");
        mailbox.push(now, Some(9), 9, LOG, "log");
        assert_eq!(mailbox.take_for(now, 6), Some("6"));
        assert_eq!(mailbox.take_for(now, 6), Some("log"));
        assert_eq!(mailbox.take_for(now, 6), None);
        mailbox.push(now, Some(9), 6, Kind::Progress(0), "6");
        mailbox.forget(5);
        assert_eq!(mailbox.others[&Some(9)].bytes, ENTRY, "what is left");
        mailbox.forget(6);
        assert!(mailbox.is_empty());
    }

    #[test]
    fn a_client_that_moves_takes_its_events_along() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        for (to, kind, name) in
            [(9, LOG, "log"), (8, LOG, "other"), (9, Kind::Changed("tools"), "changed")]
        {
            mailbox.push(now, Some(to), to, kind, name);
        }
        mailbox.push(now, Some(9), 5, Kind::Progress(0), "of a request");
        assert_eq!(mailbox.take_all(9), [(LOG, "log"), (Kind::Changed("tools"), "changed")]);
        assert!(mailbox.take_all(9).is_empty());
        assert_eq!(mailbox.others[&Some(9)].bytes, ENTRY, "what is left");
        assert_eq!(mailbox.take(now), ["other"]);
        assert_eq!(mailbox.take(now), ["of a request"]);
        assert!(mailbox.is_empty());
    }

    #[test]
    fn equal_changes_are_one_until_they_are_taken() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        assert!(mailbox.push(now, Some(9), 9, Kind::Changed("tools"), ()));
        assert!(!mailbox.push(now, Some(9), 9, Kind::Changed("tools"), ()));
        assert!(mailbox.push(now, Some(9), 9, Kind::Changed("prompts"), ()));
        assert!(mailbox.push(now, Some(9), 8, Kind::Changed("tools"), ()));
        assert_eq!(mailbox.take(now).len(), 1);
        assert!(mailbox.push(now, Some(9), 9, Kind::Changed("tools"), ()));
    }

    #[test]
    fn notifications_are_bounded_and_outcomes_are_not_dropped() {
        let (now, mut mailbox) = (Instant::now(), Mailbox::default());
        let most = MAX_WAITING / (1024 * 1024 + ENTRY);
        for at in 0..most + 5 {
            let is_kept = mailbox.push(now, Some(9), 9, Kind::Notification(1024 * 1024), at);
            assert_eq!(is_kept, at < most, "{at}");
        }
        // One is logged at once; the others are counted for the next line.
        assert_eq!(mailbox.dropped, 4);
        assert!(mailbox.push(now, Some(9), 1, Kind::Outcome(0), 0));
        assert!(mailbox.push(now, Some(9), 9, Kind::Event, 0));
        mailbox.take(now);
        assert!(mailbox.push(now, Some(9), 9, Kind::Notification(1024 * 1024), 0));
        assert!(!mailbox.push(now + BETWEEN_LOGS, Some(9), 9, Kind::Notification(1024 * 1024), 0));
        assert_eq!(mailbox.dropped, 0);
        assert!(mailbox.push(now, Some(8), 8, LOG, 0), "the limit is each client's");
    }
}
