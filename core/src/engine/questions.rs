//! Questions of running handlers: as requests on their stream, or in the round to come, and what is known of them already.

use std::time::Instant;

use super::{
    Effect,
    call_event::Upshot,
    calls::Calls,
    running::{Kept, Running},
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Question, Raw},
    session::{
        CallId,
        asking::{self, AskId},
    },
};

/// What the handler of one call may ask, however often it runs.
const MAX_QUESTIONS: usize = 100;
pub(crate) const ASKS_ELSEWHERE: &str =
    "only the results of tools, resources and prompts carry questions: ask there";

impl Calls {
    /// A running handler asks. The question goes out as a request of its call's, if it is not settled otherwise.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        handler: CallId,
        ask: AskId,
        question: Question,
    ) -> Upshot {
        if let Some(parked) = self.waiting(handler) {
            match parked.later.len() < MAX_QUESTIONS {
                true => parked.later.push((ask, question)),
                false => self.tell(handler, ask, Err(too_many())),
            }
            return Upshot::Nothing;
        }
        if let Err(fault) = self.listeners.check(handler, question.method) {
            self.tell(handler, ask, Err(fault));
            return Upshot::Nothing;
        }
        let call = self.links.current(handler);
        self.keep_apart(now, call);
        match self.known(call, &question) {
            Ok(None) => (),
            Ok(Some(answer)) => {
                self.tell(handler, ask, Ok(answer));
                return Upshot::Nothing;
            }
            Err(fault) => {
                self.tell(handler, ask, Err(fault));
                return Upshot::Nothing;
            }
        }
        if let Some(Err(fault)) = self.running.kept(call).map(|it| it.count(1)) {
            self.tell(handler, ask, Err(fault));
            return Upshot::Nothing;
        }
        let travels_inside = self
            .running
            .get(call)
            .is_some_and(|it| asking::travels_inside(question.method, it.wire));
        if travels_inside {
            if let Err(fault) = self.ask_inside(call, ask, question) {
                self.tell(handler, ask, Err(fault));
            }
            return Upshot::Nothing;
        }
        if let Some(kept) = self.running.kept(call) {
            kept.sent.push((ask, question.clone()));
        } else {
            let until = now.checked_add(self.limits().park_ttl);
            self.listeners.asks(call, ask, question.clone(), until);
        }
        Upshot::Asks(vec![self.as_request(ask, question)])
    }

    /// What a running handler was answered is not what it wanted, because of this problem: it asks once more.
    pub(crate) fn ask_again(
        &mut self,
        now: Instant,
        handler: CallId,
        ask: AskId,
        question: Question,
        problem: &str,
    ) -> Upshot {
        match self.refuse(handler, &question, problem) {
            Ok(()) => self.ask(now, handler, ask, question),
            Err(fault) => {
                self.tell(handler, ask, Err(fault));
                Upshot::Nothing
            }
        }
    }

    /// What was answered to a question that went out as a request does not fit it, because of this problem: it goes out
    /// again, or is settled with that.
    pub(crate) fn unfit(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        problem: &str,
    ) -> Upshot {
        let kept = self.running.get(call).and_then(|it| it.kept.as_deref());
        let sent = kept.and_then(|it| it.sent.iter().find(|(sent, _)| *sent == ask));
        let question = sent.map(|(_, question)| question.clone());
        let question = question.or_else(|| self.rounds.asked(call, ask));
        let Some(question) = question.or_else(|| self.listeners.asked(call, ask)) else {
            return Upshot::Nothing;
        };
        match self.refuse(call, &question, problem) {
            Ok(()) => Upshot::Asks(vec![self.as_request(ask, question)]),
            Err(fault) => self.answered(now, call, ask, Err(fault)),
        }
    }

    /// What was answered to a handler's question counts no more. Fails where it is not to be asked again.
    fn refuse(&mut self, handler: CallId, question: &Question, problem: &str) -> Result<(), Fault> {
        match self.kept(handler) {
            Some(kept) => kept.refuse(question, problem),
            None => self.listeners.refuse(handler, question, problem),
        }
    }

    /// A handler has asked all that it wants to ask now. `blocks`: it holds a thread while it waits.
    pub(crate) fn wait(&mut self, now: Instant, handler: CallId, blocks: bool) {
        if let Some(parked) = self.waiting(handler) {
            parked.is_ready = !parked.later.is_empty();
            return;
        }
        let call = self.links.current(handler);
        if self.running.kept(call).is_none_or(|it| it.asked.is_empty()) {
            if self.running.get(call).is_some_and(Running::is_asking) {
                self.pause(now, call);
            }
            return;
        }
        if self.lacks_room(call, blocks) {
            let asked = self.running.kept(call).map(|it| std::mem::take(&mut it.asked));
            for (ask, _) in asked.unwrap_or_default() {
                self.tell(handler, ask, Err(crowded()));
            }
            return;
        }
        if let Some(running) = self.running.remove(call) {
            let answer = self.park(now, running, blocks);
            self.replies.push_back((call, answer));
        }
    }

    /// A question that went out as a request is settled. Whether its handler may wait for that.
    pub(crate) fn record(&mut self, call: CallId, ask: AskId, answer: Option<&Raw>) -> bool {
        let Some(kept) = self.running.kept(call) else { return false };
        let Some(at) = kept.sent.iter().position(|(sent, _)| *sent == ask) else { return false };
        let (_, question) = kept.sent.swap_remove(at);
        if let Some(answer) = answer {
            kept.recorded.answered(&question, answer.clone());
        }
        true
    }

    /// A step of a handler's is done, and is not to be done again.
    pub(crate) fn step(&mut self, handler: CallId, key: &str, value: Raw) {
        if let Some(kept) = self.kept(handler) {
            kept.recorded.done(key, value);
        }
    }

    /// What is kept of the call that a handler runs for, or waits for.
    fn kept(&mut self, handler: CallId) -> Option<&mut Kept> {
        let call = self.links.current(handler);
        match self.waiting(handler).is_some() {
            true => self.waiting(handler)?.running.kept.as_deref_mut(),
            false => self.running.kept(call),
        }
    }

    /// The answer, where it is known already.
    fn known(&mut self, call: CallId, question: &Question) -> Result<Option<Raw>, Fault> {
        let Some(kept) = self.running.kept(call) else { return Ok(None) };
        let other = || {
            let key = &question.key;
            let problem = format!("two questions have the key {key:?}: give each a key of its own");
            Fault::new(FaultKind::Handler, problem)
        };
        if let Some(answer) = kept.recorded.get(question).map_err(|_| other())? {
            return Ok(Some(answer.clone()));
        }
        let mut open = kept.asked.iter().chain(&kept.sent);
        let is_open = open.any(|(_, it)| it.key == question.key);
        if is_open || kept.context.answers.is_taken(question) {
            return Err(other());
        }
        let Question { key, method, params } = question;
        if let Some(answer) = kept.context.answers.get(key, *method, params.get()) {
            return Ok(Some(answer));
        }
        kept.context.answers.may_ask(question)?;
        // What did not fit was brought, too.
        let is_first = kept.recorded.tries(question) == 0;
        let brought = kept.brought.get(key, *method, params.get()).filter(|_| is_first);
        if let Some(answer) = &brought {
            kept.recorded.answered(question, answer.clone());
        }
        Ok(brought)
    }

    /// Puts a question into the round to come.
    fn ask_inside(&mut self, call: CallId, ask: AskId, question: Question) -> Result<(), Fault> {
        let Some(running) = self.running.get(call) else { return Err(nobody_to_ask()) };
        if !running.result_builder.may_ask() {
            return Err(Fault::new(FaultKind::Handler, ASKS_ELSEWHERE));
        }
        let capabilities = running.kept.as_ref();
        let capabilities = capabilities.and_then(|it| it.context.client.capabilities.as_ref());
        asking::check(&question, capabilities, running.wire)?;
        if self.lacks_room(call, false) {
            return Err(crowded());
        }
        let Some(kept) = self.running.kept(call) else { return Err(nobody_to_ask()) };
        kept.asked.push((ask, question));
        Ok(())
    }

    /// Whether this call's handler could not wait, and must not run twice. `blocks`: it holds a thread while it waits.
    fn lacks_room(&self, call: CallId, blocks: bool) -> bool {
        self.running.get(call).is_some_and(|it| it.result_builder.forbids_replay())
            && !self.parking.has_room(&self.limits(), blocks)
    }

    pub(crate) fn tell(&mut self, handler: CallId, ask: AskId, outcome: Result<Raw, Fault>) {
        self.effects.push_back(Effect::Answered { call: handler, ask, outcome });
    }
}

impl Kept {
    /// A handler that asks in a loop has to end.
    pub(crate) fn count(&mut self, questions: usize) -> Result<(), Fault> {
        self.questions += questions;
        if self.questions <= MAX_QUESTIONS {
            return Ok(());
        }
        Err(too_many())
    }

    /// What was answered to this question is no answer to it, because of this problem: it is forgotten. Fails where the
    /// question is not to be asked again.
    pub(crate) fn refuse(&mut self, question: &Question, problem: &str) -> Result<(), Fault> {
        let earlier = self.recorded.tries(question).max(self.context.answers.tries(question));
        let tries = earlier.saturating_add(1);
        self.context.answers.discard(question, problem);
        self.recorded.refused(question, tries);
        asking::check_retry_limit(question, tries, problem)
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

/// All that a handler knows by now.
pub(crate) fn journal(kept: &Kept) -> asking::Journal {
    kept.context.answers.journal().then(&kept.recorded)
}

pub(crate) fn nobody_to_ask() -> Fault {
    Fault::new(FaultKind::Handler, "the client is gone, or can't be asked")
}
