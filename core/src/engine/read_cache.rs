//! Results of resources that the server caches by URI and principal. Concurrent reads of the same resource share one run
//! of the handler. A result for which the handler asked its client is specific to that client and never cached.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CallEvent, Engine,
    id::{CallId, Origin},
    state::{Joined, JoinedKind, Running, Start, State},
};
use crate::{
    error::Fault,
    protocol::{Principal, Response},
    router::ResultBuilder,
};

/// The maximum number of cached results.
const MAX_ENTRIES: usize = 1_000;
/// The maximum of their bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The approximate bytes of an entry in addition to its texts.
const OVERHEAD: usize = 256;

#[derive(Debug, Default)]
pub(super) struct ReadCache {
    entries: HashMap<Key, CacheEntry>,
    /// Entries by expiry, the earliest first.
    ends: BTreeMap<(Instant, u64), Key>,
    bytes: usize,
    next: u64,
    /// Reads in progress that others may join. A read whose resource has changed since is not among them.
    current: HashMap<Key, CallId>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    uri: Arc<str>,
    principal: Option<Arc<Principal>>,
}

#[derive(Debug)]
struct CacheEntry {
    response: Response,
    end: (Instant, u64),
    bytes: usize,
}

/// A read whose result will be cached.
#[derive(Debug)]
pub(super) struct Read {
    key: Key,
    keep: Duration,
}

impl Engine {
    /// Answers a read from the cache, joins it to one in progress, or starts it.
    pub(super) fn admit_read(&mut self, now: Instant, origin: Origin, start: Start) -> CallEvent {
        let Some(read) = kept_read(&start) else {
            self.admit(now, origin, start);
            return CallEvent::Nothing;
        };
        if let Some(response) = self.read_cache.find(now, &read.key) {
            return CallEvent::Answered(Ok(response));
        }
        if let Some(leader) = self.read_cache.current.get(&read.key).copied()
            && self
                .calls
                .update_running(leader, |running| running.joined.push(origin.call))
                .is_some()
        {
            self.join_read(origin, leader, start);
            return CallEvent::Nothing;
        }
        self.read_cache.current.insert(read.key.clone(), origin.call);
        self.admit(now, origin, Start { read: Some(Box::new(read)), ..start });
        CallEvent::Nothing
    }

    /// Called when a handler asks its client: its result is for this call only, and calls that joined it are started.
    pub(super) fn keep_apart(&mut self, now: Instant, call: CallId) {
        let taken = self.calls.update_running(call, |running| {
            running.read.take().map(|read| (read, std::mem::take(&mut running.joined)))
        });
        let Some((read, joined)) = taken.flatten() else { return };
        self.read_cache.end(&read.key, call);
        for id in joined {
            if let Some((origin, start)) = self.take_joined_read(id) {
                self.admit(now, origin, start);
            }
        }
    }

    /// Called when a read is cancelled: the next call that joined it is started, and the others join that one.
    pub(super) fn promote_read(&mut self, now: Instant, call: CallId, running: &mut Running) {
        let Some(read) = running.read.take() else { return };
        let is_current = self.read_cache.end(&read.key, call);
        let mut joined = std::mem::take(&mut running.joined).into_iter();
        let Some((origin, start)) = joined.find_map(|id| self.take_joined_read(id)) else { return };
        if is_current {
            self.read_cache.current.insert(read.key.clone(), origin.call);
        }
        self.admit(now, origin, Start { read: Some(read), ..start });
        for id in joined {
            let Some((follower, start)) = self.take_joined_read(id) else { continue };
            match self.calls.update_running(origin.call, |leader| leader.joined.push(id)) {
                Some(()) => self.join_read(follower, origin.call, start),
                None => self.admit(now, follower, start),
            }
        }
    }

    /// Caches the answer of a read.
    pub(super) fn keep_read(
        &mut self,
        now: Instant,
        call: CallId,
        read: Read,
        answer: &Result<Response, Fault>,
    ) {
        if self.read_cache.end(&read.key, call)
            && let (Ok(response), Some(end)) = (answer, now.checked_add(read.keep))
        {
            self.read_cache.keep(now, read.key, response, end);
        }
    }

