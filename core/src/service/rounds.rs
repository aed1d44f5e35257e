//! Questions that a handler returned and that go out as requests: when all are answered, the handler runs again.

use std::{collections::HashMap, sync::Arc};

use super::{Run, running::Kept};
use crate::{
    error::Fault,
    protocol::{Method, Question, Raw},
    session::{
        CallId,
        asking::{Answers, AskId},
        server::CallContext,
    },
};

/// Numbers from here on are ours, those below are the shell's.
const OWN: u64 = 1 << 63;

#[derive(Debug, Default)]
pub(super) struct Rounds {
    open: HashMap<CallId, Asking>,
    next: u64,
}

#[derive(Debug)]
struct Asking {
    run: Run,
    /// The key under which each answer is expected.
    waiting: HashMap<AskId, String>,
    answers: Answers,
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
    ) -> Vec<(AskId, Method, Raw)> {
        let mut waiting = HashMap::with_capacity(questions.len());
        let mut asks = Vec::with_capacity(questions.len());
        for Question { key, method, params } in questions {
            let ask = AskId(OWN | self.next);
            self.next += 1;
            waiting.insert(ask, key);
            asks.push((ask, method, params));
        }
        let earlier = self.open.remove(&call).map(|it| it.answers);
        let answers = earlier.unwrap_or_else(|| kept.context.answers.clone());
        let run = Run {
            handler: Arc::clone(&kept.handler),
            input: kept.input.clone(),
            context: kept.context.clone(),
            is_notification: false,
        };
        self.open.insert(call, Asking { run, waiting, answers });
        asks
    }

    pub(super) fn answered(
        &mut self,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) -> Outcome {
        if ask.0 & OWN == 0 {
            return Outcome::Elsewhere(outcome);
        }
        let Some(asking) = self.open.get_mut(&call) else { return Outcome::Waiting };
        let Some(key) = asking.waiting.remove(&ask) else { return Outcome::Waiting };
        match outcome {
            Err(fault) => {
                self.open.remove(&call);
                return Outcome::Failed(fault);
            }
            Ok(answer) => asking.answers = asking.answers.with(&key, answer),
        }
        if !asking.waiting.is_empty() {
            return Outcome::Waiting;
        }
        match self.open.remove(&call) {
            None => Outcome::Waiting,
            Some(Asking { run, answers, .. }) => {
                let context = CallContext { answers, ..run.context };
                Outcome::Complete(Run { context, ..run })
            }
        }
    }

    pub(super) fn forget(&mut self, call: CallId) {
        self.open.remove(&call);
    }
}
