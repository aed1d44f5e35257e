//! The end of a handler and its effect on the call.

use std::time::Instant;

use super::{
    CallEvent, Delivery, Effect, Engine, LateAnswer,
    id::{CallId, Origin, RunId},
    returned_questions::may_return_questions,
    state::{Finished, Queued, Running, State, Wait},
};
use crate::{
    error::Fault,
    protocol::Response,
    router::{self, Failure, Reply, Resolution, ResultBuilder},
};

/// The maximum number of reported texts that are remembered, so that each is reported once.
const MAX_REPORTED: usize = 100;

impl<H: Clone> Engine<H> {
    /// Ends a run. Returns the event for its session.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        call: CallId,
        run: RunId,
        outcome: Result<Finished, Failure>,
    ) -> Option<Delivery> {
        match &self.calls.get(call)?.state {
            State::Notified(_) => return self.end_notification(call, run),
            State::Suspended(suspended) if suspended.has_answered() => {
                self.finish_suspended(call, run, outcome);
                return None;
            }
            _ => (),
        }
        self.calls.end_run(run);
        let may_return = match (&outcome, self.calls.running(call)) {
            (Ok(Finished::Reply(Reply::Questions(_))), Some(running)) => {
                may_return_questions(&running.result_builder)
            }
            _ => Ok(()),
        };
        let outcome = match (outcome, may_return) {
            (Ok(Finished::Reply(Reply::Questions(questions))), Ok(())) => {
                return self.ask_back(now, call, &questions);
            }
            (_, Err(failure)) => Err(failure),
            (outcome, Ok(())) => outcome,
        };
        let (origin, mut running) = self.take_running(call)?;
        let resolved = outcome.and_then(|it| it.resolve(&running.result_builder));
        let answer = match resolved {
            Ok(Resolution::Answer(answer)) => answer,
            Ok(Resolution::Listen(filter)) => {
                self.leave(now, running.turn);
                return Some(origin.deliver(CallEvent::Listening(filter)));
            }
            Err(failure) => Err(self.fault(&running.result_builder, failure)),
        };
        self.check_meta(&running.result_builder, &answer);
        self.conclude(now, call, &mut running, &answer);
        self.leave(now, running.turn);
        Some(origin.deliver(CallEvent::Answered(answer)))
    }

    /// Keeps the outcome of a handler that ended before its client answered, for the request that brings the answers. A
    /// handler that the server stopped is run again then.
    fn finish_suspended(&mut self, call: CallId, run: RunId, outcome: Result<Finished, Failure>) {
        self.calls.end_run(run);
        if matches!(outcome, Err(Failure::Cancelled)) {
            self.remove_suspended(call);
            return;
        }
        self.calls.update(call, |it| {
            let State::Suspended(suspended) = &mut it.state else { return };
            let may = match &outcome {
                Ok(Finished::Reply(Reply::Questions(_))) => {
                    may_return_questions(&suspended.running.result_builder)
                }
                _ => Ok(()),
            };
            if let Wait::Round(round) = &mut suspended.wait {
                round.outcome = Some(may.and(outcome));
            }
        });
    }

    /// Removes a call from the table whose handler runs, waits for requests or is queued with answers.
    pub(super) fn take_running(&mut self, call: CallId) -> Option<(Origin, Running<H>)> {
        let entry = self.calls.remove(call)?;
        let origin = Origin { call, peer: entry.peer, key: entry.key };
        let mut running = match entry.state {
            State::Running(running) => return Some((origin, running)),
            State::Suspended(suspended) => suspended.running,
            State::Queued(queued) => match *queued {
                Queued::Answered(suspended) => {
                    self.leave_line(call, &suspended.running);
                    suspended.running
                }
                Queued::Resumed(suspended, context) => {
                    self.leave_line(call, &suspended.running);
                    let mut running = suspended.running;
                    if let Some(replay) = running.replay.as_mut() {
                        replay.go_on_for(context);
                    }
                    running
                }
                Queued::Start(_) => return None,
            },
            State::AwaitingHost(..) | State::Joined(_) | State::Notified(_) => return None,
        };
        running.turn = None;
        Some((origin, running))
    }

    /// Removes a suspended handler that has its answers from the queue of its tool.
    pub(super) fn leave_line(&mut self, call: CallId, running: &Running<H>) {
        if let Some((tool, _)) = running.result_builder.concurrency() {
            self.lines.forget(&tool, call);
        }
    }

    /// Delivers the answer of a call to those that joined it.
    pub(super) fn conclude(
        &mut self,
        now: Instant,
        call: CallId,
        running: &mut Running<H>,
        answer: &Result<Response, Fault>,
    ) {
        if let Some(read) = running.read.take() {
            self.keep_read(now, call, *read, answer);
        }
        if let Some(round) = running.replay.as_mut().and_then(|it| it.round.take()) {
            self.rounds.forget(round);
        }
        for joined in std::mem::take(&mut running.joined) {
            if let Some(it) = self.calls.remove(joined) {
                let (peer, key) = (it.peer, it.key);
                self.late.push_back(LateAnswer { peer, key, answer: answer.clone() });
            }
        }
    }

    /// Returns the result builder of a running handler; `None` once its call has ended.
    pub(crate) fn result_builder(&self, run: RunId) -> Option<ResultBuilder<H>> {
        let running = self.calls.running(self.calls.call_of(run)?)?;
        Some(running.result_builder.clone())
    }

    pub(super) fn fault(&mut self, result_builder: &ResultBuilder<H>, failure: Failure) -> Fault {
        let failure = failure.checked();
        self.references = self.references.wrapping_add(1);
        let reference = match &failure {
            Failure::Exception { .. } => format!("{}-{:x}", self.sealing.tag(), self.references),
            _ => String::new(),
        };
        let (fault, report) =
            result_builder.fault(failure, self.components.server.debug, &reference);
        self.effects.extend(report.map(|it| Effect::Report(it.text)));
        fault
    }

    /// Reports keys in a result's `_meta` that the specification does not allow, once each.
    fn check_meta(&mut self, result_builder: &ResultBuilder<H>, answer: &Result<Response, Fault>) {
        let Some(meta) = answer.as_ref().ok().and_then(Response::meta) else { return };
        for problem in router::meta_problems(&meta) {
            let text = format!("{} answered with _meta: {problem}", result_builder.place());
            if self.reported.len() < MAX_REPORTED && self.reported.insert(text.clone()) {
                self.report(text);
            }
        }
    }
}

impl Origin {
    /// Addresses an event to the request.
    pub(super) fn deliver(self, event: CallEvent) -> Delivery {
        Delivery { call: self.call, peer: self.peer, key: self.key, event }
    }

    /// Addresses an event to the request, unless there is nothing that its client is informed of.
    pub(super) fn deliver_some(self, event: CallEvent) -> Option<Delivery> {
        (!matches!(event, CallEvent::Nothing)).then(|| self.deliver(event))
    }
}
