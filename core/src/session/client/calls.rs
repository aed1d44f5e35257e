//! The client's requests in flight and their timeouts.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use super::{CallTimes, RequestKey, RequestOptions};
use crate::{
    error::{Error, ErrorKind, option_name},
    protocol::{Method, MethodName},
};

/// The requests, by their id on the wire.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<u64, Call>,
    ids: HashMap<RequestKey, u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// `true` while the server has an open question, which pauses the idle timeouts.
    is_paused: bool,
}

#[derive(Debug)]
struct Call {
    key: RequestKey,
    method: MethodName,
    timeout: Option<Duration>,
    /// The total timeout, and its deadline.
    cap: Option<(Duration, Instant)>,
    due: Option<Instant>,
    has_token: bool,
    /// True from the second page of a list on.
    is_continued: bool,
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
        let RequestOptions { timeout, max_timeout, wants_progress, times, .. } = options;
        let CallTimes { started, last_seen, is_continued } =
            times.unwrap_or(CallTimes { started: now, last_seen: now, is_continued: false });
        let cap = max_timeout.and_then(|limit| Some((limit, started.checked_add(limit)?)));
        let has_token = wants_progress || timeout.is_some();
        let call = Call { key, method, timeout, cap, due: None, has_token, is_continued };
        self.open.insert(id, call);
        self.ids.insert(key, id);
        self.postpone(last_seen, id);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Returns the key of a `subscriptions/listen` in flight.
    pub(super) fn listen(&self, id: u64) -> Option<RequestKey> {
        self.open.get(&id).filter(|call| call.is_listen()).map(|call| call.key)
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.open.contains_key(&id)
    }

    /// Returns the requests in flight except subscriptions, in the order they were sent.
    pub(super) fn asking(&self) -> Vec<u64> {
        self.ids().into_iter().filter(|id| self.listen(*id).is_none()).collect()
    }

    /// Returns the only request in flight, if there is exactly one. Subscriptions do not count.
    pub(super) fn only(&self) -> Option<u64> {
        let mut asking = self.open.iter().filter(|(_, call)| !call.is_listen()).map(|(id, _)| *id);
        asking.next().filter(|_| asking.next().is_none())
    }

    /// Restarts the idle timeout of a request. Returns its key if it is in flight.
    pub(super) fn progress(&mut self, now: Instant, id: u64) -> Option<RequestKey> {
        let key = self.open.get(&id).filter(|call| call.has_token)?.key;
        self.postpone(now, id);
        Some(key)
    }

    /// Pauses the idle timeouts; on release they restart.
    pub(super) fn hold(&mut self, now: Instant, is_paused: bool) {
        if std::mem::replace(&mut self.is_paused, is_paused) != is_paused {
            self.ids().into_iter().for_each(|id| self.postpone(now, id));
        }
    }

    /// Removes a request that is being answered.
    pub(super) fn complete(&mut self, id: u64) -> Option<(RequestKey, MethodName)> {
        let call = self.open.remove(&id)?;
        self.ids.remove(&call.key);
        if let Some(due) = call.due {
            self.deadlines.remove(&(due, id));
        }
        Some((call.key, call.method))
    }

    /// Removes a cancelled request. Returns its id if it was in flight.
    pub(super) fn forget(&mut self, key: RequestKey) -> Option<u64> {
        let id = *self.ids.get(&key)?;
        self.complete(id).map(|_| id)
    }

    /// Removes and returns a request whose timeout has expired.
    pub(super) fn expired(&mut self, now: Instant) -> Option<(u64, RequestKey, Error)> {
        let (due, id) = *self.deadlines.first()?;
        if due > now {
            return None;
        }
        self.deadlines.pop_first();
        let call = self.open.get(&id)?;
        let capped = call.cap.filter(|(_, end)| *end <= now);
        let method = call.method.as_str();
        let error = match (capped, call.timeout) {
            (Some((cap, _)), _) => took_too_long(method, cap),
            (None, Some(timeout)) if call.is_continued => {
                let seconds = seconds(timeout);
                idle(format!("{method}: not all pages arrived within {seconds}, without progress"))
            }
            (None, Some(timeout)) => {
                idle(format!("{method}: no answer and no progress for {}", seconds(timeout)))
            }
            (None, None) => idle(format!("{method}: no answer in time")),
        };
        let (key, _) = self.complete(id)?;
        Some((id, key, error))
    }

    /// Returns the requests in flight, in the order they were sent.
    pub(super) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<_> = self.open.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Removes all requests, in the order they were sent.
    pub(super) fn drain(&mut self) -> Vec<(RequestKey, MethodName)> {
        self.ids.clear();
        self.deadlines.clear();
        let mut calls: Vec<_> = self.open.drain().collect();
        calls.sort_unstable_by_key(|(id, _)| *id);
        calls.into_iter().map(|(_, call)| (call.key, call.method)).collect()
    }

    fn postpone(&mut self, now: Instant, id: u64) {
        let Some(call) = self.open.get_mut(&id) else { return };
        let timeout = call.timeout.filter(|_| !self.is_paused);
        let idle = timeout.and_then(|timeout| now.checked_add(timeout));
        let due = [idle, call.cap.map(|(_, end)| end)].into_iter().flatten().min();
        if let Some(before) = std::mem::replace(&mut call.due, due) {
            self.deadlines.remove(&(before, id));
        }
        self.deadlines.extend(due.map(|due| (due, id)));
    }
}

impl Call {
    fn is_listen(&self) -> bool {
        self.method == MethodName::Standard(Method::Listen)
    }
}

/// Returns the error of a call that took longer than its total time limit.
pub(crate) fn took_too_long(method: &str, limit: Duration) -> Error {
    let message = format!("{method} took longer than {} in all", seconds(limit));
    let hint = format!("{} sets the limit", option_name("max_timeout"));
    Error::new(ErrorKind::Timeout, message).with_hint(hint)
}

fn idle(message: String) -> Error {
    let hint = format!("{} sets the limit; progress extends it", option_name("timeout"));
    Error::new(ErrorKind::Timeout, message).with_hint(hint)
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
