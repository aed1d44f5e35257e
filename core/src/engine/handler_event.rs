//! Reports of running handlers: events for their sessions, and the end of a run with its effect on the call.

use std::{collections::BTreeSet, time::Instant};

use super::{
    CallEvent, Delivery, Effect, Engine, LateAnswer,
    id::{CallId, Origin, RunId},
    returned_questions::may_return_questions,
    state::{Queued, Running, State, Wait},
};
use crate::{
    error::{ComponentName, Fault},
    log_events::{EventFacts, EventKind, LogEvent},
    protocol::{Question, Raw, Response},
    router::{self, Failure, Reply, Resolution, ResultBuilder},
    session::{
        asking::{Answers, AskId},
        server::{Log, Progress, handler_finished},
    },
};

/// The maximum number of reported texts that are remembered, so that each is reported once.
const MAX_REPORTED: usize = 100;

/// The maximum number of names of running handlers.
const MAX_NAMES: usize = 10;

/// A report of a running handler, through its shell.
#[derive(Debug)]
pub enum HandlerEvent {
    /// The handler has finished.
    Done(Result<Reply, Failure>),
    Progress(Progress),
    Log(Log),
    /// The handler asks the client. The shell chooses the number, below 2⁶³.
    Ask {
        ask: AskId,
        question: Question,
    },
    /// The handler rejects the client's answer because of this problem, and asks again under another number.
    AskAgain {
        ask: AskId,
        question: Question,
        problem: String,
    },
    /// The handler has asked its questions and waits. `blocks`: true if it holds a thread meanwhile.
    Waits {
        blocks: bool,
    },
    /// A step of the handler returned this value. A replay does not run the step again.
    Step {
        key: String,
        value: Raw,
    },
}

impl HandlerEvent {
    /// Returns whether it is a report that the client does not wait for.
    pub(crate) fn is_report(&self) -> bool {
        matches!(self, Self::Progress(_) | Self::Log(_))
    }
}

/// The end of a handler that did not fail.
#[derive(Debug)]
pub(super) enum Finished {
    Reply(Reply),
    Resolved(Resolution),
}

impl Engine {
    /// Handles a report of a handler. Returns the event for its session. With `is_lagging`, when the client leaves too much
    /// unread, progress is dropped; the session drops log messages, and counts them.
    pub(crate) fn handle_event(
        &mut self,
        now: Instant,
        is_lagging: bool,
        run: RunId,
        event: HandlerEvent,
    ) -> Option<Delivery> {
        let Some(call) = self.calls.call_of(run) else {
            if let HandlerEvent::Ask { ask, .. } | HandlerEvent::AskAgain { ask, .. } = event {
                self.answer(run, ask, Err(handler_finished()));
            }
            return None;
        };
        let event = match event {
            HandlerEvent::Done(outcome) if self.is_route(call) => {
                return self.route_done(run, outcome);
            }
            HandlerEvent::Done(Ok(reply)) => {
                let reply = self.resolve_outside(call, run, reply)?;
                return self.finish(now, call, run, Ok(Finished::Reply(reply)));
            }
            HandlerEvent::Done(Err(failure)) => {
                return self.finish(now, call, run, Err(failure));
            }
            HandlerEvent::Progress(_) if is_lagging => return None,
            HandlerEvent::Progress(progress) => CallEvent::Progress(progress),
            HandlerEvent::Log(log) => CallEvent::Log { now, log, is_lagging },
            HandlerEvent::Ask { ask, question } => self.ask(now, call, run, ask, question),
            HandlerEvent::AskAgain { ask, question, problem } => {
                self.ask_again(now, call, run, ask, question, &problem)
            }
            HandlerEvent::Waits { blocks } => {
                self.wait(now, call, blocks);
                return None;
            }
            HandlerEvent::Step { key, value } => {
                self.step(call, &key, value);
                return None;
            }
        };
        self.delivery(call, event)
    }

