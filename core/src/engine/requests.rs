//! Handlers that wait for answers to requests to their client. Meanwhile their timeout stops and they do not count
//! against their tool's limit. None waits longer than `suspended_ttl`.

use std::time::Instant;

use super::{
    Effect, Engine,
    id::{CallId, Origin},
    state::{Queued, Requests, Rerun, State, Suspended, Wait},
};
use crate::{error::Fault, protocol::Raw, session::asking::AskId};

impl Engine {
    /// Suspends a handler until its client has answered the requests.
    pub(super) fn wait_for_requests(&mut self, now: Instant, call: CallId) {
        let can_wait = match self.calls.get(call).map(|call| &call.state) {
            Some(State::Running(_)) => true,
            Some(State::Suspended(suspended)) => !suspended.has_answered(),
            Some(State::Queued(queued)) => matches!(**queued, Queued::Answered(_)),
            _ => false,
        };
        if !can_wait {
            return;
        }
        let Some(entry) = self.calls.remove(call) else { return };
        let (origin, weight) = (entry.origin(call), entry.weight);
        let mut suspended = match entry.state {
            State::Running(running) => {
                let left = entry.deadline.map(|deadline| deadline.saturating_duration_since(now));
                Suspended { running, left, wait: Wait::Requests(Requests::default()) }
            }
            State::Suspended(suspended) => *suspended,
            // The handler asked again while its call was in line.
            State::Queued(queued) => match *queued {
                Queued::Answered(suspended) => {
                    self.leave_line(call, &suspended.running);
                    suspended
                }
                Queued::Start(_) | Queued::Resumed(..) => return,
            },
            _ => return,
        };
        let slot = suspended.running.slot.take();
        if let Wait::Requests(requests) = &mut suspended.wait {
            for (ask, outcome) in std::mem::take(&mut requests.held) {
                self.answer(suspended.running.run, ask, outcome);
            }
        }
        let until = now.checked_add(self.limits().suspended_ttl);
        self.calls.put(origin, weight, until, State::Suspended(Box::new(suspended)));
        self.leave(now, slot);
    }

    /// Handles the answer to a request of a handler, which resumes with the last answer.
    pub(super) fn request_answered(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) {
        let Some(running) = self.calls.running(call) else { return };
        let (run, is_last) = (running.run, !running.is_asking());
        if !is_last {
            return self.answer(run, ask, outcome);
        }
        let mut outcome = Some(outcome);
        self.calls.update(call, |call| {
            if let Some(requests) = call.state.requests_mut() {
                requests.held.extend(outcome.take().map(|outcome| (ask, outcome)));
            }
        });
        match outcome {
            // The handler does not wait yet.
            Some(outcome) => self.answer(run, ask, outcome),
            None => self.line_up(now, call),
        }
    }

    /// Resumes a handler that has its answers, or queues it if its tool is at its limit.
    pub(super) fn line_up(&mut self, now: Instant, call: CallId) {
        let Some(State::Suspended(_)) = self.calls.get(call).map(|call| &call.state) else {
            return;
        };
        let Some(entry) = self.calls.remove(call) else { return };
        let (origin, weight) = (entry.origin(call), entry.weight);
        let State::Suspended(suspended) = entry.state else { return };
        let Some((tool, limit)) = suspended.running.result_builder.concurrency() else {
            return self.go_on(now, origin, weight, *suspended, None);
        };
        if self.concurrency.enter(&tool, limit, call) {
            return self.go_on(now, origin, weight, *suspended, Some(tool));
        }
        // Its client has done its part: the line has no time limit.
        let queued = Queued::Answered(*suspended);
        self.calls.put(origin, weight, None, State::Queued(Box::new(queued)));
    }

    /// Resumes a handler with its answers, or runs it again with them.
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        suspended: Suspended,
        slot: Option<String>,
    ) {
        let Suspended { mut running, left, wait } = suspended;
        let Wait::Requests(Requests { held, rerun }) = wait else { return };
        running.slot = slot;
        for (ask, outcome) in held {
            self.answer(running.run, ask, outcome);
        }
        if let Some(Rerun { mut run, .. }) = rerun {
            running.run = self.calls.begin_run(origin.call);
            run.id = running.run;
            self.effects.push_back(Effect::Run(Box::new(run)));
        }
        let deadline = left.and_then(|left| now.checked_add(left));
        self.calls.put(origin, weight, deadline, State::Running(running));
    }
}
