//! Handlers under way, and when each runs out of time.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

use super::{pausing::Pause, request_state::RoundId};
use crate::{
    protocol::{Question, Request},
    router::{Handler, MiddlewareFrame, ResultBuilder},
    session::{
        CallId, CallMap,
        asking::{Answers, AskId, Journal},
        server::CallContext,
    },
    wire::Wire,
};

/// A handler that was handed out.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) result_builder: ResultBuilder,
    /// The tool whose concurrency limit it counts against.
    pub(crate) gate: Option<String>,
    pub(crate) timeout: Option<Duration>,
    /// When that is over, or its wait for its client.
    pub(crate) deadline: Option<Instant>,
    /// It waits for its client's answers to requests.
    pub(crate) pause: Option<Box<Pause>>,
    /// Bytes of input that it holds.
    pub(crate) weight: usize,
    pub(crate) wire: &'static Wire,
    /// For a client that can be asked.
    pub(crate) kept: Option<Box<Kept>>,
}

/// What it takes to ask the client, and to run a handler again when its questions are answered.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The call under which its shell knows the handler: the first of several requests that it ran for.
    pub(crate) handler_call: CallId,
    pub(crate) request: Request,
    pub(crate) handler: Handler,
    pub(crate) input: String,
    pub(crate) middleware_frame: Option<Box<MiddlewareFrame>>,
    pub(crate) context: CallContext,
    /// What was answered and done beyond what came with the first request.
    pub(crate) recorded: Journal,
    /// What the request brought that it goes on with.
    pub(crate) brought: Answers,
    /// Questions that wait for the end of the handler's turn, to travel in a result.
    pub(crate) asked: Vec<(AskId, Question)>,
    /// How many it has asked so far.
    pub(crate) questions: usize,
    /// Questions that went out as requests.
    pub(crate) sent: Vec<(AskId, Question)>,
    /// The round whose answers it goes on with.
    pub(crate) round: Option<RoundId>,
}

impl Running {
    /// Whether its client has still to answer a request.
    pub(crate) fn is_asking(&self) -> bool {
        self.kept.as_ref().is_some_and(|it| !it.sent.is_empty())
    }
}

#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    calls: CallMap<Running>,
    deadlines: BinaryHeap<Reverse<(Instant, CallId)>>,
    weight: usize,
}

impl RunningCalls {
    pub(crate) fn insert(&mut self, call: CallId, running: Running) {
        self.weight += running.weight;
        self.deadlines.extend(running.deadline.map(|it| Reverse((it, call))));
        self.calls.insert(call, running);
    }

    pub(crate) fn remove(&mut self, call: CallId) -> Option<Running> {
        let running = self.take(call);
        // Deadlines of calls that are over lie in the heap until they reach its top.
        while let Some(Reverse((_, first))) = self.deadlines.peek()
            && !self.calls.contains_key(first)
        {
            self.deadlines.pop();
        }
        running
    }

    pub(crate) fn get(&self, call: CallId) -> Option<&Running> {
        self.calls.get(&call)
    }

    pub(crate) fn get_mut(&mut self, call: CallId) -> Option<&mut Running> {
        self.calls.get_mut(&call)
    }

    /// What is kept of a call whose client can be asked.
    pub(crate) fn kept(&mut self, call: CallId) -> Option<&mut Kept> {
        self.calls.get_mut(&call)?.kept.as_deref_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// How many wait for what their clients were asked in requests.
    pub(crate) fn asking(&self) -> usize {
        self.calls.values().filter(|it| it.is_asking()).count()
    }

    /// Bytes of input that all of them hold.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out the next call whose time is over.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<(CallId, Running)> {
        while let Some(Reverse((at, call))) = self.deadlines.peek().copied()
            && at <= now
        {
            self.deadlines.pop();
            // A call that was asked a question in between has a later one.
            if self.calls.get(&call).is_some_and(|it| it.deadline == Some(at))
                && let Some(running) = self.take(call)
            {
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
