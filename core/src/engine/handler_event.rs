//! Reports of running handlers.

use std::time::Instant;

use super::{
    CallEvent, Delivery, Engine,
    id::{CallId, RunId},
    state::{Finished, State},
};
use crate::{
    protocol::{Question, Raw},
    router::{Failure, Reply, Resolution},
    session::{
        asking::AskId,
        server::{Log, Progress},
    },
};

/// A report of a running handler, through its shell.
#[derive(Debug)]
pub enum HandlerEvent {
    /// It has finished.
    Done(Result<Reply, Failure>),
    /// It has finished, and its reply was resolved outside the lock.
    Resolved(Result<Resolution, Failure>),
    Progress(Progress),
    Log(Log),
    /// It asks the client. The shell chooses the number, below 2⁶³.
    Ask {
        ask: AskId,
        question: Question,
    },
    /// It rejects the client's answer because of this problem, and asks again under another number.
    AskAgain {
        ask: AskId,
        question: Question,
        problem: String,
    },
    /// It has asked its questions and waits. `blocks`: it holds a thread meanwhile.
    Waits {
        blocks: bool,
    },
    /// A step of the handler returned this value. It is not run again on replay.
    Step {
        key: String,
        value: Raw,
    },
}

impl<H: Clone> Engine<H> {
    /// Handles a report of a handler. Returns the event for its session. With `is_lagging`, when the client leaves too much
    /// unread, progress is dropped and log messages are delayed.
    pub(crate) fn handle_event(
        &mut self,
        now: Instant,
        is_lagging: bool,
        run: RunId,
        event: HandlerEvent,
    ) -> Option<Delivery> {
        let Some(call) = self.calls.call_of(run) else {
            if let HandlerEvent::Ask { ask, .. } | HandlerEvent::AskAgain { ask, .. } = event {
                self.answer(run, ask, Err((self.too_late)()));
            }
            return None;
        };
        let event = match event {
            HandlerEvent::Done(outcome) => {
                return self.finish(now, call, run, outcome.map(Finished::Reply));
            }
            HandlerEvent::Resolved(outcome) => {
                return self.finish(now, call, run, outcome.map(Finished::Resolved));
            }
            HandlerEvent::Progress(_) if is_lagging => return None,
            HandlerEvent::Progress(progress) => CallEvent::Progress(progress),
            HandlerEvent::Log(log) => CallEvent::Log { now, log, is_lagging },
            HandlerEvent::Ask { ask, question } => self.ask(now, call, run, ask, question),
            HandlerEvent::AskAgain { ask, question, problem } => {
                self.ask_again(now, call, run, ask, question, &problem)
            }
            HandlerEvent::Waits { blocks } => {
                self.wait(now, call, blocks);
                return None;
            }
            HandlerEvent::Step { key, value } => {
                self.step(call, &key, value);
                return None;
            }
        };
        self.delivery(call, event)
    }

    /// Addresses an event of a call. Returns `None` if its request was answered already.
    fn delivery(&mut self, call: CallId, event: CallEvent) -> Option<Delivery> {
        let it = self.calls.get(call)?;
        let is_answered = match &it.state {
            State::Suspended(suspended) => suspended.has_answered(),
            _ => false,
        };
        (!is_answered).then_some(Delivery { call, peer: it.peer, key: it.key, event })
    }
}
