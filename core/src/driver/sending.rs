//! The output for one reader, and the rules for slow readers, which are the same on every transport.
//!
//! - A change that waits is not sent again, because its reader looks at the new state anyway.
//! - A reader that leaves too many changes unread loses its subscriptions, and is told so.
//! - A reader that leaves too much unread is sent only what it waits for: progress and log messages are dropped, and log
//!   messages are counted.
//!
//! Each outbox decides how much may wait at all, because some of them can't do without a message.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use crate::http::{Part, Reader};

/// A receiver of the pieces of one response, in order. It is called under a lock, so it only stores the piece and wakes its
/// reader.
pub trait Outbox: Send {
    fn deliver(&mut self, part: Part);
    /// Ends a message connection whose access token has expired.
    fn expire(&mut self) {
        self.deliver(Part::End);
    }
    /// Returns what was delivered and is not written yet.
    fn unread(&self) -> Unread;
}

/// The part of the output that waits in an outbox.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Unread {
    /// The number of pieces that were not taken to be written.
    pub parts: usize,
    /// Their bytes, and those of the pieces that are being written.
    pub bytes: usize,
}

/// The output for one reader.
pub(super) struct Sending {
    outbox: Box<dyn Outbox>,
    /// The number of pieces that were delivered.
    delivered: u64,
    /// Changes that were delivered and not yet taken.
    changes: Option<Box<Changes>>,
    /// `true` if the endpoint knows that the reader leaves too much unread.
    is_lagging: bool,
    limits: Limits,
}

/// Bytes that one reader may leave unread.
#[derive(Clone, Copy)]
struct Limits {
    /// Changes, above which the subscriptions end.
    changes: usize,
    /// Everything, above which only that is sent which the reader waits for.
    reports: usize,
}

#[derive(Default)]
struct Changes {
    /// In the order of their delivery, with the number of the piece.
    waiting: VecDeque<(u64, Arc<[u8]>)>,
    known: HashSet<Arc<[u8]>>,
    bytes: usize,
}

impl Limits {
    const fn for_reader(reader: Reader) -> Self {
        match reader {
            // A response is aborted when 4 MiB of it are unread.
            Reader::Exchange(_) => Self { changes: 1024 * 1024, reports: 2 * 1024 * 1024 },
            // More than for a response, because everything of a peer waits in one row, and more than the 4 MiB at which
            // handlers wait, because not all of them do.
            Reader::Connection(_) => Self { changes: 4 * 1024 * 1024, reports: 8 * 1024 * 1024 },
        }
    }
}

impl Sending {
    pub(super) fn new(reader: Reader, outbox: Box<dyn Outbox>) -> Self {
        Self {
            outbox,
            delivered: 0,
            changes: None,
            is_lagging: false,
            limits: Limits::for_reader(reader),
        }
    }

    pub(super) fn deliver(&mut self, part: Part) {
        self.delivered += 1;
        self.outbox.deliver(part);
    }

    pub(super) fn expire(&mut self) {
        self.outbox.expire();
    }

    /// Delivers a change, unless an equal one waits. Returns whether the waiting changes exceed their limit with it.
    pub(super) fn change(&mut self, bytes: Vec<u8>) -> bool {
        let unread = self.outbox.unread().parts as u64;
        let changes = self.changes.get_or_insert_default();
        changes.forget_until(self.delivered.saturating_sub(unread));
        if changes.known.contains(&bytes[..]) {
            return false;
        }
        let before = changes.bytes;
        changes.add(self.delivered, &bytes);
        let is_too_much = before <= self.limits.changes && changes.bytes > self.limits.changes;
        self.deliver(Part::Bytes(bytes));
        is_too_much
    }

    /// Returns the bytes that the reader leaves unread.
    pub(super) fn unread_bytes(&self) -> usize {
        self.outbox.unread().bytes
    }

    /// Returns whether the reader leaves too much unread, if that is not what was returned last.
    pub(super) fn lags_now(&mut self) -> Option<bool> {
        let is_lagging = self.unread_bytes() > self.limits.reports;
        (std::mem::replace(&mut self.is_lagging, is_lagging) != is_lagging).then_some(is_lagging)
    }
}

impl Changes {
    fn add(&mut self, piece: u64, change: &[u8]) {
        let change: Arc<[u8]> = change.into();
        self.bytes += change.len();
        self.known.insert(Arc::clone(&change));
        self.waiting.push_back((piece, change));
    }

    /// Forgets the changes among the pieces with lower numbers, which were taken.
    fn forget_until(&mut self, piece: u64) {
        while self.waiting.front().is_some_and(|(number, _)| *number < piece) {
            let Some((_, change)) = self.waiting.pop_front() else { return };
            self.bytes -= change.len();
            self.known.remove(&change);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::http::{ConnectionId, ExchangeId};

    /// Keeps pieces until a test takes them.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<VecDeque<Vec<u8>>>>);

    impl Kept {
        fn take(&self, parts: usize) -> Vec<Vec<u8>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..parts).collect()
        }
    }

    impl Outbox for Kept {
        fn deliver(&mut self, part: Part) {
            let Part::Bytes(bytes) = part else { return };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(bytes);
        }

        fn unread(&self) -> Unread {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Unread { parts: kept.len(), bytes: kept.iter().map(Vec::len).sum() }
        }
    }

    fn readers() -> [(Reader, Kept, Sending); 2] {
        [Reader::Exchange(ExchangeId(1)), Reader::Connection(ConnectionId(1))].map(|reader| {
            let kept = Kept::default();
            (reader, kept.clone(), Sending::new(reader, Box::new(kept)))
        })
    }

    #[test]
    fn a_change_waits_once_and_is_sent_again_once_it_was_taken_although_others_wait() {
        for (reader, kept, mut sending) in readers() {
            for change in [b"a", b"a", b"b", b"b"] {
                sending.change(change.to_vec());
            }
            assert_eq!(kept.take(1), [b"a"], "{reader:?}");
            for change in [b"b", b"a"] {
                sending.change(change.to_vec());
            }
            assert_eq!(kept.take(2), [b"b", b"a"], "{reader:?}");
        }
    }

    #[test]
    fn too_many_changes_are_reported_once_and_other_pieces_do_not_count() {
        for (reader, kept, mut sending) in readers() {
            let half = Limits::for_reader(reader).changes / 2;
            sending.deliver(Part::Bytes(vec![0; 10 * half]));
            assert!(!sending.change(vec![1; half]));
            assert!(!sending.change(vec![2; half]));
            assert!(sending.change(vec![3]), "{reader:?}");
            assert!(!sending.change(vec![4]), "it was reported");
            drop(kept.take(3));
            assert!(!sending.change(vec![5; half]));
            assert!(sending.change(vec![6; half]), "{reader:?}: again, after some were taken");
        }
    }

    #[test]
    fn a_reader_lags_while_it_leaves_too_much_unread() {
        for (reader, kept, mut sending) in readers() {
            let limit = Limits::for_reader(reader).reports;
            sending.deliver(Part::Bytes(vec![0; limit]));
            assert_eq!(sending.lags_now(), None, "{reader:?}");
            sending.deliver(Part::Bytes(vec![0]));
            assert_eq!((sending.lags_now(), sending.lags_now()), (Some(true), None), "{reader:?}");
            drop(kept.take(1));
            assert_eq!((sending.lags_now(), sending.lags_now()), (Some(false), None), "{reader:?}");
        }
    }
}
