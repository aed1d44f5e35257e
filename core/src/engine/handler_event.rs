//! What running handlers say.

use std::time::Instant;

use super::{call_event::Upshot, calls::Calls};
use crate::{
    protocol::{Question, Raw},
    router::{Failure, Reply},
    session::{
        CallId,
        asking::AskId,
        server::{Log, Progress},
    },
};

/// What a running handler says, by its shell.
#[derive(Debug)]
pub enum HandlerEvent {
    /// It has finished.
    Done(Result<Reply, Failure>),
    Progress(Progress),
    Log(Log),
    /// It asks the client. The number is the shell's, below 2⁶³.
    Ask {
        ask: AskId,
        question: Question,
    },
    /// What the client answered is not what it wanted, because of this problem: it asks again, under another number.
    AskAgain {
        ask: AskId,
        question: Question,
        problem: String,
    },
    /// It has asked all that it wants to ask now, and waits. `blocks`: it holds a thread meanwhile.
    Waits {
        blocks: bool,
    },
    /// A step of its gave this, and is not to be done again.
    Step {
        key: String,
        value: Raw,
    },
}

impl Calls {
    /// Hears a handler. Gives what comes of it, and for which call. `is_lagging`: whoever made the call leaves so much unread
    /// that it is told only what it waits for.
    pub(crate) fn hear_handler(
        &mut self,
        now: Instant,
        is_lagging: bool,
        handler: CallId,
        event: HandlerEvent,
    ) -> (CallId, Upshot) {
        let upshot = match event {
            HandlerEvent::Done(_) if self.listeners.end(handler) => {
                return (handler, Upshot::Heard);
            }
            HandlerEvent::Done(outcome) => return self.finish(now, handler, outcome),
            HandlerEvent::Progress(_) if is_lagging => Upshot::Nothing,
            HandlerEvent::Progress(progress) => Upshot::Progress(progress),
            HandlerEvent::Log(log) => Upshot::Log { now, log, is_lagging },
            HandlerEvent::Ask { ask, question } => self.ask(now, handler, ask, question),
            HandlerEvent::AskAgain { ask, question, problem } => {
                self.ask_again(now, handler, ask, question, &problem)
            }
            HandlerEvent::Waits { blocks } => {
                self.wait(now, handler, blocks);
                Upshot::Nothing
            }
            HandlerEvent::Step { key, value } => {
                self.step(handler, &key, value);
                Upshot::Nothing
            }
        };
        (self.links.current(handler), upshot)
    }
}
