//! Handlers under way, and when each runs out of time.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::{Duration, Instant},
};

use crate::{
    protocol::Request,
    router::{Finish, Handler},
    session::{CallId, asking::Answers, server::CallContext},
    wire::Wire,
};

/// A handler that was handed out.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) finish: Finish,
    /// The tool whose concurrency limit it counts against.
    pub(super) gate: Option<String>,
    pub(super) timeout: Option<Duration>,
    /// Bytes of input that it holds.
    pub(super) weight: usize,
    pub(super) wire: &'static Wire,
    /// For a client that can be asked.
    pub(super) kept: Option<Box<Kept>>,
}

/// What it takes to run a handler again when its questions are answered.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) request: Request,
    pub(super) handler: Handler,
    pub(super) input: String,
    pub(super) context: CallContext,
}

#[derive(Debug, Default)]
pub(super) struct RunningCalls {
    calls: HashMap<CallId, Running>,
    deadlines: BinaryHeap<Reverse<(Instant, CallId)>>,
    weight: usize,
}

impl RunningCalls {
    pub(super) fn insert(&mut self, call: CallId, running: Running, deadline: Option<Instant>) {
        self.weight += running.weight;
        self.calls.insert(call, running);
        self.deadlines.extend(deadline.map(|it| Reverse((it, call))));
    }

    pub(super) fn remove(&mut self, call: CallId) -> Option<Running> {
        let running = self.take(call);
        // Deadlines of calls that are over lie in the heap until they reach its top.
        while let Some(Reverse((_, first))) = self.deadlines.peek()
            && !self.calls.contains_key(first)
        {
            self.deadlines.pop();
        }
        running
    }

    /// What was answered so far counts in the next round as well.
    pub(super) fn keep_answers(&mut self, call: CallId, answers: &Answers) {
        if let Some(kept) = self.calls.get_mut(&call).and_then(|it| it.kept.as_mut()) {
            kept.context.answers = answers.clone();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Bytes of input that all of them hold.
    pub(super) fn weight(&self) -> usize {
        self.weight
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
            if let Some(running) = self.take(call) {
                return Some((call, running));
            }
        }
        None
    }

    fn take(&mut self, call: CallId) -> Option<Running> {
        let running = self.calls.remove(&call)?;
        self.weight -= running.weight;
        Some(running)
    }
}
