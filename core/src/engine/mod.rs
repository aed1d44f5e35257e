//! What one serving process holds for one stream of frames, still without IO: session, router, and calls under way.
//!
//! The contract: after each `handle`, call `poll` until it returns `None`; when `deadline` has come, `handle` a
//! [`Input::Tick`].

mod call_event;
mod calls;
mod concurrency;
mod cursors;
mod handler_event;
mod id;
mod links;
mod notifications;
mod parking;
mod pausing;
mod peer;
mod questions;
mod read_cache;
mod test_mode;
pub mod request_state;
mod resuming;
mod rounds;
mod running;
mod sealing;
mod visibility;

use std::{collections::VecDeque, sync::Arc, time::Instant};

pub use self::handler_event::HandlerEvent;
pub use self::id::{ConnectionId, ExchangeId};
pub use self::sealing::Start;
pub use self::test_mode::TestMode;
pub(crate) use self::{
    call_event::Upshot,
    calls::{Calls, MAX_IN_FLIGHT_BYTES, MAX_LISTENERS},
    peer::{Conversation, Emission, Flights, Owner, Scene, UnderWay},
};
use crate::{
    error::Fault,
    protocol::{Implementation, Raw, json},
    router::{Components, Failure, Handler, MiddlewareFrame},
    session::{
        CallId,
        asking::AskId,
        server::{self as session, CallContext, HttpFacts, ListKind, ServerSession, SessionConfig},
    },
};

/// Why subscriptions of a peer end that does not read.
pub(crate) const TOO_SLOW: &str =
    "the client leaves too much unread: listen again, and read what has changed";
/// Unanswered requests at which reading should pause.
const MAX_IN_FLIGHT: usize = 10_000;

/// What the shell tells the service.
#[derive(Debug)]
pub enum Input<'a> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// A frame over the limit, in bytes, was thrown away.
    TooLong { limit: usize },
    /// A running handler says this.
    Handler(CallId, HandlerEvent),
    /// What somebody was sent to a page for is finished.
    PageDone(&'a str),
    /// What the server offers from now on, and which lists that changes.
    Components(Arc<Components>, Vec<ListKind>),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// Whether the peer leaves so much unread that it is told only what it waits for: what handlers tell of their
    /// progress or to its log is left out.
    Lagging(bool),
    /// The peer leaves so many changes unread that its subscriptions end.
    CutSubscriptions,
    /// The server stops: subscriptions end with their result.
    ShutDown,
    /// The time of the deadline has come.
    Tick,
    /// The peer says nothing more: what is in flight is still answered, and no question is.
    EndOfInput,
    /// The peer is gone.
    Closed,
}

/// What the service asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Send(Vec<u8>),
    /// The same, unless an equal one waits to be written: it tells of a change.
    Change(Vec<u8>),
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
    /// A line for the log, for who looks closely.
    Detail(String),
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
    /// Middleware is to be run around the handler.
    pub middleware_frame: Option<Box<MiddlewareFrame>>,
}

/// One stream's worth of serving.
#[derive(Debug)]
pub struct Service {
    calls: Calls,
    session: ServerSession,
    config: Arc<SessionConfig>,
    outputs: VecDeque<Output>,
    is_lagging: bool,
    /// The principal and headers of every call; only tests set them on a stream.
    facts: Option<Arc<HttpFacts>>,
}

impl Service {
    pub fn new(components: Arc<Components>, start: &Start) -> Self {
        let config = session_config(&components, start);
        let session = ServerSession::new(Arc::clone(&config));
        Self {
            calls: Calls::new(components, start),
            session,
            config,
            outputs: VecDeque::new(),
            is_lagging: false,
            facts: None,
        }
    }

