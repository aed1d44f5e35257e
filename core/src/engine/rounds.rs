//! Questions that a handler returned: they are its answer, or go out as requests; when these are answered, it runs again.

use std::{collections::HashMap, sync::Arc, time::Instant};

use super::{
    Run,
    call_event::Upshot,
    calls::Calls,
    questions::{ASKS_ELSEWHERE, journal, nobody_to_ask},
    running::Kept,
};
use crate::{
    error::Fault,
    protocol::{Question, Raw, Response},
    router::{Failure, ResultBuilder},
    session::{
        CallId, CallMap,
        asking::{self, Answers, AskId, Journal, Round},
        server::CallContext,
    },
};

/// Numbers from here on are ours, those below are the shell's.
const OWN: u64 = 1 << 63;

/// Whoever returns questions is run again from its top by its own wish.
const FORBIDS_AND_RETURNS: &str = "the handler returned a question, though its tool forbids being run again \
     (replay=\"forbid\"): ask with ctx.elicit and its kin, which go on from their line, or drop replay=\"forbid\"";

#[derive(Debug, Default)]
pub(crate) struct Rounds {
    open: CallMap<Asking>,
    next: u64,
}

#[derive(Debug)]
struct Asking {
    run: Run,
    waiting: HashMap<AskId, Question>,
}

/// What an answer leads to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A running handler waits for it.
    Elsewhere(Result<Raw, Fault>),
    /// Others are still to come.
    Waiting,
    /// The handler is to run again.
    Complete(Run),
    /// The client would not answer: the call fails.
    Failed(Fault),
}

impl Rounds {
    pub(crate) fn begin(
        &mut self,
        call: CallId,
        kept: &Kept,
        questions: Vec<Question>,
    ) -> Vec<(AskId, Question)> {
        let mut waiting = HashMap::with_capacity(questions.len());
        let mut asks = Vec::with_capacity(questions.len());
        for question in questions {
            let ask = AskId(OWN | self.next);
            self.next += 1;
            asks.push((ask, question.clone()));
            waiting.insert(ask, question);
        }
        let run = Run {
            handler: Arc::clone(&kept.handler),
            input: kept.input.clone(),
            context: kept.context.clone(),
            is_notification: false,
            middleware_frame: kept.middleware_frame.clone(),
        };
        self.open.insert(call, Asking { run, waiting });
        asks
    }

    pub(crate) fn answered(
        &mut self,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
        kept: Option<&mut Kept>,
    ) -> Outcome {
        if ask.0 & OWN == 0 {
            return Outcome::Elsewhere(outcome);
        }
        let (Some(asking), Some(kept)) = (self.open.get_mut(&call), kept) else {
            return Outcome::Waiting;
        };
        let Some(question) = asking.waiting.remove(&ask) else { return Outcome::Waiting };
        match outcome {
            Err(fault) => {
                self.open.remove(&call);
                return Outcome::Failed(fault);
            }
            Ok(answer) => kept.recorded.answered(&question, answer),
        }
        if !asking.waiting.is_empty() {
            return Outcome::Waiting;
        }
        match self.open.remove(&call) {
            None => Outcome::Waiting,
            Some(Asking { run, .. }) => {
                // What the handler finds wrong with them is known here as well, because it is told to the same values.
                let known = kept.context.answers.journal().then(&kept.recorded);
                kept.context.answers = Answers::new(None, known);
                kept.recorded = Journal::default();
                let context = CallContext { answers: kept.context.answers.clone(), ..run.context };
                Outcome::Complete(Run { context, ..run })
            }
        }
    }

    /// What a call asks under this number.
    pub(crate) fn asked(&self, call: CallId, ask: AskId) -> Option<Question> {
        self.open.get(&call)?.waiting.get(&ask).cloned()
    }

    /// How many calls wait for answers.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn forget(&mut self, call: CallId) {
        self.open.remove(&call);
    }
}

impl Calls {
    /// A handler returned questions: they are the answer, or go out as requests.
    pub(crate) fn ask_back(&mut self, now: Instant, call: CallId, questions: &str) -> Upshot {
        self.keep_apart(now, call);
        let Some(mut running) = self.take_running(call) else { return Upshot::Nothing };
        running.pause = None;
        let Some(mut kept) = running.kept.take() else {
            let round = asking::round(questions, &Answers::default(), None, running.wire);
            self.leave(now, running.gate);
            return Upshot::Answered(Err(round.err().unwrap_or_else(nobody_to_ask)));
        };
        let capabilities = kept.context.client.capabilities.as_ref();
        let answers = match kept.recorded.weight() {
            0 => kept.context.answers.clone(),
            _ => Answers::new(None, journal(&kept)),
        };
        let round = asking::round(questions, &answers, capabilities, running.wire);
        let round = round.and_then(|round| match &round {
            Round::Request(requests) => kept.count(requests.len()).map(|()| round),
            Round::Ask(_) => Ok(round),
        });
        let round = round.and_then(|round| {
            let (Round::Ask(open) | Round::Request(open)) = &round;
            open.iter().try_for_each(|it| kept.context.answers.may_ask(it)).map(|()| round)
        });
        match round {
            Err(fault) => {
                running.kept = Some(kept);
                self.conclude(&running, &Err(fault.clone()));
                self.leave(now, running.gate);
                Upshot::Answered(Err(fault))
            }
            Ok(Round::Ask(requests)) => {
                let known = answers.journal().asking(&requests);
                let state = self.state_of(now, &kept, (None, known));
                let answer = Ok(Response::InputRequired { requests, state });
                running.kept = Some(kept);
                self.conclude(&running, &answer);
                self.leave(now, running.gate);
                Upshot::Answered(answer)
            }
            Ok(Round::Request(requests)) => {
                let asks = self.rounds.begin(call, &kept, requests);
                let asks = asks.into_iter().map(|(ask, it)| self.as_request(ask, it)).collect();
                // Its next run has the whole time, as if the answers had come with another request.
                running.deadline = running.timeout.and_then(|it| now.checked_add(it));
                kept.sent.clear();
                running.kept = Some(kept);
                self.running.insert(call, running);
                self.pause(now, call);
                Upshot::Asks(asks)
            }
        }
    }
}

/// Whether a handler may answer with questions.
pub(crate) fn may_return_questions(result_builder: &ResultBuilder) -> Result<(), Failure> {
    match (result_builder.may_ask(), result_builder.forbids_replay()) {
        (false, _) => Err(Failure::NotSupported(ASKS_ELSEWHERE.into())),
        (true, true) => Err(Failure::NotSupported(FORBIDS_AND_RETURNS.into())),
        (true, false) => Ok(()),
    }
}
