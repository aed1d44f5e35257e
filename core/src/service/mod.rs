//! What one serving process holds for one stream of frames, still without IO: session, router, and calls under way.
//!
//! The contract: after each `handle`, call `poll` until it returns `None`; when `deadline` has come, `handle` a
//! [`Input::Tick`].

mod calls;
mod conversation;
mod endpoint;
mod events;
mod gates;
mod guard;
mod interaction;
mod parking;
mod reply;
mod rounds;
mod running;
mod sealing;
mod rehearsal;
mod sessions;
pub mod state;

use std::{collections::VecDeque, sync::Arc, time::Instant};

use self::calls::{Begun, Calls, Finished};
pub use self::endpoint::{
    ConnectionId, Endpoint, EndpointConfig, EndpointInput, EndpointOutput, ExchangeId, Part,
    Refused,
};
pub use self::guard::{Arrival, Cors, GuardConfig};
pub use self::sealing::Start;
use crate::{
    error::Fault,
    protocol::{Implementation, LoggingLevel, Question, Raw, json},
pub use self::rehearsal::Rehearsal;
    router::{Failure, Handler, Offers, Reply},
    session::{
        CallId,
        asking::AskId,
        server::{self as session, CallContext, ListKind, Progress, ServerSession, SessionConfig},
    },
};

/// Unanswered requests at which reading should pause.
const MAX_IN_FLIGHT: usize = 10_000;

/// What the shell tells the service.
#[derive(Debug)]
pub enum Input<'a> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// A frame over the limit, in bytes, was thrown away.
    TooLong {
        limit: usize,
    },
    /// A handler has finished.
    Done(CallId, Result<Reply, Failure>),
    Progress(CallId, Progress),
    Log {
        call: CallId,
        level: LoggingLevel,
        logger: Option<String>,
        data: Raw,
    },
    /// A running handler asks the client. Its number is the shell's, below 2⁶³.
    Ask {
        call: CallId,
        ask: AskId,
        question: Question,
    },
    /// A handler has asked all that it wants to ask now, and waits. `blocks`: it holds a thread meanwhile.
    Waits {
        call: CallId,
        blocks: bool,
    },
    /// A step of a handler's gave this, and is not to be done again.
    Step {
        call: CallId,
        key: String,
        value: Raw,
    },
    /// What somebody was sent to a page for is finished.
    PageDone(&'a str),
    /// What the server offers from now on, and which lists that changes.
    Offers(Arc<Offers>, Vec<ListKind>),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// The server stops: subscriptions end with their result.
    ShutDown,
    /// The time of the deadline has come.
    Tick,
    /// The peer is gone.
    Closed,
}

/// What the service asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Send(Vec<u8>),
    Effect(Effect),
}

/// What has to be done beside writing.
#[derive(Debug)]
pub enum Effect {
    /// Run this handler and report back that it is done.
    Run(Run),
    /// Stop this handler: nobody waits for it any more.
    Cancel(CallId),
    /// A handler that waited goes on for another request, in these circumstances; they name the handler as before.
    Resume { call: CallId, context: CallContext },
    /// What the client answered to a running handler.
    Answered { call: CallId, ask: AskId, outcome: Result<Raw, Fault> },
    /// A line for the log: something failed in a way that callers are not told.
    Report(String),
}

/// A handler to be run, and the circumstances.
#[derive(Debug)]
pub struct Run {
    pub handler: Handler,
    /// What it is given: a JSON object.
    pub input: String,
    pub context: CallContext,
    /// Nobody waits for its reply: it listens to a notification.
    pub is_notification: bool,
}

/// One stream's worth of serving.
#[derive(Debug)]
pub struct Service {
    calls: Calls,
    session: ServerSession,
    outputs: VecDeque<Output>,
}

