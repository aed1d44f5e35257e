//! Handlers under way, and when each runs out of time.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::{Duration, Instant},
};

use crate::{router::Finish, session::CallId};

/// A handler that was handed out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) finish: Finish,
    /// The tool whose concurrency limit it counts against.
    pub(super) gate: Option<String>,
    pub(super) timeout: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct RunningCalls {
    calls: HashMap<CallId, Running>,
    deadlines: BinaryHeap<Reverse<(Instant, CallId)>>,
}

impl RunningCalls {
    pub(super) fn insert(&mut self, call: CallId, running: Running, deadline: Option<Instant>) {
        self.calls.insert(call, running);
        self.deadlines.extend(deadline.map(|it| Reverse((it, call))));
    }

    pub(super) fn remove(&mut self, call: CallId) -> Option<Running> {
        let running = self.calls.remove(&call);
        // Deadlines of calls that are over lie in the heap until they reach its top.
        while let Some(Reverse((_, first))) = self.deadlines.peek()
            && !self.calls.contains_key(first)
        {
            self.deadlines.pop();
        }
        running
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out the next call whose time is over.
    pub(super) fn expired(&mut self, now: Instant) -> Option<(CallId, Running)> {
        while let Some(Reverse((at, call))) = self.deadlines.peek().copied()
            && at <= now
        {
            self.deadlines.pop();
            if let Some(running) = self.calls.remove(&call) {
                return Some((call, running));
            }
        }
        None
    }
}
