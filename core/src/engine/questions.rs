//! Questions of running handlers. They are sent as requests on the handler's stream or with the next round, unless the
//! answer is known already.

use std::time::Instant;

use super::{
    CallEvent, Effect, Engine, LateAnswer,
    id::{CallId, Origin, RunId},
    state::{ReplayState, State},
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Question, Raw, Response},
    session::asking::{self, AskId},
};

/// The number of questions that the handler of one call may ask, however often it runs.
const MAX_QUESTIONS: usize = 100;
pub(super) const ASKS_ELSEWHERE: &str =
    "only the results of tools, resources and prompts carry questions: ask there";

/// The result of a question whose handler waits for an earlier round.
enum Later {
    Kept,
    TooMany,
}

impl Engine {
    /// Handles a question of a running handler, which is sent as a request unless it is answered otherwise.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        call: CallId,
        run: RunId,
        ask: AskId,
        question: Question,
    ) -> CallEvent {
        match self.keep_for_later(call, ask, &question) {
            Some(Later::Kept) => return CallEvent::Nothing,
            Some(Later::TooMany) => return self.settle(run, ask, Err(too_many())),
            None => (),
        }
        if let Err(fault) = self.check_notified(call, question.method) {
            return self.settle(run, ask, Err(fault));
        }
        self.keep_apart(now, call);
        match self.known(call, &question) {
            Ok(None) => (),
            Ok(Some(answer)) => return self.settle(run, ask, Ok(answer)),
            Err(fault) => return self.settle(run, ask, Err(fault)),
        }
        let counted = self.update_replay(call, |replay| replay.count(1));
        if let Some(Err(fault)) = counted {
            return self.settle(run, ask, Err(fault));
        }
        let travels_inside = self
            .calls
            .running(call)
            .is_some_and(|running| asking::travels_inside(question.method, running.wire));
        if travels_inside {
            return match self.ask_inside(call, ask, question) {
                Ok(()) => CallEvent::Nothing,
                Err(fault) => self.settle(run, ask, Err(fault)),
            };
        }
        let sent = self.update_replay(call, |replay| replay.sent.push((ask, question.clone())));
        if sent.is_none() {
            self.notified_asks(now, call, ask, question.clone());
        }
        CallEvent::Asks(vec![self.as_request(ask, question)])
    }

    /// Asks again for a running handler, which rejected the answer because of this problem.
    pub(super) fn ask_again(
        &mut self,
        now: Instant,
        call: CallId,
        run: RunId,
        ask: AskId,
        question: Question,
        problem: &str,
    ) -> CallEvent {
        match self.reject(call, &question, problem) {
            Ok(()) => self.ask(now, call, run, ask, question),
            Err(fault) => self.settle(run, ask, Err(fault)),
        }
    }

    /// Handles an invalid answer of the client: the question is sent again, or answered with this problem once the retry
    /// limit is reached.
    pub(super) fn invalid_answer(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        problem: &str,
    ) -> CallEvent {
        let Some(question) = self.open_question(call, ask) else { return CallEvent::Nothing };
        match self.reject(call, &question, problem) {
            Ok(()) => CallEvent::Asks(vec![self.as_request(ask, question)]),
            Err(fault) => self.answered(now, call, ask, Err(fault)),
        }
    }

    /// Suspends a handler until its questions are answered. `blocks`: it holds a thread while it waits.
    pub(super) fn wait(&mut self, now: Instant, call: CallId, blocks: bool) {
        let waits_already = self.calls.update(call, |call| {
            call.state.round_mut().map(|round| round.is_ready = !round.later.is_empty()).is_some()
        });
        let Some(running) = self.calls.running(call).filter(|_| waits_already == Some(false))
        else {
            return;
        };
        let asks_inside = running.replay.as_ref().is_some_and(|replay| !replay.asked.is_empty());
        if !asks_inside {
            if running.is_asking() {
                self.wait_for_requests(now, call);
            }
            return;
        }
        if self.lacks_room(call, blocks) {
            let run = running.run;
            let asked = self.update_replay(call, |replay| std::mem::take(&mut replay.asked));
            for (ask, _) in asked.unwrap_or_default() {
                self.answer(run, ask, Err(crowded()));
            }
            return;
        }
        self.wait_for_round(now, call, blocks);
    }

    /// Records the result of a handler's step, which is not run again on replay.
    pub(super) fn step(&mut self, call: CallId, key: &str, value: Raw) {
        self.update_replay(call, |replay| replay.recorded.done(key, value));
    }

    /// Gives a handler the answer to its question.
    pub(super) fn answer(&mut self, run: RunId, ask: AskId, outcome: Result<Raw, Fault>) {
        self.effects.push_back(Effect::Answered { run, ask, outcome: Box::new(outcome) });
    }

    /// Queues the answer to a request other than the one that is being handled.
    pub(super) fn answer_late(&mut self, origin: Origin, answer: Result<Response, Fault>) {
        self.late.push_back(LateAnswer { peer: origin.peer, key: origin.key, answer });
    }

    /// Handles the answer to a question that was sent as a request.
    pub(super) fn handler_answered(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) {
        let is_recorded =
            self.update_replay(call, |replay| replay.record(ask, outcome.as_ref().ok()));
        if is_recorded == Some(true) {
            return self.request_answered(now, call, ask, outcome);
        }
        let run = match self.calls.get(call).map(|call| &call.state) {
            Some(State::Notified(notified)) => notified.run,
            Some(state) => match state.running() {
                Some(running) => running.run,
                None => return,
            },
            None => return,
        };
        self.notified_answered(call, ask);
        // A handler that returned questions has ended, and may have left others open.
        if self.calls.call_of(run).is_some() {
            self.answer(run, ask, outcome);
        }
    }

    fn settle(&mut self, run: RunId, ask: AskId, outcome: Result<Raw, Fault>) -> CallEvent {
        self.answer(run, ask, outcome);
        CallEvent::Nothing
    }

    fn update_replay<R>(
        &mut self,
        call: CallId,
        change: impl FnOnce(&mut ReplayState) -> R,
    ) -> Option<R> {
        self.calls
            .update_running(call, |running| running.replay.as_deref_mut().map(change))
            .flatten()
    }

    /// Keeps a question for the next round if its handler waits for an earlier one.
    fn keep_for_later(&mut self, call: CallId, ask: AskId, question: &Question) -> Option<Later> {
        let kept = self.calls.update(call, |call| {
            let round = call.state.round_mut()?;
            if round.later.len() >= MAX_QUESTIONS {
                return Some(Later::TooMany);
            }
            round.later.push((ask, question.clone()));
            Some(Later::Kept)
        });
        kept.flatten()
    }

    /// Returns the question with this number that was sent as a request.
    fn open_question(&self, call: CallId, ask: AskId) -> Option<Question> {
        let state = &self.calls.get(call)?.state;
        if let State::Notified(notified) = state {
            let found = notified.asked.iter().find(|(asked, ..)| *asked == ask);
            return found.map(|(_, question, _)| question.clone());
        }
        let sent = state.running().and_then(|running| running.replay.as_deref());
        let sent = sent.and_then(|replay| replay.sent.iter().find(|(sent, _)| *sent == ask));
        let returned = || state.rerun()?.open.get(&ask).cloned();
        sent.map(|(_, question)| question.clone()).or_else(returned)
    }

    /// Forgets the answer to a handler's question. Errors if the question must not be asked again.
    fn reject(&mut self, call: CallId, question: &Question, problem: &str) -> Result<(), Fault> {
        match self.update_replay(call, |replay| replay.refuse(question, problem)) {
            Some(rejected) => rejected,
            None => self.notified_rejects(call, question, problem),
        }
    }

    /// Returns the answer, if it is known already.
    fn known(&mut self, call: CallId, question: &Question) -> Result<Option<Raw>, Fault> {
        self.update_replay(call, |replay| replay.known(question)).unwrap_or(Ok(None))
    }

    /// Adds a question to the next round.
    fn ask_inside(&mut self, call: CallId, ask: AskId, question: Question) -> Result<(), Fault> {
        let Some(running) = self.calls.running(call) else { return Err(nobody_to_ask()) };
        if !running.result_builder.may_ask() {
            return Err(Fault::new(FaultKind::Handler, ASKS_ELSEWHERE));
        }
        let nothing = asking::nothing_declared();
        let capabilities = match &running.replay {
            Some(replay) => replay.context.client.capabilities.as_ref(),
            None => Some(&nothing),
        };
        asking::check(&question, capabilities, running.wire)?;
        if self.lacks_room(call, false) {
            return Err(crowded());
        }
        let asked = self.update_replay(call, |replay| replay.asked.push((ask, question)));
        asked.ok_or_else(nobody_to_ask)
    }

    /// Returns whether this call's handler could neither wait nor be replayed. `blocks`: it holds a thread while it waits.
    fn lacks_room(&self, call: CallId, blocks: bool) -> bool {
        self.calls.running(call).is_some_and(|running| running.result_builder.forbids_replay())
            && !self.has_room(blocks)
    }
}

