//! Questions that a handler returned and that go out as requests: when all are answered, the handler runs again.

use std::{collections::HashMap, sync::Arc};

use super::{Run, running::Kept};
use crate::{
    error::Fault,
    protocol::{Question, Raw},
    session::{
        CallId, CallMap,
        asking::{Answers, AskId, Journal},
        server::CallContext,
    },
};

/// Numbers from here on are ours, those below are the shell's.
const OWN: u64 = 1 << 63;

#[derive(Debug, Default)]
pub(super) struct Rounds {
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
pub(super) enum Outcome {
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
    pub(super) fn begin(
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
            passage: kept.passage.clone(),
        };
        self.open.insert(call, Asking { run, waiting });
        asks
    }

    pub(super) fn answered(
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
    pub(super) fn asked(&self, call: CallId, ask: AskId) -> Option<Question> {
        self.open.get(&call)?.waiting.get(&ask).cloned()
    }

    /// How many calls wait for answers.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn forget(&mut self, call: CallId) {
        self.open.remove(&call);
    }
}
