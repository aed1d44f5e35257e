//! Questions that a handler asks together.

use super::Question;
use crate::{error::Fault, protocol::Raw, session::server::CallContext};

/// Questions that a handler asks together and waits for, until it has accepted an answer to each.
///
/// The handler sends the questions of [`QuestionSet::send`], waits until [`QuestionSet::is_waiting`] is false, reads the
/// outcomes of [`QuestionSet::take`], and calls [`QuestionSet::reject`] for each answer that does not fit. It repeats
/// this while [`QuestionSet::is_open`]. The retry limit for invalid answers is an outcome as well.
#[derive(Debug)]
pub struct QuestionSet(Vec<Entry>);

/// A question that is to be sent.
#[derive(Debug)]
pub struct Unsent {
    /// The question's index in the set.
    pub at: usize,
    pub question: Question,
    /// The reason why the previous answer was rejected.
    pub problem: Option<String>,
}

#[derive(Debug)]
struct Entry {
    question: Question,
    state: State,
}

#[derive(Debug)]
enum State {
    /// To be sent; with the reason why the previous answer was rejected.
    Unsent(Option<String>),
    Sent,
    Answered(Result<Raw, Fault>),
    Read,
}

impl QuestionSet {
    /// Looks up the answers that came with the call. If one of several open questions can't be asked, none is, and the
    /// fault is the only outcome.
    pub fn new(questions: Vec<Question>, context: &CallContext) -> Self {
        let known = |question: &Question| {
            context.answers.get(&question.key, question.method, question.params.get())
        };
        let mut entries: Vec<_> = questions
            .into_iter()
            .map(|question| {
                let state = known(&question)
                    .map_or(State::Unsent(None), |answer| State::Answered(Ok(answer)));
                Entry { question, state }
            })
            .collect();
        if entries.len() > 1 {
            let is_open = |entry: &&Entry| matches!(entry.state, State::Unsent(_));
            let open: Vec<_> =
                entries.iter().filter(is_open).map(|entry| entry.question.clone()).collect();
            if let Err(fault) = context.may_ask(&open) {
                entries.truncate(1);
                entries[0].state = State::Answered(Err(fault));
            }
        }
        Self(entries)
    }

    /// Returns the questions to send now, and marks them as sent.
    pub fn send(&mut self) -> Vec<Unsent> {
        let mut unsent = Vec::new();
        for (at, entry) in self.0.iter_mut().enumerate() {
            if let State::Unsent(problem) = &mut entry.state {
                let problem = problem.take();
                unsent.push(Unsent { at, question: entry.question.clone(), problem });
                entry.state = State::Sent;
            }
        }
        unsent
    }

    /// Records the outcome of a question that was sent; others are ignored.
    pub fn settle(&mut self, at: usize, outcome: Result<Raw, Fault>) {
        if let Some(entry) = self.0.get_mut(at).filter(|entry| matches!(entry.state, State::Sent)) {
            entry.state = State::Answered(outcome);
        }
    }

    /// Returns `true` while an outcome of a sent question is missing.
    pub fn is_waiting(&self) -> bool {
        self.0.iter().any(|entry| matches!(entry.state, State::Sent))
    }

    /// Returns the outcomes that were not read yet, with the indexes of their questions.
    pub fn take(&mut self) -> Vec<(usize, Result<Raw, Fault>)> {
        let read = |(at, entry): (usize, &mut Entry)| {
            let state = std::mem::replace(&mut entry.state, State::Read);
            if let State::Answered(outcome) = state {
                return Some((at, outcome));
            }
            entry.state = state;
            None
        };
        self.0.iter_mut().enumerate().filter_map(read).collect()
    }

    /// Rejects an answer that was read: its question is sent again.
    pub fn reject(&mut self, at: usize, problem: String) {
        if let Some(entry) = self.0.get_mut(at).filter(|entry| matches!(entry.state, State::Read)) {
            entry.state = State::Unsent(Some(problem));
        }
    }

    /// Returns `true` until an outcome of each question was read and none is rejected.
    pub fn is_open(&self) -> bool {
        self.0.iter().any(|entry| !matches!(entry.state, State::Read))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        error::FaultKind,
        protocol::{Method, Revision, json::to_raw},
        session::{
            asking::{Answers, Journal},
            server::ClientIdentity,
        },
        wire::Wire,
    };

    fn context(capabilities: &serde_json::Value, answers: &serde_json::Value) -> CallContext {
        let capabilities = Some(to_raw(capabilities));
        let client = Arc::new(ClientIdentity::new(None, capabilities));
        let wire = Wire::for_revision(Revision::V2026_07_28);
        let mut context = CallContext::new(wire, client, None);
        context.answers = Answers::new(Some(&to_raw(answers)), Journal::default());
        context
    }

    fn roots(key: &str) -> Question {
        Question { key: key.into(), method: Method::ListRoots, params: to_raw(&json!({})) }
    }

    fn answer() -> Raw {
        to_raw(&json!({"roots": []}))
    }

    #[test]
    fn only_rejected_questions_are_sent_again() {
        let context = context(&json!({"roots": {}}), &json!({"known": {"roots": []}}));
        let mut set = QuestionSet::new(vec![roots("a"), roots("known"), roots("b")], &context);
        let first = set.send();
        assert_eq!(first.iter().map(|unsent| unsent.at).collect::<Vec<_>>(), [0, 2]);
        assert!(set.send().is_empty() && set.is_waiting());
        set.settle(2, Ok(answer()));
        assert!(set.is_waiting());
        set.settle(0, Err(Fault::new(FaultKind::Handler, "no")));
        set.settle(0, Ok(answer()));
        assert!(!set.is_waiting() && set.is_open());
        let outcomes = set.take();
        let arrived: Vec<_> = outcomes.iter().map(|(at, outcome)| (*at, outcome.is_ok())).collect();
        assert_eq!(arrived, [(0, false), (1, true), (2, true)]);
        assert!(!set.is_open() && set.take().is_empty());
        set.reject(1, "too short".into());
        assert!(set.is_open());
        let again = set.send();
        assert_eq!((again[0].at, again[0].problem.as_deref()), (1, Some("too short")));
        set.reject(1, "not read yet".into());
        assert!(set.send().is_empty());
        set.settle(1, Ok(answer()));
        assert_eq!(set.take().len(), 1);
        assert!(!set.is_open());
    }

    #[test]
    fn none_of_several_questions_is_sent_if_one_cannot_be() {
        let context = context(&json!({}), &json!({}));
        let mut set = QuestionSet::new(vec![roots("a"), roots("b")], &context);
        assert!(set.send().is_empty());
        let outcomes = set.take();
        assert!(matches!(&outcomes[..], [(0, Err(_))]));
        assert!(!set.is_open());
        let mut one = QuestionSet::new(vec![roots("a")], &context);
        assert_eq!(one.send().len(), 1, "the engine refuses it");
    }
}