    /// Addresses an event of a call. Returns `None` if its request was answered already.
    fn delivery(&mut self, call: CallId, event: CallEvent) -> Option<Delivery> {
        let entry = self.calls.get(call)?;
        let is_answered = match &entry.state {
            State::Suspended(suspended) => suspended.has_answered(),
            _ => false,
        };
        (!is_answered).then_some(Delivery { call, peer: entry.peer, key: entry.key, event })
    }

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
        let resolved = outcome.and_then(|finished| finished.resolve(&running.result_builder));
        let answer = match resolved {
            Ok(Resolution::Answer(answer)) => answer,
            Ok(Resolution::Listen(filter)) => {
                self.leave(now, running.slot);
                return Some(origin.deliver(CallEvent::Listening(filter)));
            }
            Err(failure) => Err(self.fault(&running.result_builder, failure)),
        };
        self.check_meta(&running.result_builder, &answer);
        self.deliver_answer(now, call, &mut running, &answer);
        self.leave(now, running.slot);
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
        self.calls.update(call, |call| {
            let State::Suspended(suspended) = &mut call.state else { return };
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
    pub(super) fn take_running(&mut self, call: CallId) -> Option<(Origin, Running)> {
        let entry = self.calls.remove(call)?;
        let origin = entry.origin(call);
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
            State::AwaitingHost(..) | State::Joined(_) | State::Notified(_) | State::Routed(_) => {
                return None;
            }
        };
        running.slot = None;
        Some((origin, running))
    }

    /// Removes a suspended handler that has its answers from the queue of its tool.
    pub(super) fn leave_line(&mut self, call: CallId, running: &Running) {
        if let Some((tool, _)) = running.result_builder.concurrency() {
            self.concurrency.forget(&tool, call);
        }
    }

    /// Delivers the answer of a call to those that joined it.
    pub(super) fn deliver_answer(
        &mut self,
        now: Instant,
        call: CallId,
        running: &mut Running,
        answer: &Result<Response, Fault>,
    ) {
        if let Some(read) = running.read.take() {
            self.keep_read(now, call, *read, answer);
        }
        if let Some(round) = running.replay.as_mut().and_then(|replay| replay.round.take()) {
            self.rounds.forget(round);
        }
        for joined in std::mem::take(&mut running.joined) {
            if let Some(entry) = self.calls.remove(joined) {
                let (peer, key) = (entry.peer, entry.key);
                self.late.push_back(LateAnswer { peer, key, answer: answer.clone() });
            }
        }
    }

    /// Returns the names of the components and routes whose handlers run, at most [`MAX_NAMES`].
    pub(crate) fn running(&self) -> Vec<String> {
        let names: BTreeSet<String> = self.calls.all_running().collect();
        names.into_iter().take(MAX_NAMES).collect()
    }

    /// Returns the answers that came with the requests of a running handler.
    pub(crate) fn brought_answers(&self, run: RunId) -> Vec<Answers> {
        let running = self.calls.call_of(run).and_then(|call| self.calls.running(call));
        match running.and_then(|running| running.replay.as_ref()) {
            Some(replay) => vec![replay.context.answers.clone(), replay.brought.clone()],
            None => Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, result_builder: &ResultBuilder, failure: Failure) -> Fault {
        let failure = failure.checked();
        let reference = match &failure {
            Failure::Exception { .. } => self.next_reference(),
            _ => String::new(),
        };
        let (fault, report) =
            result_builder.fault(failure, self.components.server.debug, &reference);
        let component = result_builder.component();
        let mut fault = fault;
        if let Some(report) = report {
            fault.reference = Some(reference.as_str().into()).filter(|_| !reference.is_empty());
            self.log_report(report.text, reference, component.clone());
        }
        match component {
            Some(ComponentName { kind, name, .. }) => fault.about(kind, &name),
            None => fault,
        }
    }

    /// Logs a report about a handler; `reference` is that of an exception.
    pub(super) fn log_report(
        &mut self,
        text: String,
        reference: String,
        component: Option<ComponentName>,
    ) {
        let (kind, reference) = match reference.is_empty() {
            true => (EventKind::ServerProblem, None),
            false => (EventKind::CallFailed, Some(reference)),
        };
        let component = component.map(Box::new);
        let facts = EventFacts { component, reference, ..EventFacts::default() };
        self.log(LogEvent::new(kind, text).with(facts));
    }

    /// Adds the caller to the event of the failure with this reference.
    pub(crate) fn complete_failure(&mut self, reference: &str, caller: EventFacts) {
        let event = self.effects.iter_mut().rev().find_map(|effect| match effect {
            Effect::Log(event) if event.facts.reference.as_deref() == Some(reference) => {
                Some(event)
            }
            _ => None,
        });
        // Calls that joined another one get the same failure.
        if let Some(event) = event.filter(|event| event.facts.request_id.is_none()) {
            let facts = std::mem::take(&mut event.facts);
            event.facts =
                EventFacts { component: facts.component, reference: facts.reference, ..caller };
        }
    }

    /// Returns what is known for the log of the handler of a call; `None` if none was handed out for it.
    pub(crate) fn handler_facts(&self, call: CallId) -> Option<EventFacts> {
        let component = self.calls.running(call)?.result_builder.component().map(Box::new);
        Some(EventFacts { component, ..EventFacts::default() })
    }

    /// Returns a name for one failure, which the client and the log get.
    pub(super) fn next_reference(&mut self) -> String {
        self.references = self.references.wrapping_add(1);
        format!("{}-{:x}", self.sealing.tag(), self.references)
    }

    /// Reports keys in a result's `_meta` that the specification does not allow, once each.
    fn check_meta(&mut self, result_builder: &ResultBuilder, answer: &Result<Response, Fault>) {
        let Some(meta) = answer.as_ref().ok().and_then(Response::meta) else { return };
        for problem in router::meta_problems(&meta) {
            let text = format!("{} answered with _meta: {problem}", result_builder.place());
            if self.reported.len() < MAX_REPORTED && self.reported.insert(text.clone()) {
                self.report(text);
            }
        }
    }
}

impl Finished {
    pub(super) fn resolve(self, builder: &ResultBuilder) -> Result<Resolution, Failure> {
        match self {
            Self::Reply(reply) => builder.resolve(reply),
            Self::Resolved(resolution) => Ok(resolution),
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
