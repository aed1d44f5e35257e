//! Finds the call that a question of a legacy server belongs to. Over such a connection a question names no call.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, Weak},
};

use tokio::sync::oneshot;

use super::{message::lock, peer::Peer};

/// The calls that may ask, and the questions whose call is not known yet.
#[derive(Default)]
pub struct Questions(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    /// From the oldest to the newest.
    calls: Vec<Call>,
    waiting: VecDeque<oneshot::Sender<(u64, Weak<Peer>)>>,
}

struct Call {
    number: u64,
    peer: Weak<Peer>,
    /// The number of its questions that are not answered.
    open: usize,
}

/// A call in progress, until it is dropped.
pub struct Running<'a>(&'a Questions, u64);

/// An open question of a call, until it is dropped.
pub struct Open<'a> {
    questions: &'a Questions,
    call: u64,
    pub peer: Arc<Peer>,
}

impl Questions {
    /// Adds a call.
    pub fn begin(&self, peer: &Arc<Peer>) -> Running<'_> {
        let mut state = lock(&self.0);
        state.next += 1;
        let number = state.next;
        state.calls.push(Call { number, peer: Arc::downgrade(peer), open: 0 });
        state.assign();
        Running(self, number)
    }

    /// Returns whether a command has a call in progress.
    pub fn has_call_of(&self, peer: &Arc<Peer>) -> bool {
        lock(&self.0).calls.iter().any(|call| call.peer.as_ptr() == Arc::as_ptr(peer))
    }

    /// Returns the command whose call asks, `None` if there is none. While several calls run that do not wait for
    /// answers, the question waits until only one of them is left: the call that asks does not end before the answer.
    pub async fn open(&self) -> Option<Open<'_>> {
        let (sender, assigned) = oneshot::channel();
        {
            let mut state = lock(&self.0);
            state.waiting.push_back(sender);
            state.assign();
        }
        let (call, peer) = assigned.await.ok()?;
        let open = Open { questions: self, call, peer: peer.upgrade()? };
        Some(open)
    }
}

impl State {
    fn assign(&mut self) {
        self.waiting.retain(|question| !question.is_closed());
        while !self.waiting.is_empty() {
            let free = self.calls.iter().filter(|call| call.open == 0).count();
            // A call may ask several questions at once. As many questions as calls leave no other order than theirs.
            let call = match free {
                0 => self.calls.last_mut(),
                1 => self.calls.iter_mut().find(|call| call.open == 0),
                _ if free <= self.waiting.len() => {
                    self.calls.iter_mut().find(|call| call.open == 0)
                }
                _ => return,
            };
            let Some(waiting) = self.waiting.pop_front() else { return };
            let Some(call) = call else { continue };
            if waiting.send((call.number, Weak::clone(&call.peer))).is_ok() {
                call.open += 1;
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.calls.retain(|call| call.number != self.1);
        state.assign();
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.questions.0);
        if let Some(call) = state.calls.iter_mut().find(|call| call.number == self.call) {
            call.open = call.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_question_waits_until_one_call_is_left() {
        let questions = Questions::default();
        let (one, other) = (Peer::test(), Peer::test());
        let first = questions.begin(&one);
        let second = questions.begin(&other);
        let mut asked = std::pin::pin!(questions.open());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut asked).await.is_err());
        drop(first);
        let open = asked.await.expect("a call");
        assert!(Arc::ptr_eq(&open.peer, &other));
        // A call that waits for an answer does not ask: the question is of the third call.
        let third = questions.begin(&one);
        let of_third = questions.open().await.expect("a call");
        assert!(Arc::ptr_eq(&of_third.peer, &one));
        drop((of_third, third, open, second));
        assert!(questions.open().await.is_none());
    }
}
