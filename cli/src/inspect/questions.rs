//! The server's questions that wait for an answer of the user.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use gudgeon::{
    client::{Answerer, Question},
    error::{Error, ErrorKind},
    protocol::Raw,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::journal::Journal;

/// The questions in the order in which they were asked.
pub struct Questions {
    journal: Arc<Journal>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    questions: BTreeMap<u64, (Value, oneshot::Sender<Answer>)>,
}

/// An answer: the result as the protocol defines it, or the reason for a refusal.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Result(Raw),
    Refused(String),
}

impl Questions {
    pub fn new(journal: Arc<Journal>) -> Arc<Self> {
        Arc::new(Self { journal, waiting: Mutex::default() })
    }

    /// Returns the callback that asks the user.
    pub fn answerer(self: &Arc<Self>) -> Answerer {
        let questions = Arc::clone(self);
        Arc::new(move |question| {
            let questions = Arc::clone(&questions);
            Box::pin(async move { questions.ask(&question).await })
        })
    }

    /// Answers a question. Returns false if it does not wait any more.
    pub fn answer(&self, id: u64, answer: Answer) -> bool {
        let asked = self.lock(|waiting| waiting.questions.remove(&id));
        asked.is_some_and(|(_, sender)| sender.send(answer).is_ok())
    }

    /// Returns the questions that wait.
    pub fn shown(&self) -> Vec<Value> {
        self.lock(|waiting| {
            waiting.questions.values().map(|(question, _)| question.clone()).collect()
        })
    }

    async fn ask(self: Arc<Self>, question: &Question) -> Result<Raw, Error> {
        let (sender, answer) = oneshot::channel();
        let (id, shown) = self.lock(|waiting| {
            waiting.last += 1;
            let shown = json!({
                "id": waiting.last,
                "key": question.key,
                "method": question.method.as_str(),
                "params": serde_json::from_str::<Value>(question.params.get()).unwrap_or_default(),
            });
            waiting.questions.insert(waiting.last, (shown.clone(), sender));
            (waiting.last, shown)
        });
        let _closing = Closing { questions: Arc::clone(&self), id };
        self.journal.add("question", json!({ "question": shown }));
        match answer.await {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::Refused(reason)) => Err(Error::new(ErrorKind::Declined, reason)),
            Err(_) => Err(Error::new(ErrorKind::Cancelled, "the question was not answered")),
        }
    }

    fn lock<T>(&self, action: impl FnOnce(&mut Waiting) -> T) -> T {
        action(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Tells pages that a question was answered, or withdrawn by the server.
struct Closing {
    questions: Arc<Questions>,
    id: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        let withdrawn = self.questions.lock(|waiting| waiting.questions.remove(&self.id)).is_some();
        self.questions
            .journal
            .add("questionClosed", json!({ "id": self.id, "withdrawn": withdrawn }));
    }
}

#[cfg(test)]
mod tests {
    use gudgeon::protocol::Method;

    use super::*;

    fn question() -> Question {
        let params = serde_json::value::to_raw_value(&json!({ "message": "Sure?" })).unwrap();
        Question { key: None, method: Method::Elicit, params }
    }

    #[tokio::test]
    async fn an_answer_reaches_its_question() {
        let questions = Questions::new(Arc::new(Journal::new()));
        let asked = tokio::spawn(questions.answerer()(question()));
        while questions.shown().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(questions.shown()[0]["params"]["message"], "Sure?");
        let result: Raw = serde_json::value::to_raw_value(&json!({ "action": "decline" })).unwrap();
        assert!(questions.answer(1, Answer::Result(result)));
        assert_eq!(asked.await.unwrap().unwrap().get(), r#"{"action":"decline"}"#);
        assert!(!questions.answer(1, Answer::Refused("late".into())));
    }

    #[tokio::test]
    async fn a_withdrawn_question_is_closed() {
        let questions = Questions::new(Arc::new(Journal::new()));
        let asked = tokio::spawn(questions.answerer()(question()));
        while questions.shown().is_empty() {
            tokio::task::yield_now().await;
        }
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
        assert!(questions.shown().is_empty());
        let (events, _) = questions.journal.after(1);
        assert!(String::from_utf8_lossy(&events[0].json).contains(r#""withdrawn":true"#));
    }
}
