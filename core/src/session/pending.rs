//! Requests in flight, by the peer's id and by a number of our own.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rustc_hash::FxHashMap;

use crate::protocol::Id;

/// A request or notification of the peer, by a number that its session gives it and never uses twice. It means nothing
/// outside that session.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InboundKey(pub u64);

/// The data of each request until it is answered or cancelled.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    calls: FxHashMap<InboundKey, (Id, T)>,
    /// The peer chooses the ids, so the hashes are seeded.
    ids: HashMap<Id, InboundKey, RandomState>,
    next: u64,
}

impl<T> Pending<T> {
    pub(crate) fn new() -> Self {
        Self { calls: FxHashMap::default(), ids: HashMap::default(), next: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn contains(&self, id: &Id) -> bool {
        self.ids.contains_key(id)
    }

    /// Returns a number for something that is not a request.
    pub(crate) fn number(&mut self) -> InboundKey {
        let call = InboundKey(self.next);
        self.next += 1;
        call
    }

    /// Adds a request. Its id must not be in flight.
    pub(crate) fn register(&mut self, id: Id, value: T) -> InboundKey {
        let call = self.number();
        self.ids.insert(id.clone(), call);
        self.calls.insert(call, (id, value));
        call
    }

    pub(crate) fn get(&self, call: InboundKey) -> Option<(&Id, &T)> {
        self.calls.get(&call).map(|(id, value)| (id, value))
    }

    pub(crate) fn get_mut(&mut self, call: InboundKey) -> Option<(&Id, &mut T)> {
        self.calls.get_mut(&call).map(|(id, value)| (&*id, value))
    }

    /// Removes a request that is being answered.
    pub(crate) fn complete(&mut self, call: InboundKey) -> Option<(Id, T)> {
        let (id, value) = self.calls.remove(&call)?;
        self.ids.remove(&id);
        Some((id, value))
    }

    /// Removes a request that its sender cancelled.
    pub(crate) fn cancel(&mut self, id: &Id) -> Option<(InboundKey, T)> {
        let call = self.ids.remove(id)?;
        self.calls.remove(&call).map(|(_, value)| (call, value))
    }

    /// Removes all requests.
    pub(crate) fn drain(&mut self) -> Vec<InboundKey> {
        self.ids.clear();
        let mut calls: Vec<_> = self.calls.drain().map(|(call, _)| call).collect();
        calls.sort_unstable();
        calls
    }
}