    fn join_read(&mut self, origin: Origin, leader: CallId, start: Start) {
        let weight = start.weight();
        let joined = Joined { leader, kind: JoinedKind::Read(start) };
        self.calls.put(origin, weight, None, State::Joined(Box::new(joined)));
    }

    fn take_joined_read(&mut self, call: CallId) -> Option<(Origin, Start)> {
        let entry = self.calls.remove(call)?;
        let origin = entry.origin(call);
        match entry.state {
            State::Joined(joined) => match joined.kind {
                JoinedKind::Read(start) => Some((origin, start)),
                JoinedKind::Round(_) => None,
            },
            _ => None,
        }
    }
}

impl ReadCache {
    /// Removes the resource at this URI, for every principal.
    pub(super) fn forget(&mut self, uri: &str) {
        let keys: Vec<Key> = self.entries.keys().filter(|key| *key.uri == *uri).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
        self.current.retain(|key, _| *key.uri != *uri);
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
        self.bytes = 0;
        self.current.clear();
    }

    fn find(&mut self, now: Instant, key: &Key) -> Option<Response> {
        let found = self.entries.get(key)?;
        if found.end.0 > now {
            return Some(found.response.clone());
        }
        self.remove(key);
        None
    }

    /// Ends a read. Returns whether others could join it until now.
    fn end(&mut self, key: &Key, call: CallId) -> bool {
        let is_current = self.current.get(key) == Some(&call);
        if is_current {
            self.current.remove(key);
        }
        is_current
    }

    fn keep(&mut self, now: Instant, key: Key, response: &Response, end: Instant) {
        let Response::Contents { contents, meta, .. } = response else { return };
        let meta = meta.as_ref().map_or(0, |meta| meta.get().len());
        let bytes = contents.len() + meta + key.uri.len() + OVERHEAD;
        if bytes > MAX_BYTES || end <= now {
            return;
        }
        self.remove(&key);
        let end = (end, self.next);
        self.next += 1;
        self.bytes += bytes;
        self.ends.insert(end, key.clone());
        self.entries.insert(key, CacheEntry { response: response.clone(), end, bytes });
        while let Some((first, key)) = self.ends.first_key_value()
            && (first.0 <= now || self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES)
        {
            let key = key.clone();
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.ends.remove(&entry.end);
            self.bytes -= entry.bytes;
        }
    }
}

/// Returns the key and the time under which a result is cached.
fn kept_read(start: &Start) -> Option<Read> {
    let ResultBuilder::Resource(reading) = &start.job.result_builder else { return None };
    let keep = reading.keep.filter(|time| !time.is_zero())?;
    let key = Key { uri: reading.uri.as_str().into(), principal: start.context.principal.clone() };
    Some(Read { key, keep })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;
    use crate::protocol::CacheHint;

    fn key(uri: &str) -> Key {
        Key { uri: uri.into(), principal: None }
    }

    fn response(bytes: usize) -> Response {
        let contents = "x".repeat(bytes);
        Response::Contents { contents, meta: None, cache: CacheHint::default() }
    }

    #[test]
    fn bytes_are_bounded_and_counted() {
        let (mut cache, now) = (ReadCache::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        let third = MAX_BYTES / 3;
        for (index, uri) in ["a", "b", "c"].into_iter().enumerate() {
            cache.keep(now, key(uri), &response(third), later(10 + index as u64));
        }
        assert!(cache.find(now, &key("a")).is_none(), "what ends first makes room");
        assert!(cache.find(now, &key("b")).is_some() && cache.find(now, &key("c")).is_some());
        cache.keep(now, key("d"), &response(MAX_BYTES), later(10));
        assert!(cache.find(now, &key("d")).is_none(), "one that takes all of it is not kept");
        cache.keep(now, key("b"), &response(1), later(10));
        assert!(cache.bytes < third + 3 * OVERHEAD, "the one before is gone");
        cache.keep(later(60), key("e"), &response(1), later(70));
        assert_eq!((cache.entries.len(), cache.ends.len()), (1, 1), "what is over goes");
        cache.forget("e");
        assert_eq!((cache.entries.len(), cache.ends.len(), cache.bytes), (0, 0, 0));
    }
}