impl Service {
    pub fn new(offers: Arc<Offers>, start: &Start) -> Self {
        let session = ServerSession::new(session_config(&offers, start));
        Self { calls: Calls::new(offers, start), session, outputs: VecDeque::new() }
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.session.handle(session::Input::Frame(bytes)),
            Input::TooLong { limit } => self.session.handle(session::Input::TooLong { limit }),
            Input::Done(handler, outcome) => {
                let (call, finished) = self.calls.finish(now, handler, outcome);
                self.conclude(call, finished);
            }
            Input::Progress(handler, progress) => {
                let call = self.calls.links.current(handler);
                self.session.handle(session::Input::Progress(call, progress));
            }
            Input::Log { call: handler, level, logger, data } => {
                let call = self.calls.links.current(handler);
                self.session.handle(session::Input::Log { call, level, logger, data });
            }
            Input::Ask { call: handler, ask, question } => {
                if let Some((call, Question { method, params, .. })) =
                    self.calls.ask(handler, ask, question)
                {
                    self.session.handle(session::Input::Ask { call, ask, method, params });
                }
            }
            Input::Waits { call, blocks } => self.calls.wait(now, call, blocks),
            Input::Step { call, key, value } => self.calls.step(call, &key, value),
            Input::PageDone(page) => self.session.handle(session::Input::PageDone(page)),
            Input::Offers(offers, changed) => {
                self.calls.offers = offers;
                for kind in changed {
                    self.session.handle(session::Input::Changed(kind));
                }
            }
            Input::Updated(uri) => self.session.handle(session::Input::Updated(uri)),
            Input::ShutDown => {
                self.calls.unpark();
                self.session.handle(session::Input::EndSubscriptions);
            }
            Input::Tick => {
                while let Some((call, fault)) = self.calls.expire(now) {
                    self.session.handle(session::Input::Done(call, Err(fault)));
                }
            }
            Input::Closed => {
                self.calls.unpark();
                self.session.handle(session::Input::Closed);
            }
        }
        self.drain(now);
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front().or_else(|| self.calls.effects.pop_front().map(Output::Effect))
    }

    /// When [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.calls.deadline()
    }

    /// Requests that are read and not yet answered: a shell stops reading while there are too many.
    pub fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    /// Whether so much is unanswered, by count or by bytes, that a shell should stop reading.
    pub fn is_full(&self) -> bool {
        self.in_flight() > MAX_IN_FLIGHT || self.calls.is_full()
    }

    fn conclude(&mut self, call: CallId, finished: Finished) {
        match finished {
            Finished::Answered(answer) => self.session.handle(session::Input::Done(call, answer)),
            Finished::Asks(asks) => {
                for (ask, method, params) in asks {
                    self.session.handle(session::Input::Ask { call, ask, method, params });
                }
            }
            Finished::Forgotten => (),
        }
    }

    fn drain(&mut self, now: Instant) {
        loop {
            if let Some((call, answer)) = self.calls.replies.pop_front() {
                self.session.handle(session::Input::Done(call, answer));
            }
            let Some(output) = self.session.poll() else {
                match self.calls.replies.is_empty() {
                    true => return,
                    false => continue,
                }
            };
            match output {
                session::Output::Send(sent) => self.outputs.push_back(Output::Send(sent.frame)),
                session::Output::Call(call) => {
                    let id = call.context.call;
                    match self.calls.begin(now, call) {
                        Begun::Answered(answer) => {
                            self.session.handle(session::Input::Done(id, answer));
                        }
                        Begun::Listening(filter) => {
                            self.session.handle(session::Input::Listening(id, filter));
                        }
                        Begun::Started => (),
                    }
                }
                session::Output::Cancel(call) => self.calls.cancel(now, call),
                session::Output::Answered { call, ask, outcome } => {
                    let finished = self.calls.answered(now, call, ask, outcome);
                    self.conclude(call, finished);
                }
                session::Output::Notified { method, params, context } => {
                    self.calls.notify(&method, params, context);
                }
                // One stream carries everything: a frame that nothing answers needs no word.
                session::Output::Silent(_) => (),
            }
        }
    }
}

/// The reply to a request that no handler will ever answer, as when a handler was dropped.
pub fn abandoned() -> Failure {
    Failure::Exception {
        kind: "abandoned".into(),
        message: "the handler ended without an answer".into(),
        traceback: String::new(),
    }
}

fn session_config(offers: &Offers, start: &Start) -> Arc<SessionConfig> {
    Arc::new(SessionConfig {
        server_info: server_info(&offers.server.info),
        revisions: offers.server.revisions.clone(),
        dialects: offers.server.dialects.clone(),
        seed: sealing::derive(&start.seed, "session", 0),
    })
}

fn server_info(info: &Implementation) -> String {
    let mut text = String::new();
    json::push(&mut text, info);
    text
}
