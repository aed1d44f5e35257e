//! What resources answered, kept for a while by the server itself: by URI and by who asked. Reads of the same at the same
//! time share one run of the handler. What a handler asked its client about is nobody else's, and is never kept.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{call_event::Upshot, calls::Calls, concurrency::Ready};
use crate::{
    error::Fault,
    protocol::{Inputs, Principal, Request, Response},
    router::ResultBuilder,
    session::{CallId, CallMap},
};

/// Results that are kept.
const MAX_KEPT: usize = 1_000;
/// Their bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// What an entry takes beside its texts, about.
const OVERHEAD: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Cache {
    kept: HashMap<Key, Kept>,
    /// The first to end comes first.
    ends: BTreeMap<(Instant, u64), Key>,
    bytes: usize,
    next: u64,
    /// Reads under way whose answers are to be kept, by the calls whose handlers run.
    reads: CallMap<Read>,
    /// Those that others may join. One whose resource has changed since is not among them.
    current: HashMap<Key, CallId>,
    /// Whom each call that joined waits for.
    joined: CallMap<CallId>,
    weight: usize,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
    uri: Arc<str>,
    principal: Option<Arc<Principal>>,
}

#[derive(Debug)]
struct Kept {
    response: Response,
    end: (Instant, u64),
    bytes: usize,
}

#[derive(Debug)]
struct Read {
    key: Key,
    keep: Duration,
    waiting: VecDeque<Ready>,
}

impl Calls {
    /// Answers a read from what was kept, lets it join one under way, or admits it.
    pub(crate) fn admit_read(&mut self, now: Instant, ready: Ready) -> Upshot {
        let Some((key, keep)) = what_is_kept(&ready) else {
            self.admit(now, ready);
            return Upshot::Nothing;
        };
        if let Some(response) = self.cache.find(now, &key) {
            return Upshot::Answered(Ok(response));
        }
        if let Some(ready) = self.cache.begin(key, keep, ready) {
            self.admit(now, ready);
        }
        Upshot::Nothing
    }

    /// A call has its answer: others wait for the same.
    pub(crate) fn share(&mut self, now: Instant, call: CallId, answer: &Result<Response, Fault>) {
        for call in self.cache.finish(now, call, answer) {
            self.replies.push_back((call, answer.clone()));
        }
    }

    /// A handler asks its client: what comes of it is for this call only, and those that waited for it run by themselves.
    pub(crate) fn keep_apart(&mut self, now: Instant, call: CallId) {
        for ready in self.cache.abandon(call) {
            self.admit(now, ready);
        }
    }

    /// Nobody waits for this call any more. Whether all of it was to wait for another.
    pub(crate) fn leave_read(&mut self, now: Instant, call: CallId) -> bool {
        if self.cache.leave(call) {
            return true;
        }
        if let Some(next) = self.cache.promote(call) {
            self.admit(now, next);
        }
        false
    }
}

impl Cache {
    /// The resource at this URI has changed, for everybody.
    pub(crate) fn forget(&mut self, uri: &str) {
        let keys: Vec<Key> = self.kept.keys().filter(|it| *it.uri == *uri).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
        self.current.retain(|it, _| *it.uri != *uri);
    }

