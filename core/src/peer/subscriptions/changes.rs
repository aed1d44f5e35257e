//! Changes that were told and not taken yet.

use std::{
    collections::{HashSet, VecDeque},
    task::Poll,
};

use super::Interests;
use crate::{error::Error, session::client::Change};

/// So many parts of subscribed resources are kept apart; more of them count as the resources themselves.
const MAX_PARTS: usize = 1_000;

/// A change that comes again before it was taken is one change: so what waits is bounded by what was asked for.
#[derive(Debug)]
pub struct Changes {
    interests: Interests,
    waiting: VecDeque<Change>,
    known: HashSet<Change>,
    /// There will be no more.
    is_over: bool,
    /// Why it is over, until that was said.
    why: Option<Error>,
}

impl Changes {
    pub fn new(interests: Interests) -> Self {
        Self {
            interests,
            waiting: VecDeque::new(),
            known: HashSet::new(),
            is_over: false,
            why: None,
        }
    }

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

    /// There will be no more; `Some` is why, if it should go on.
    pub fn end(&mut self, why: Option<Error>) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.why = why;
        }
    }

    /// Whether there is something to take, be it the end.
    pub fn is_ready(&self) -> bool {
        !self.waiting.is_empty() || self.is_over
    }

    /// The oldest change; pending where there is none yet. Why it ended is said once, then there is nothing more.
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
