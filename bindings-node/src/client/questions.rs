//! Questions of a server on their way to the JavaScript callbacks, and the answers on their way back.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gudgeon::{
    client::{Answerer, Question},
    error::{Error, ErrorKind},
    protocol::Raw,
};
use tokio::sync::oneshot;

use super::queue::Queue;
use crate::shared::lock;

type Answer = Result<Raw, Error>;

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Questions {
    queue: Arc<Queue>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u32,
    open: HashMap<u32, oneshot::Sender<Answer>>,
}

impl Questions {
    pub(super) fn new(queue: Arc<Queue>) -> Arc<Self> {
        Arc::new(Self { queue, waiting: Mutex::default() })
    }

    /// Calls JavaScript; `what` is the name of the callback.
    pub(super) fn answerer(self: &Arc<Self>, what: &'static str) -> Answerer {
        let questions = Arc::clone(self);
        Arc::new(move |question| {
            let questions = Arc::clone(&questions);
            Box::pin(async move { questions.ask(what, &question).await })
        })
    }

    pub(super) fn answer(&self, number: u32, answer: Answer) {
        // The question was cancelled in the meantime.
        if let Some(waiting) = lock(&self.waiting).open.remove(&number) {
            let _ = waiting.send(answer);
        }
    }

    async fn ask(&self, what: &str, question: &Question) -> Answer {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut waiting = lock(&self.waiting);
            waiting.next = waiting.next.wrapping_add(1);
            let number = waiting.next;
            waiting.open.insert(number, sender);
            number
        };
        let asked = Asked { questions: self, number };
        self.queue.ask(number, what, question);
        let answer = answer.await;
        drop(asked);
        answer.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Cancelled, "the question could not be answered"))
        })
    }
}

/// Dropped when the server withdraws the question; the callback's answer is ignored then.
struct Asked<'a> {
    questions: &'a Questions,
    number: u32,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        lock(&self.questions.waiting).open.remove(&self.number);
    }
}