    /// Gives every call this principal and these headers, as if each had come in an HTTP request.
    #[must_use]
    pub fn with_facts(mut self, facts: HttpFacts) -> Self {
        self.facts = Some(Arc::new(facts));
        self
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.session.handle(session::Input::Frame(bytes)),
            Input::TooLong { limit } => self.session.handle(session::Input::TooLong { limit }),
            Input::Handler(handler, event) => {
                let (call, upshot) = self.calls.hear_handler(now, self.is_lagging, handler, event);
                self.conclude(call, upshot);
            }
            Input::PageDone(page) => self.session.handle(session::Input::PageDone(page)),
            Input::Components(components, changed) => {
                if let Some(config) = changed_config(&self.config, &components) {
                    self.config = Arc::clone(&config);
                    self.session.handle(session::Input::Config(config));
                }
                self.calls.set_components(components, &changed);
                for kind in changed {
                    self.session.handle(session::Input::Changed(kind));
                }
            }
            Input::Updated(uri) => {
                self.calls.cache.forget(uri);
                self.session.handle(session::Input::Updated(uri));
            }
            Input::Lagging(is_lagging) => self.is_lagging = is_lagging,
            Input::CutSubscriptions => {
                self.session.handle(session::Input::CutSubscriptions(TOO_SLOW));
            }
            Input::ShutDown => {
                self.calls.unpark();
                self.session.handle(session::Input::EndSubscriptions);
            }
            Input::Tick => {
                while let Some((call, fault)) = self.calls.expire(now) {
                    self.session.handle(session::Input::Done(call, Err(fault)));
                }
            }
            Input::EndOfInput => self.session.handle(session::Input::EndOfInput),
            Input::Closed => {
                self.calls.unpark();
                self.session.handle(session::Input::Closed);
            }
        }
        // A session that has nothing in flight any more need not wait for its deadline to hear what it was not told, and
        // not every shell looks at the deadline after each message for the log.
        let due = self.session.deadline().filter(|_| self.session.in_flight() == 0);
        self.session.handle(session::Input::Tick(due.map_or(now, |it| it.max(now))));
        self.drain(now);
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front().or_else(|| self.calls.effects.pop_front().map(Output::Effect))
    }

    /// When [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        [self.calls.deadline(), self.session.deadline()].into_iter().flatten().min()
    }

    /// What it was told last of how much its peer leaves unread.
    pub fn is_lagging(&self) -> bool {
        self.is_lagging
    }

    /// Requests that are read and not yet answered: a shell stops reading while there are too many.
    pub fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    /// Whether so much is unanswered, by count or by bytes, that a shell should stop reading.
    pub fn is_full(&self) -> bool {
        self.in_flight() > MAX_IN_FLIGHT || self.calls.is_full()
    }

    fn conclude(&mut self, call: CallId, upshot: Upshot) {
        upshot.tell(call, |it| self.session.handle(it));
    }

    fn add_facts(&self, context: &mut CallContext) {
        if let Some(facts) = &self.facts {
            context.principal.clone_from(&facts.principal);
            context.http = Some(Arc::clone(facts));
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
                session::Output::Send(sent) => self.outputs.push_back(match sent.is_change {
                    true => Output::Change(sent.frame),
                    false => Output::Send(sent.frame),
                }),
                session::Output::Report(text) => {
                    self.calls.effects.push_back(Effect::Report(text));
                }
                session::Output::Detail(text) => {
                    self.calls.effects.push_back(Effect::Detail(text));
                }
                session::Output::Call(mut call) => {
                    self.add_facts(&mut call.context);
                    let id = call.context.call;
                    let upshot = self.calls.begin(now, call);
                    self.conclude(id, upshot);
                }
                session::Output::Cancel(call) => self.calls.cancel(now, call),
                session::Output::Answered { call, ask, outcome } => {
                    let upshot = self.calls.answered(now, call, ask, outcome);
                    self.conclude(call, upshot);
                }
                session::Output::InvalidAnswer { call, ask, problem } => {
                    let upshot = self.calls.unfit(now, call, ask, &problem);
                    self.conclude(call, upshot);
                }
                session::Output::Notified { method, params, mut context } => {
                    self.add_facts(&mut context);
                    let listener = context.call;
                    if !self.calls.notify(&method, params, context) {
                        self.session.handle(session::Input::Heard(listener));
                    }
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

pub(crate) fn session_config(components: &Components, start: &Start) -> Arc<SessionConfig> {
    Arc::new(SessionConfig {
        server_info: server_info(&components.server.info),
        revisions: components.server.revisions.clone(),
        dialects: components.server.dialects.clone(),
        replaced: components.replaced(),
        routed: components.routed(),
        seed: sealing::derive(&start.seed, "session", 0),
    })
}

/// What sessions need to know from now on, if it is not what they know.
pub(crate) fn changed_config(
    config: &SessionConfig,
    components: &Components,
) -> Option<Arc<SessionConfig>> {
    let (replaced, routed) = (components.replaced(), components.routed());
    let is_same = replaced == config.replaced && routed == config.routed;
    (!is_same).then(|| Arc::new(SessionConfig { replaced, routed, ..config.clone() }))
}

fn server_info(info: &Implementation) -> String {
    let mut text = String::new();
    json::push(&mut text, info);
    text
}
