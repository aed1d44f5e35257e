//! Questions of handlers to their clients.

use std::sync::Arc;

use gudgeon::{bindings::waiting::AskedTogether, protocol::Method, session::asking::QuestionKeys};
use napi_derive::napi;

use crate::{
    batch::refusal,
    big_integers::marked,
    shared::{Shared, lock},
    work_queue::integer,
};

/// The generated keys of one call's questions.
#[napi]
#[derive(Debug, Default)]
pub struct NativeQuestionKeys(QuestionKeys);

#[napi]
impl NativeQuestionKeys {
    #[napi(constructor, catch_unwind)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next key, inside the step with this key if there is one; null if no question has this method.
    #[napi(catch_unwind)]
    pub fn next(&mut self, method: String, step: Option<String>) -> Option<String> {
        Some(self.0.next(Method::parse(&method)?, step.as_deref()))
    }
}

/// Questions that a handler asks together, until it has accepted an answer to each.
#[napi]
#[derive(Debug)]
pub struct NativeQuestions {
    shared: Arc<Shared>,
    asked: Arc<AskedTogether>,
}

#[napi]
impl NativeQuestions {
    /// The number under which a batch reports that all questions that were sent are answered.
    #[napi(getter, catch_unwind)]
    #[allow(clippy::cast_precision_loss, reason = "nobody asks so many questions")]
    pub fn number(&self) -> f64 {
        self.asked.number() as f64
    }

    /// True until an outcome of each question was taken and none is rejected.
    #[napi(getter, catch_unwind)]
    pub fn is_open(&self) -> bool {
        self.asked.set().is_open()
    }

    /// Sends the open questions. Returns whether there are any, and null if the handler has ended.
    #[napi(catch_unwind)]
    pub fn send(&self) -> Option<bool> {
        let unsent = self.asked.set().send();
        if unsent.is_empty() {
            return Some(false);
        }
        if !lock(&self.shared.batches).wait(&self.asked) {
            return None;
        }
        self.shared.call(|endpoint| self.asked.send(unsent, endpoint));
        Some(true)
    }

    /// Returns the new outcomes as JSON: for each the question's index, the result and the refusal.
    #[napi(catch_unwind)]
    pub fn take(&self) -> String {
        let outcomes = self.asked.set().take().into_iter().map(|(at, outcome)| match outcome {
            Ok(result) => format!("[{at},{},null]", marked(result.get())),
            Err(fault) => format!("[{at},null,{}]", refusal(fault)),
        });
        format!("[{}]", outcomes.collect::<Vec<_>>().join(","))
    }

    /// Rejects an answer because of this problem: its question is sent again.
    #[napi(catch_unwind)]
    pub fn reject(&self, at: f64, problem: String) {
        self.asked.set().reject(usize::try_from(integer(at)).unwrap_or(usize::MAX), problem);
    }
}

impl NativeQuestions {
    pub(crate) fn new(shared: Arc<Shared>, asked: Arc<AskedTogether>) -> Self {
        Self { shared, asked }
    }
}
