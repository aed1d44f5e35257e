//! Requests of ours in flight, and how long each may take.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use super::{RequestKey, RequestOptions};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Method, MethodName},
};

/// Requests by their id on the wire.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<u64, Call>,
    ids: HashMap<RequestKey, u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// The server waits for this side: until it is answered, its silence is no fault of its own.
    is_held: bool,
}

#[derive(Debug)]
struct Call {
    key: RequestKey,
    method: MethodName,
    timeout: Option<Duration>,
    /// The absolute cap, and when it is reached.
    cap: Option<(Duration, Instant)>,
    due: Option<Instant>,
    has_token: bool,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn open(
        &mut self,
        now: Instant,
        id: u64,
        key: RequestKey,
        method: MethodName,
        options: RequestOptions,
    ) {
        let RequestOptions { timeout, max_timeout, wants_progress } = options;
        let cap = max_timeout.and_then(|it| Some((it, now.checked_add(it)?)));
        let has_token = wants_progress || timeout.is_some();
        let call = Call { key, method, timeout, cap, due: None, has_token };
        self.open.insert(id, call);
        self.ids.insert(key, id);
        self.postpone(now, id);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Whose `subscriptions/listen` this is, where it is one in flight.
    pub(super) fn listen(&self, id: u64) -> Option<RequestKey> {
        self.open.get(&id).filter(|it| it.is_listen()).map(|it| it.key)
    }

    /// The only request in flight, where there is just one. What listens waits for nothing in particular.
    pub(super) fn only(&self) -> Option<u64> {
        let mut asking = self.open.iter().filter(|(_, it)| !it.is_listen()).map(|(id, _)| *id);
        asking.next().filter(|_| asking.next().is_none())
    }

    /// Somebody works on it: the time without progress begins anew. Whose request it is, if it is one.
    pub(super) fn progress(&mut self, now: Instant, id: u64) -> Option<RequestKey> {
        let key = self.open.get(&id).filter(|it| it.has_token)?.key;
        self.postpone(now, id);
        Some(key)
    }

    /// While it is held, the time without progress stands still; then it begins anew.
    pub(super) fn hold(&mut self, now: Instant, is_held: bool) {
        if std::mem::replace(&mut self.is_held, is_held) != is_held {
            self.ids().into_iter().for_each(|id| self.postpone(now, id));
        }
    }

    /// Forgets a request that is answered now.
    pub(super) fn complete(&mut self, id: u64) -> Option<(RequestKey, MethodName)> {
        let call = self.open.remove(&id)?;
        self.ids.remove(&call.key);
        if let Some(due) = call.due {
            self.deadlines.remove(&(due, id));
        }
        Some((call.key, call.method))
    }

    /// Forgets a request that nobody waits for any more; its id, if it was in flight.
    pub(super) fn forget(&mut self, key: RequestKey) -> Option<u64> {
        let id = *self.ids.get(&key)?;
        self.complete(id).map(|_| id)
    }

    /// A request whose time is over.
    pub(super) fn expired(&mut self, now: Instant) -> Option<(u64, RequestKey, Error)> {
        let (due, id) = *self.deadlines.first()?;
        if due > now {
            return None;
        }
        self.deadlines.pop_first();
        let call = self.open.get(&id)?;
        let capped = call.cap.filter(|(_, end)| *end <= now);
        let method = call.method.as_str();
        let message = match (capped, call.timeout) {
            (Some((cap, _)), _) => format!("{method} took longer than {} in all", seconds(cap)),
            (None, Some(timeout)) => {
                format!("{method}: no answer and no progress for {}", seconds(timeout))
            }
            (None, None) => format!("{method}: no answer in time"),
        };
        let hint = match capped {
            Some(_) => "max_timeout sets the limit",
            None => "timeout sets the limit; progress extends it",
        };
        let (key, _) = self.complete(id)?;
        Some((id, key, Error::new(ErrorKind::Timeout, message).with_hint(hint)))
    }

    /// What is in flight, in the order it was sent.
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<_> = self.open.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Forgets everything, in the order it was sent.
    pub(super) fn drain(&mut self) -> Vec<(RequestKey, MethodName)> {
        self.ids.clear();
        self.deadlines.clear();
        let mut calls: Vec<_> = self.open.drain().collect();
        calls.sort_unstable_by_key(|(id, _)| *id);
        calls.into_iter().map(|(_, call)| (call.key, call.method)).collect()
    }

    fn postpone(&mut self, now: Instant, id: u64) {
        let Some(call) = self.open.get_mut(&id) else { return };
        let timeout = call.timeout.filter(|_| !self.is_held);
        let idle = timeout.and_then(|it| now.checked_add(it));
        let due = [idle, call.cap.map(|(_, end)| end)].into_iter().flatten().min();
        if let Some(before) = std::mem::replace(&mut call.due, due) {
            self.deadlines.remove(&(before, id));
        }
        self.deadlines.extend(due.map(|it| (it, id)));
    }
}

impl Call {
    fn is_listen(&self) -> bool {
        self.method == MethodName::Standard(Method::Listen)
    }
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