    /// Other resources are offered, or others read them.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.ends.clear();
        self.bytes = 0;
        self.current.clear();
    }

    /// Calls that wait for others' handlers.
    pub(crate) fn joined(&self) -> usize {
        self.joined.len()
    }

    /// Bytes of input that these hold.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn find(&mut self, now: Instant, key: &Key) -> Option<Response> {
        let found = self.kept.get(key)?;
        if found.end.0 > now {
            return Some(found.response.clone());
        }
        self.remove(key);
        None
    }

    /// Gives back a read that has to run; another waits for one under way.
    fn begin(&mut self, key: Key, keep: Duration, ready: Ready) -> Option<Ready> {
        let call = ready.call();
        if let Some(leader) = self.current.get(&key)
            && let Some(read) = self.reads.get_mut(leader)
        {
            self.joined.insert(call, *leader);
            self.weight += ready.weight();
            read.waiting.push_back(ready);
            return None;
        }
        self.current.insert(key.clone(), call);
        self.reads.insert(call, Read { key, keep, waiting: VecDeque::new() });
        Some(ready)
    }

    /// Gives back whom the answer is for as well.
    fn finish(
        &mut self,
        now: Instant,
        call: CallId,
        answer: &Result<Response, Fault>,
    ) -> Vec<CallId> {
        let Some(Read { key, keep, waiting }) = self.end(call) else { return Vec::new() };
        if self.current.get(&key) == Some(&call) {
            self.current.remove(&key);
            if let (Ok(response), Some(end)) = (answer, now.checked_add(keep)) {
                self.keep(now, key, response, end);
            }
        }
        waiting.iter().map(Ready::call).collect()
    }

    /// Gives back who waited.
    fn abandon(&mut self, call: CallId) -> VecDeque<Ready> {
        let Some(read) = self.end(call) else { return VecDeque::new() };
        if self.current.get(&read.key) == Some(&call) {
            self.current.remove(&read.key);
        }
        read.waiting
    }

    /// The handler of this call is stopped: the next that waits for the same runs its own, and the others wait for that.
    fn promote(&mut self, call: CallId) -> Option<Ready> {
        let Read { key, keep, mut waiting } = self.end(call)?;
        let is_current = self.current.get(&key) == Some(&call);
        let Some(next) = waiting.pop_front() else {
            if is_current {
                self.current.remove(&key);
            }
            return None;
        };
        let leader = next.call();
        for one in &waiting {
            self.joined.insert(one.call(), leader);
            self.weight += one.weight();
        }
        if is_current {
            self.current.insert(key.clone(), leader);
        }
        self.reads.insert(leader, Read { key, keep, waiting });
        Some(next)
    }

    /// Whether this call waited for another, which it now does no more.
    fn leave(&mut self, call: CallId) -> bool {
        if self.joined.is_empty() {
            return false;
        }
        let Some(leader) = self.joined.remove(&call) else { return false };
        if let Some(read) = self.reads.get_mut(&leader)
            && let Some(at) = read.waiting.iter().position(|it| it.call() == call)
            && let Some(ready) = read.waiting.remove(at)
        {
            self.weight -= ready.weight();
        }
        true
    }

    /// Takes out a read with those that wait for it.
    fn end(&mut self, call: CallId) -> Option<Read> {
        if self.reads.is_empty() {
            return None;
        }
        let read = self.reads.remove(&call)?;
        for one in &read.waiting {
            self.joined.remove(&one.call());
            self.weight -= one.weight();
        }
        Some(read)
    }

    fn keep(&mut self, now: Instant, key: Key, response: &Response, end: Instant) {
        let Response::Contents { contents, meta, .. } = response else { return };
        let meta = meta.as_ref().map_or(0, |it| it.get().len());
        let bytes = contents.len() + meta + key.uri.len() + OVERHEAD;
        if bytes > MAX_BYTES || end <= now {
            return;
        }
        self.remove(&key);
        let end = (end, self.next);
        self.next += 1;
        self.bytes += bytes;
        self.ends.insert(end, key.clone());
        self.kept.insert(key, Kept { response: response.clone(), end, bytes });
        while let Some((first, key)) = self.ends.first_key_value()
            && (first.0 <= now || self.kept.len() > MAX_KEPT || self.bytes > MAX_BYTES)
        {
            let key = key.clone();
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(kept) = self.kept.remove(key) {
            self.ends.remove(&kept.end);
            self.bytes -= kept.bytes;
        }
    }
}

/// Whether a request brings answers of the user's, which nobody else's result may be made of.
pub(crate) fn brings_answers(request: &Request) -> bool {
    let Request::ReadResource { inputs: Inputs { responses, state }, .. } = request else {
        return false;
    };
    responses.is_some() || state.is_some()
}

/// Under which name, and how long, the result of this is kept.
fn what_is_kept(ready: &Ready) -> Option<(Key, Duration)> {
    let Ready::Start(job, context, _) = ready else { return None };
    let ResultBuilder::Resource(reading) = &job.result_builder else { return None };
    let keep = reading.keep.filter(|it| !it.is_zero())?;
    let key = Key { uri: reading.uri.as_str().into(), principal: context.principal.clone() };
    Some((key, keep))
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
        let (mut cache, now) = (Cache::default(), Instant::now());
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
        assert_eq!((cache.kept.len(), cache.ends.len()), (1, 1), "what is over goes");
        cache.forget("e");
        assert_eq!((cache.kept.len(), cache.ends.len(), cache.bytes), (0, 0, 0));
    }
}
