//! Handlers that wait for answers to their questions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::{
    driver::{EndpointServer, Work},
    engine::RunId,
    error::Fault,
    protocol::{Question, Raw},
    session::{
        asking::{AskId, QuestionSet, Unsent},
        server::CallContext,
    },
};

/// Questions that a handler asked together.
#[derive(Debug)]
pub struct AskedTogether {
    run: RunId,
    /// The id of the first question; the others follow.
    first: u64,
    set: Mutex<QuestionSet>,
}

/// The handlers that wait, with the means to wake them: `W`.
#[derive(Debug)]
pub struct Waiting<W> {
    runs: FxHashMap<RunId, Vec<(Arc<AskedTogether>, W)>>,
    next: u64,
}

impl AskedTogether {
    /// Returns a number that no other questions of the server have.
    pub fn number(&self) -> u64 {
        self.first
    }

    pub fn run(&self) -> RunId {
        self.run
    }

    pub fn set(&self) -> MutexGuard<'_, QuestionSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends these questions of the set to the client.
    pub fn send(&self, unsent: Vec<Unsent>, server: &EndpointServer) -> Work {
        let mut work = Work::default();
        for Unsent { at, question, problem } in unsent {
            let ask = AskId(self.first + at as u64);
            work.extend(match problem {
                None => server.ask(self.run, ask, question),
                Some(problem) => server.ask_again(self.run, ask, question, problem),
            });
        }
        work
    }
}

impl<W> Default for Waiting<W> {
    fn default() -> Self {
        Self { runs: FxHashMap::default(), next: 0 }
    }
}

impl<W> Waiting<W> {
    /// Begins a set of questions; none of them is sent yet.
    pub fn ask(
        &mut self,
        run: RunId,
        questions: Vec<Question>,
        context: &CallContext,
    ) -> Arc<AskedTogether> {
        let first = self.next;
        self.next += questions.len().max(1) as u64;
        let set = Mutex::new(QuestionSet::new(questions, context));
        Arc::new(AskedTogether { run, first, set })
    }

    /// Registers a handler that waits; call this before the questions are sent.
    pub fn wait(&mut self, asked: &Arc<AskedTogether>, waiter: W) {
        self.runs.entry(asked.run).or_default().push((Arc::clone(asked), waiter));
    }

    /// Records the outcome of a question. Returns the waiter of its set once no other outcome is missing.
    pub fn settle(&mut self, run: RunId, ask: AskId, outcome: Result<Raw, Fault>) -> Option<W> {
        let waiting = self.runs.get_mut(&run)?;
        // Sets do not overlap: the last one that begins before the question contains it.
        let before = waiting.iter().enumerate().filter(|(_, (asked, _))| asked.first <= ask.0);
        let (at, (asked, _)) = before.max_by_key(|(_, (asked, _))| asked.first)?;
        let mut set = asked.set();
        set.settle(usize::try_from(ask.0 - asked.first).ok()?, outcome);
        let is_waiting = set.is_waiting();
        drop(set);
        if is_waiting {
            return None;
        }
        let (_, waiter) = waiting.swap_remove(at);
        if waiting.is_empty() {
            self.runs.remove(&run);
        }
        Some(waiter)
    }

    /// Removes the waiters of a handler that has ended or was cancelled.
    pub fn forget(&mut self, run: RunId) -> impl Iterator<Item = W> + use<W> {
        self.runs.remove(&run).into_iter().flatten().map(|(_, waiter)| waiter)
    }

    /// Removes all waiters.
    pub fn forget_all(&mut self) -> impl Iterator<Item = W> + use<W> {
        std::mem::take(&mut self.runs).into_values().flatten().map(|(_, waiter)| waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol::{Method, Revision, json::raw},
        wire::Wire,
    };

    fn roots(key: &str) -> Question {
        Question { key: key.into(), method: Method::ListRoots, params: raw("{}".into()) }
    }

    #[test]
    fn a_handler_is_woken_once_a_set() {
        let mut waiting = Waiting::default();
        let context = CallContext::new(Wire::for_revision(Revision::LATEST), Arc::default(), None);
        let run = RunId(1);
        let mut ask = |keys: &[&str], waiter| {
            let asked = waiting.ask(run, keys.iter().map(|key| roots(key)).collect(), &context);
            assert_eq!(asked.set().send().len(), keys.len());
            waiting.wait(&asked, waiter);
        };
        ask(&["a"], "first");
        ask(&["b"], "second");
        let mut settle = |run, ask| waiting.settle(RunId(run), AskId(ask), Ok(raw("{}".into())));
        assert_eq!(settle(2, 1), None);
        assert_eq!(settle(1, 1), Some("second"));
        assert_eq!(settle(1, 1), None, "an answer to a settled question");
        assert_eq!(waiting.forget(run).collect::<Vec<_>>(), ["first"]);
        assert_eq!(waiting.forget_all().count(), 0);
    }
}
