//! What one serving process holds for one stream of frames, still without IO: session, router, and calls under way.
//!
//! The contract: after each `handle`, call `poll` until it returns `None`; when `deadline` has come, `handle` a
//! [`Input::Tick`].

mod events;
mod gates;
mod guard;
mod running;

use std::{collections::VecDeque, sync::Arc, time::Instant};

pub use self::guard::{Cors, GuardConfig};
use self::{
    gates::Gates,
    running::{Running, RunningCalls},
};
use crate::{
    error::Fault,
    protocol::{Implementation, LoggingLevel, MethodName, Raw, json},
    router::{self, Dispatch, Failure, Finish, Handler, Job, Offers, Reply},
    session::{
        CallId,
        server::{self as session, CallContext, ListKind, Progress, ServerSession, SessionConfig},
    },
};

/// Unanswered requests at which reading should pause.
const MAX_IN_FLIGHT: usize = 10_000;
/// Bytes of unanswered requests at which reading should pause.
const MAX_IN_FLIGHT_BYTES: usize = 64 * 1024 * 1024;

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
    /// What the server offers from now on, and which lists that changes.
    Offers(Arc<Offers>, Vec<ListKind>),
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
    /// Run this handler and report back with [`Input::Done`].
    Run(Run),
    /// Stop this handler: nobody waits for it any more.
    Cancel(CallId),
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
    offers: Arc<Offers>,
    session: ServerSession,
    running: RunningCalls,
    gates: Gates,
    /// Tells this process's references from those of others in one log.
    nonce: u32,
    references: u32,
    outputs: VecDeque<Output>,
}

impl Service {
    /// `nonce` is any number that tells this service from others in a log.
    pub fn new(offers: Arc<Offers>, nonce: u32) -> Self {
        let config = SessionConfig {
            server_info: server_info(&offers.server.info),
            revisions: offers.server.revisions.clone(),
        };
        Self {
            offers,
            session: ServerSession::new(Arc::new(config)),
            running: RunningCalls::default(),
            gates: Gates::default(),
            nonce,
            references: 0,
            outputs: VecDeque::new(),
        }
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.session.handle(session::Input::Frame(bytes)),
            Input::TooLong { limit } => self.session.handle(session::Input::TooLong { limit }),
            Input::Done(call, outcome) => self.finish(now, call, outcome),
            Input::Progress(call, progress) => {
                self.session.handle(session::Input::Progress(call, progress));
            }
            Input::Log { call, level, logger, data } => {
                self.session.handle(session::Input::Log { call, level, logger, data });
            }
            Input::Offers(offers, changed) => {
                self.offers = offers;
                for kind in changed {
                    self.session.handle(session::Input::Changed(kind));
                }
            }
            Input::Tick => self.expire(now),
            Input::Closed => self.session.handle(session::Input::Closed),
        }
        self.drain(now);
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.running.deadline()
    }

    /// Requests that are read and not yet answered: a shell stops reading while there are too many.
    pub fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    /// Whether so much is unanswered, by count or by bytes, that a shell should stop reading.
    pub fn is_full(&self) -> bool {
        self.in_flight() > MAX_IN_FLIGHT
            || self.running.weight() + self.gates.weight() > MAX_IN_FLIGHT_BYTES
    }

    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.session.poll() {
            match output {
                session::Output::Send(frame) => self.outputs.push_back(Output::Send(frame)),
                session::Output::Call(call) => match router::dispatch(&self.offers, call.request) {
                    Dispatch::Answer(answer) => {
                        self.session.handle(session::Input::Done(call.context.call, answer));
                    }
                    Dispatch::Run(job) => self.admit(now, job, call.context),
                },
                session::Output::Cancel(call) => self.cancel(now, call),
                session::Output::Notified { method, params, context } => {
                    self.listen(&method, params, context);
                }
            }
        }
    }

    /// Runs a job now, or when its tool has room.
    fn admit(&mut self, now: Instant, job: Job, context: CallContext) {
        let waits = match &job.finish {
            Finish::Tool(offer) => offer.concurrency.map(|limit| (offer.tool.name.clone(), limit)),
            _ => None,
        };
        match waits {
            None => self.start(now, job, context, None),
            Some((name, limit)) => {
                if let Some((job, context)) = self.gates.enter(&name, limit, job, context) {
                    self.start(now, job, context, Some(name));
                }
            }
        }
    }

    fn start(&mut self, now: Instant, job: Job, context: CallContext, gate: Option<String>) {
        let Job { handler, input, finish, timeout } = job;
        let call = context.call;
        self.running.insert(
            call,
            Running { finish, gate, timeout, weight: input.len() },
            timeout.and_then(|it| now.checked_add(it)),
        );
        self.outputs.push_back(Output::Run(Run {
            handler,
            input,
            context,
            is_notification: false,
        }));
    }

    fn finish(&mut self, now: Instant, call: CallId, outcome: Result<Reply, Failure>) {
        let Some(running) = self.running.remove(call) else { return };
        let answer = outcome.and_then(|reply| running.finish.response(reply));
        let answer = answer.map_err(|failure| self.fault(&running.finish, failure));
        self.session.handle(session::Input::Done(call, answer));
        self.leave(now, running.gate);
    }

    fn fault(&mut self, finish: &Finish, failure: Failure) -> Fault {
        self.references = self.references.wrapping_add(1);
        let reference = format!("{:08x}-{:x}", self.nonce, self.references);
        let (fault, report) = finish.fault(failure, self.offers.server.debug, &reference);
        self.outputs.extend(report.map(|it| Output::Report(it.text)));
        fault
    }

    fn cancel(&mut self, now: Instant, call: CallId) {
        match self.running.remove(call) {
            Some(running) => {
                self.outputs.push_back(Output::Cancel(call));
                self.leave(now, running.gate);
            }
            None => self.gates.forget(call),
        }
    }

    /// Calls that ran out of time are answered and stopped.
    fn expire(&mut self, now: Instant) {
        while let Some((call, running)) = self.running.expired(now) {
            let seconds = running.timeout.map_or(0.0, |it| it.as_secs_f64());
            let fault = self.fault(&running.finish, Failure::TimedOut(seconds));
            self.outputs.push_back(Output::Cancel(call));
            self.session.handle(session::Input::Done(call, Err(fault)));
            self.leave(now, running.gate);
        }
    }

    fn leave(&mut self, now: Instant, gate: Option<String>) {
        if let Some(name) = gate
            && let Some((job, context)) = self.gates.leave(&name)
        {
            self.start(now, job, context, Some(name));
        }
    }

    fn listen(&mut self, method: &MethodName, params: Raw, context: CallContext) {
        if let Some(handler) = self.offers.listener(method.as_str()) {
            self.outputs.push_back(Output::Run(Run {
                handler: Arc::clone(handler),
                input: String::from(Box::<str>::from(params)),
                context,
                is_notification: true,
            }));
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

fn server_info(info: &Implementation) -> String {
    let mut text = String::new();
    json::push(&mut text, info);
    text
}
