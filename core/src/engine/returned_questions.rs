//! Questions that a handler returned. They are sent as the result or as requests, and the handler runs again with the
//! answers.

use std::{collections::HashMap, time::Instant};

use super::{
    CallEvent, Delivery, Engine, Run,
    id::{CallId, Origin},
    questions::{ASKS_ELSEWHERE, journal, nobody_to_ask},
    spans::SpanSubject,
    state::{ReplayState, Requests, Rerun, Running, State, Suspended, Wait},
};
use crate::{
    error::Fault,
    protocol::{Question, Raw, Response},
    router::{Failure, ResultBuilder},
    session::asking::{self, Answers, AskId, Journal, Round},
};

/// The first number of the engine's questions; the shell's are below.
const OWN: u64 = 1 << 63;

/// The failure of a handler that returns questions and forbids replay.
const FORBIDS_AND_RETURNS: &str = "the handler returned a question, though its tool forbids being run again \
     (replay=\"forbid\"): call ctx.elicit, ctx.sample or ctx.roots instead, or remove replay=\"forbid\"";

/// The effect of an answer on a handler that returned questions.
enum AnswerEffect {
    /// Other questions are open.
    Waiting,
    /// The handler runs again.
    Complete,
    /// The client did not answer, and the call fails.
    Failed(Fault),
}

impl Engine {
    /// Sends the questions that a handler returned, as the answer or as requests.
    pub(super) fn ask_back(
        &mut self,
        now: Instant,
        call: CallId,
        questions: &str,
    ) -> Option<Delivery> {
        self.keep_apart(now, call);
        let weight = self.calls.get(call)?.weight;
        let (origin, mut running) = self.take_running(call)?;
        let Some(mut replay) = running.replay.take() else {
            let nothing = asking::nothing_declared();
            let answers = Answers::default();
            let round = asking::round(questions, &answers, Some(&nothing), running.wire);
            self.leave(now, running.slot);
            let fault = round.err().unwrap_or_else(nobody_to_ask);
            return Some(origin.deliver(CallEvent::Answered(Err(fault))));
        };
        let capabilities = replay.context.client.capabilities.as_ref();
        let answers = match replay.recorded.weight() {
            0 => replay.context.answers.clone(),
            _ => Answers::new(None, journal(&replay)),
        };
        let round = asking::round(questions, &answers, capabilities, running.wire);
        let round = round.and_then(|round| match &round {
            Round::Request(requests) => replay.count(requests.len()).map(|()| round),
            Round::Ask(_) => Ok(round),
        });
        let round = round.and_then(|round| {
            let (Round::Ask(open) | Round::Request(open)) = &round;
            open.iter()
                .try_for_each(|question| replay.context.answers.may_ask(question))
                .map(|()| round)
        });
        let answer = match round {
            Err(fault) => Err(fault),
            Ok(Round::Ask(requests)) => {
                let known = answers.journal().asking(&requests);
                let state = self.sealed_state(now, &replay, (None, known));
                Ok(Response::InputRequired { requests, state })
            }
            Ok(Round::Request(requests)) => {
                let event = self.send_requests(now, origin, weight, (running, replay), requests);
                return Some(origin.deliver(event));
            }
        };
        running.replay = Some(replay);
        self.deliver_answer(now, call, &mut running, &answer);
        self.leave(now, running.slot);
        Some(origin.deliver(CallEvent::Answered(answer)))
    }

    /// Handles the end of a question: its handler continues, or the call ends.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) -> CallEvent {
        if ask.0 & OWN == 0 {
            self.handler_answered(now, call, ask, outcome);
            return CallEvent::Nothing;
        }
        match self.record_returned(call, ask, outcome) {
            None | Some(AnswerEffect::Waiting) => CallEvent::Nothing,
            Some(AnswerEffect::Complete) => {
                self.line_up(now, call);
                CallEvent::Nothing
            }
            Some(AnswerEffect::Failed(fault)) => {
                let Some((_, running)) = self.take_running(call) else { return CallEvent::Nothing };
                self.leave(now, running.slot);
                CallEvent::Answered(Err(fault))
            }
        }
    }

    /// Sends questions as requests, and keeps the data for the handler's next run.
    fn send_requests(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        (mut running, mut replay): (Running, Box<ReplayState>),
        requests: Vec<Question>,
    ) -> CallEvent {
        let mut open = HashMap::with_capacity(requests.len());
        let mut asks = Vec::with_capacity(requests.len());
        for question in requests {
            let ask = AskId(OWN | self.next_ask);
            self.next_ask += 1;
            asks.push(self.as_request(ask, question.clone()));
            open.insert(ask, question);
        }
        let is_traced = self.components.server.traces.is_on();
        let run = Run {
            id: running.run,
            handler: replay.handler.clone(),
            input: replay.input.clone(),
            context: replay.context.clone(),
            is_notification: false,
            middleware_frame: replay.middleware_frame.clone(),
            subject: is_traced.then(|| Box::new(SpanSubject::new(&replay.request))),
        };
        replay.sent.clear();
        running.replay = Some(replay);
        let slot = running.slot.take();
        // The next run has the whole timeout, as if the answers had come with another request.
        let left = running.timeout;
        let rerun = Some(Rerun { run, open });
        let wait = Wait::Requests(Requests { held: Vec::new(), rerun });
        let suspended = Suspended { running, left, wait };
        let until = now.checked_add(self.limits().suspended_ttl);
        self.calls.put(origin, weight, until, State::Suspended(Box::new(suspended)));
        self.leave(now, slot);
        CallEvent::Asks(asks)
    }

    /// Records the answer to a question that a handler returned. Returns `None` if the question is not open.
    fn record_returned(
        &mut self,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) -> Option<AnswerEffect> {
        let effect = self.calls.update(call, |call| {
            let State::Suspended(suspended) = &mut call.state else { return None };
            let Suspended { running, wait: Wait::Requests(requests), .. } = &mut **suspended else {
                return None;
            };
            let (rerun, replay) = (requests.rerun.as_mut()?, running.replay.as_mut()?);
            let question = rerun.open.remove(&ask)?;
            match outcome {
                Err(fault) => return Some(AnswerEffect::Failed(fault)),
                Ok(answer) => replay.recorded.answered(&question, answer),
            }
            if !rerun.open.is_empty() {
                return Some(AnswerEffect::Waiting);
            }
            // The next run is given these values, so that what it rejects of them is known here as well.
            let known = replay.context.answers.journal().then(&replay.recorded);
            replay.context.answers = Answers::new(None, known);
            replay.recorded = Journal::default();
            rerun.run.context.answers = replay.context.answers.clone();
            Some(AnswerEffect::Complete)
        });
        effect.flatten()
    }
}

/// Errors if a handler must not return questions.
pub(super) fn may_return_questions(result_builder: &ResultBuilder) -> Result<(), Failure> {
    match (result_builder.may_ask(), result_builder.forbids_replay()) {
        (false, _) => Err(Failure::NotSupported(ASKS_ELSEWHERE.into())),
        (true, true) => Err(Failure::NotSupported(FORBIDS_AND_RETURNS.into())),
        (true, false) => Ok(()),
    }
}
