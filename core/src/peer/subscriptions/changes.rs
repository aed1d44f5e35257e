//! A queue of changes that were received and not yet taken.

use std::{
    collections::{HashSet, VecDeque},
    task::Poll,
};

use super::Interests;
use crate::{error::Error, session::client::Change};

/// The maximum number of distinct parts of subscribed resources; beyond it, a change of a part is reported as a
/// change of the resource.
const MAX_PARTS: usize = 1_000;

/// A queue in which equal changes are merged, so that its size is bounded by the subscription's filter.
#[derive(Debug)]
pub struct Changes {
    interests: Interests,
    waiting: VecDeque<Change>,
    known: HashSet<Change>,
    /// True once no more changes follow.
    is_over: bool,
    /// The error that ended the queue, until it was returned.
    why: Option<Error>,
}

impl Changes {
    /// Creates an empty queue for a subscription with these interests.
    pub fn new(interests: Interests) -> Self {
        Self {
            interests,
            waiting: VecDeque::new(),
            known: HashSet::new(),
            is_over: false,
            why: None,
        }
    }

    /// Adds a change, unless the queue has ended or contains an equal change.
    pub fn push(&mut self, change: Change) {
        if self.is_over || self.known.contains(&change) {
            return;
        }
        let Change::Updated(uri) = &change else { return self.keep(change) };
        let own = self.interests.covering(uri).map(ToOwned::to_owned);
        let is_part = own.as_deref() != Some(uri.as_str());
        if !is_part || self.known.len() < self.interests.len() + MAX_PARTS {
            return self.keep(change);
        }
        if let Some(own) = own {
            return self.keep(Change::Updated(own));
        }
        for uri in self.interests.uris().cloned().collect::<Vec<_>>() {
            self.keep(Change::Updated(uri));
        }
    }

    /// Adds everything that these interests cover, because it may have changed.
    pub fn push_all(&mut self, interests: &Interests) {
        interests.all().for_each(|change| self.push(change));
    }

    /// Ends the queue; `why` is the error if the end was unexpected.
    pub fn end(&mut self, why: Option<Error>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.why = why;
        }
    }

    /// Returns whether [`take`](Self::take) has a change or the end to return.
    pub fn is_ready(&self) -> bool {
        !self.waiting.is_empty() || self.is_over
    }

    /// Takes the oldest change, or returns `Pending` if there is none. The error that ended the queue is returned
    /// once, then `None`.
    pub fn take(&mut self) -> Poll<Option<Result<Change, Error>>> {
        if let Some(change) = self.waiting.pop_front() {
            self.known.remove(&change);
            return Poll::Ready(Some(Ok(change)));
        }
        match self.is_over {
            true => Poll::Ready(self.why.take().map(Err)),
            false => Poll::Pending,
        }
    }

    fn keep(&mut self, change: Change) {
        if self.known.insert(change.clone()) {
            self.waiting.push_back(change);
        }
    }
}