impl ReplayState {
    /// Counts questions, because a handler that asks in a loop must end.
    pub(super) fn count(&mut self, questions: usize) -> Result<(), Fault> {
        self.questions += questions;
        if self.questions <= MAX_QUESTIONS {
            return Ok(());
        }
        Err(too_many())
    }

    /// Forgets the answer to this question because of this problem. Errors if the question must not be asked again.
    pub(super) fn refuse(&mut self, question: &Question, problem: &str) -> Result<(), Fault> {
        let earlier = self.recorded.tries(question).max(self.context.answers.tries(question));
        let tries = earlier.saturating_add(1);
        self.context.answers.discard(question, problem);
        self.recorded.refused(question, tries);
        asking::check_retry_limit(question, tries, problem)
    }

    /// Records the answer to a request. Returns whether the question was open.
    fn record(&mut self, ask: AskId, answer: Option<&Raw>) -> bool {
        let Some(at) = self.sent.iter().position(|(sent, _)| *sent == ask) else { return false };
        let (_, question) = self.sent.swap_remove(at);
        if let Some(answer) = answer {
            self.recorded.answered(&question, answer.clone());
        }
        true
    }

    fn known(&mut self, question: &Question) -> Result<Option<Raw>, Fault> {
        let other = || {
            let key = &question.key;
            let problem = format!("two questions have the key {key:?}: give each a key of its own");
            Fault::new(FaultKind::Handler, problem)
        };
        if let Some(answer) = self.recorded.get(question).map_err(|_| other())? {
            return Ok(Some(answer.clone()));
        }
        let mut open = self.asked.iter().chain(&self.sent);
        let is_open = open.any(|(_, asked)| asked.key == question.key);
        if is_open || self.context.answers.is_taken(question) {
            return Err(other());
        }
        let Question { key, method, params } = question;
        if let Some(answer) = self.context.answers.get(key, *method, params.get()) {
            return Ok(Some(answer));
        }
        self.context.answers.may_ask(question)?;
        // An answer that was rejected was brought, too.
        let is_first = self.recorded.tries(question) == 0;
        let brought = self.brought.get(key, *method, params.get()).filter(|_| is_first);
        if let Some(answer) = &brought {
            self.recorded.answered(question, answer.clone());
        }
        Ok(brought)
    }
}

fn too_many() -> Fault {
    Fault::new(
        FaultKind::Handler,
        format!(
            "a call may ask its client {MAX_QUESTIONS} questions, and this one has asked them all"
        ),
    )
}

fn crowded() -> Fault {
    Fault::new(
        FaultKind::Handler,
        "too many handlers wait for answers, and this tool must not run twice: try again later",
    )
}

/// Returns all answers and steps of a handler so far.
pub(super) fn journal(replay: &ReplayState) -> asking::Journal {
    replay.context.answers.journal().then(&replay.recorded)
}

pub(super) fn nobody_to_ask() -> Fault {
    Fault::new(FaultKind::Handler, "the client is gone, or can't be asked")
}
