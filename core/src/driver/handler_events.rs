//! Reports of running handlers to their endpoint, and the host's replies. Nothing here blocks.

use std::time::Duration;

use super::{EndpointServer, Work};
use crate::{
    engine::{HandlerEvent, HostReply, RunId, Ticket},
    http::EndpointInput,
    protocol::{LoggingLevel, Question, Raw},
    router::{Failure, Reply},
    session::{
        asking::{Answers, AskId},
        server::{Log, Progress, ValueChanges},
    },
};

impl EndpointServer {
    /// Ends a handler's run with its outcome, after which others may start.
    pub fn done(&self, run: RunId, outcome: Result<Reply, Failure>) -> Work {
        if let Ok(Reply::Questions(questions)) = &outcome {
            // They may be large, and are checked once.
            for answers in self.brought_answers(run) {
                answers.check_all(questions);
            }
        }
        self.handle_event(run, HandlerEvent::Done(outcome))
    }

    /// Notes what a running handler has changed in the values of its session, or why that can't be stored. It is stored when the
    /// handler is done, before its reply is sent.
    pub fn left_values(&self, run: RunId, left: Result<ValueChanges, String>) {
        self.update(EndpointInput::LeftValues(run, left));
    }

    /// Reports the progress of a running handler.
    pub fn progress(&self, run: RunId, progress: Progress) {
        self.note(run, HandlerEvent::Progress(progress));
    }

    /// Sends a log message of a running handler.
    pub fn log(&self, run: RunId, level: LoggingLevel, logger: Option<String>, data: Raw) {
        self.note(run, HandlerEvent::Log(Log { level, logger, data }));
    }

    /// Asks the client on behalf of a running handler, with params of the newest revision. The answer is in the work of a
    /// later input.
    pub fn ask(&self, run: RunId, ask: AskId, question: Question) -> Work {
        // Its answer may have come with the request and be large; it is checked once.
        for answers in self.brought_answers(run) {
            answers.check(&question);
        }
        self.handle_event(run, HandlerEvent::Ask { ask, question })
    }

    /// Rejects the client's answer because of this problem and asks again, under another number. The answer, or the error that
    /// the retry limit is reached, is in the work of a later input.
    pub fn ask_again(&self, run: RunId, ask: AskId, question: Question, problem: String) -> Work {
        self.handle_event(run, HandlerEvent::AskAgain { ask, question, problem })
    }

    /// Suspends a handler until its questions are answered. `blocks`: it holds a thread while it waits.
    pub fn waits(&self, run: RunId, blocks: bool) -> Work {
        self.handle_event(run, HandlerEvent::Waits { blocks })
    }

    /// Records the result of a handler's step, which is not run again on replay.
    pub fn step(&self, run: RunId, key: &str, value: Raw) {
        self.note(run, HandlerEvent::Step { key: key.to_owned(), value });
    }

    /// Closes the stream of a call, so that its client reconnects for the answer, after `retry` if given. Has no effect where
    /// streams are not resumable.
    pub fn close_stream(&self, run: RunId, retry: Option<Duration>) {
        self.update(EndpointInput::CloseStream(run, retry));
    }

    /// Handles the host's reply to a request, after which handlers may start.
    pub fn host_reply(&self, ticket: Ticket, reply: HostReply) -> Work {
        self.handle(EndpointInput::Host(ticket, reply))
    }

    /// Handles an event of a running handler, after which others may start or continue.
    fn handle_event(&self, run: RunId, event: HandlerEvent) -> Work {
        self.handle(EndpointInput::Handler(run, event))
    }

    /// Handles an event that neither starts nor ends handlers.
    fn note(&self, run: RunId, event: HandlerEvent) {
        self.update(EndpointInput::Handler(run, event));
    }

    /// Returns the answers that came with the requests of a running handler.
    fn brought_answers(&self, run: RunId) -> Vec<Answers> {
        self.lock().endpoint.brought_answers(run)
    }
}
