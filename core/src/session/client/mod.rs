//! The client side of one connection: requests in, frames out, and the other way round.
//!
//! It first finds out what the server speaks ([`Output::Ready`] or [`Output::Failed`]); from then on it sends requests
//! and matches answers, whichever revision was agreed on.

mod calls;
mod incoming;
mod legacy;
mod listening;
mod modern;
mod negotiate;
mod server_capabilities;
mod pages;
mod renewal;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::listening::Change;
use self::{
    calls::Calls,
    modern::Counterpart,
    negotiate::{Negotiation, Phase},
    pages::Pages,
    renewal::Renewal,
};
use super::pending::{CallId, Pending};
pub use super::server::{ListKind, Progress};
use crate::{
    error::{Error, ErrorKind},
    protocol::{
        ClientCapabilities, Dialect, Era, ErrorObject, Implementation, LoggingLevel, Method,
        MethodName, Raw, Revision, RootsCapability, SubscriptionFilter, json,
    },
    wire::{self, Stamp, Wire},
};

/// What a session needs to know of its client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub info: Implementation,
    pub capabilities: ClientCapabilities,
    /// What may be spoken, in any order. With a modern and a legacy one among them the server is probed first.
    pub revisions: Vec<Revision>,
    /// What is spoken instead of these.
    pub dialect: Option<Dialect>,
    /// How long a server may take to answer the probe before it counts as legacy.
    pub probe_timeout: Duration,
    /// How long it may take to answer `initialize`.
    pub initialize_timeout: Option<Duration>,
    /// How grave log messages must be; none come from a modern server without it.
    pub log_level: Option<LoggingLevel>,
}

/// A request's number, chosen by the shell: never used twice in one session.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestKey(pub u64);

/// How long to wait for an answer, and whether to ask how far it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions {
    /// Without an answer and without progress, while the server has no question open; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// In all, however much progress is made.
    pub max_timeout: Option<Duration>,
    pub wants_progress: bool,
}

/// What the shell tells the session.
#[derive(Debug)]
pub enum Input<'a> {
    /// The wire is there; after [`Output::Restart`] it is a fresh one.
    Start,
    /// One frame arrived.
    Frame(&'a [u8]),
    /// A frame longer than the limit, in bytes, was thrown away.
    TooLong { limit: usize },
    /// Send this; `params` is a JSON object.
    Request { key: RequestKey, method: MethodName, params: &'a str, options: RequestOptions },
    /// Nobody waits for this request any more: there will be no [`Output::Done`].
    Cancel(RequestKey, Option<&'a str>),
    /// Tell the server; `params` is a JSON object. What the revision has no word for is not sent.
    Notify { method: MethodName, params: &'a str },
    /// The answer to an [`Output::Ask`].
    Answer(CallId, Result<Raw, ErrorObject>),
    /// The client has roots from now on: each request says so, where requests say what a client can do.
    DeclareRoots,
    /// The time of the deadline has come.
    Tick,
    /// The wire has begun the server's session anew: what was set in the old one is set again.
    Renewed,
    /// The wire could not carry the request with this id, or its answer.
    Failed { id: u64, error: Error },
    /// This side closes while the wire is still there: what is under way is taken back first.
    Leave(&'a str),
    /// The wire is gone, and why.
    Closed(&'a str),
}

/// What the session asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Send(Vec<u8>),
    /// What the server is; requests may be sent now.
    Ready(Arc<ServerIdentity>),
    /// A request's outcome: its raw result. In the modern era that may be an `input_required` one.
    Done(RequestKey, Result<Raw, Error>),
    Progress(RequestKey, Progress),
    Log(LogMessage),
    ListChanged(ListKind),
    /// A subscribed resource's URI.
    ResourceUpdated(String),
    /// The part of its filter that this `subscriptions/listen` is kept informed of.
    Acknowledged(RequestKey, SubscriptionFilter),
    /// What a `subscriptions/listen` is told; `None` where the server does not say which.
    Told(Option<RequestKey>, Change),
    /// The server has a new session, which knows of no subscriptions yet.
    Renewed,
    /// Any other notification, with its params.
    Notified {
        method: MethodName,
        params: Raw,
    },
    /// The server asks; report back with [`Input::Answer`].
    Ask(Ask),
    /// The server no longer wants this answer.
    AskCancelled(CallId),
    /// The server died of the probe: start it afresh, then say [`Input::Start`].
    Restart,
    /// There will be no [`Output::Ready`].
    Failed(Error),
}

/// A question of a legacy server's.
#[derive(Debug)]
pub struct Ask {
    pub id: CallId,
    /// What the server calls it, where it says so.
    pub key: Option<String>,
    /// `roots/list`, `sampling/createMessage` or `elicitation/create`.
    pub method: Method,
    /// A JSON object.
    pub params: Raw,
}

/// What a server has to tell.
#[derive(Clone, Debug)]
pub struct LogMessage {
    pub level: LoggingLevel,
    pub logger: Option<String>,
    pub data: Raw,
}

/// What a server said of itself.
#[derive(Clone, Debug)]
pub struct ServerIdentity {
    /// Its `Implementation`; a server that gives no name has "".
    pub info: Implementation,
    /// With a dialect: the revision that comes nearest.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// A JSON object.
    pub capabilities: Raw,
    pub instructions: Option<String>,
}

/// What is spoken, as a wire that carries each message by itself must know it.
#[derive(Clone, Copy, Debug)]
pub struct Spoken {
    /// With a dialect: the revision that comes nearest.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// Each request stands by itself: it repeats itself in headers, and the end of its exchange cancels it.
    pub is_stateless: bool,
}

impl Spoken {
    fn new(revision: Revision, dialect: Option<Dialect>) -> Self {
        Self { revision, dialect, is_stateless: revision.era() == Era::Modern }
    }

    /// How it is spelled.
    pub fn wire(self) -> &'static Wire {
        Wire::spelled(self.revision, self.dialect)
    }

    /// A revision's date, or a dialect's name.
    pub fn name(self) -> &'static str {
        self.wire().name()
    }

    /// Whether messages over HTTP say their revision in a header.
    pub fn has_version_header(self) -> bool {
        self.dialect != Some(Dialect::V0_7)
    }
}

impl ServerIdentity {
    /// What is spoken with it.
    pub fn spoken(&self) -> Spoken {
        Spoken::new(self.revision, self.dialect)
    }
}

/// The state machine.
#[derive(Debug)]
pub struct ClientSession {
    config: Arc<ClientConfig>,
    phase: Phase,
    negotiation: Negotiation,
    wire: &'static Wire,
    /// From 2026-07-28: what is stamped into every request.
    envelope: Option<String>,
    server: Option<Arc<ServerIdentity>>,
    log_level: Option<LoggingLevel>,
    /// Before 2026-07-28: what `logging/setLevel` said last.
    set_level: Option<LoggingLevel>,
    calls: Calls,
    renewal: Renewal,
    asks: Pending<()>,
    pages: Pages,
    next_id: u64,
    outputs: VecDeque<Output>,
}

impl ClientSession {
    pub fn new(config: Arc<ClientConfig>) -> Self {
        Self {
            phase: Phase::Idle,
            negotiation: Negotiation::default(),
            wire: Wire::spelled(Revision::LATEST_LEGACY, config.dialect),
            envelope: None,
            server: None,
            log_level: config.log_level,
            set_level: None,
            calls: Calls::default(),
            renewal: Renewal::default(),
            asks: Pending::new(),
            pages: Pages::default(),
            next_id: 1,
            outputs: VecDeque::new(),
            config,
        }
    }

    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start => self.start(now),
            Input::Frame(bytes) => self.handle_frame(now, bytes),
            Input::TooLong { limit } => self.handle_too_long(limit),
            Input::Request { key, method, params, options } => {
                if let Err(error) = self.request(now, key, method, params, options) {
                    self.outputs.push_back(Output::Done(key, Err(error)));
                }
            }
            Input::Cancel(key, reason) => {
                if let Some(id) = self.calls.forget(key) {
                    self.send_cancelled(id, reason);
                }
            }
            Input::Notify { method, params } => self.notify(&method, params),
            Input::Answer(call, answer) => {
                self.answer(call, &answer);
                self.hold_calls(now);
            }
            Input::DeclareRoots => self.declare_roots(),
            Input::Tick => self.expire(now),
            Input::Renewed => self.restore(),
            Input::Failed { id, error } => self.fail_request(now, id, error),
            Input::Leave(reason) => {
                self.calls.ids().into_iter().for_each(|id| self.send_cancelled(id, Some(reason)));
                self.close(reason);
            }
            Input::Closed(reason) => self.close(reason),
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        [self.negotiation.deadline, self.calls.deadline()].into_iter().flatten().min()
    }

    /// What the server said of itself, once it did.
    pub fn server(&self) -> Option<&Arc<ServerIdentity>> {
        self.server.as_ref()
    }

    /// What a wire with headers says in those of the frames that were just given out.
    pub fn spoken(&self) -> Spoken {
        Spoken::new(self.wire.revision, self.wire.dialect)
    }

    /// Requests that are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    fn request(
        &mut self,
        now: Instant,
        key: RequestKey,
        method: MethodName,
        params: &str,
        options: RequestOptions,
    ) -> Result<(), Error> {
        let server = match (&self.phase, &self.server) {
            (Phase::Open, Some(server)) => Arc::clone(server),
            (Phase::Closed(reason), _) => return Err(Error::new(ErrorKind::Lost, reason.clone())),
            _ => return Err(Error::misuse(format!("{} before connect", method.as_str()))),
        };
        let (method, params) = match self.counterpart(method, params)? {
            Counterpart::Send(method, params) => (method, params),
            Counterpart::Done => {
                self.outputs.push_back(Output::Done(key, Ok(json::raw("{}".into()))));
                return Ok(());
            }
        };
        server_capabilities::check(self.wire, &server, &method)?;
        let id = self.next_id;
        let options = match method {
            // Silence is how it goes well.
            MethodName::Standard(Method::Listen) => {
                RequestOptions { timeout: None, wants_progress: false, ..options }
            }
            _ => options,
        };
        let has_token = (options.wants_progress || options.timeout.is_some())
            && self.wire.server_notifications.contains(&Method::Progress);
        let stamp = Stamp {
            envelope: self.envelope.as_deref(),
            log_level: self.log_level.filter(|_| self.envelope.is_some()),
            progress_token: has_token.then_some(id),
        };
        let frame = wire::request_frame(id, self.wire.word_of(&method), params, stamp)
            .map_err(|it| Error::misuse(format!("{}: {it}", method.as_str())))?;
        self.next_id += 1;
        self.remember(id, &frame, params);
        self.learn_level(&method, params);
        self.calls.open(now, id, key, method, options);
        self.outputs.push_back(Output::Send(frame));
        Ok(())
    }

    fn notify(&mut self, method: &MethodName, params: &str) {
        let has_word = match method {
            MethodName::Standard(method) => self.wire.client_notifications.contains(method),
            MethodName::Vendor(_) => true,
        };
        if matches!(self.phase, Phase::Open) && has_word {
            // Without a session a vendor's own says itself who speaks; the specification's carry no envelope.
            let vendors = matches!(method, MethodName::Vendor(_));
            let envelope = self.envelope.as_deref().filter(|_| vendors);
            let stamp = Stamp { envelope, ..Stamp::default() };
            let params = wire::stamped(params, stamp).unwrap_or_else(|_| params.into());
            let params = Some(&*params).filter(|it| it.trim() != "{}");
            let frame = wire::notification_frame(self.wire.word_of(method), params);
            self.outputs.push_back(Output::Send(frame));
        }
    }

    fn declare_roots(&mut self) {
        let roots = RootsCapability { list_changed: Some(true) };
        Arc::make_mut(&mut self.config).capabilities.roots.get_or_insert(roots);
        let revision = self.wire.revision;
        if self.envelope.is_some() {
            self.speak(revision);
        }
    }

    fn send_cancelled(&mut self, id: u64, reason: Option<&str>) {
        self.renewal.forget(id);
        if !self.wire.client_notifications.contains(&Method::Cancelled) {
            return;
        }
        let mut params = json::ObjectWriter::with_capacity(64);
        params.member("requestId", &id);
        if let Some(reason) = reason {
            params.member("reason", reason);
        }
        let word = self.wire.word(Method::Cancelled);
        let frame = wire::notification_frame(word, Some(&params.finish()));
        self.outputs.push_back(Output::Send(frame));
    }

    fn expire(&mut self, now: Instant) {
        self.expire_negotiation(now);
        while let Some((id, key, error)) = self.calls.expired(now) {
            self.send_cancelled(id, Some(&error.message));
            self.outputs.push_back(Output::Done(key, Err(error)));
        }
    }

    fn close(&mut self, reason: &str) {
        match self.phase {
            Phase::Open => {
                self.phase = Phase::Closed(reason.to_owned());
                self.renewal.clear();
                for (key, method) in self.calls.drain() {
                    let message = format!("{}: {reason}", method.as_str());
                    let error = Error::new(ErrorKind::Lost, message);
                    self.outputs.push_back(Output::Done(key, Err(error)));
                }
                let asks = self.asks.drain();
                self.outputs.extend(asks.into_iter().map(Output::AskCancelled));
            }
            Phase::Closed(_) => (),
            _ => self.close_negotiation(reason),
        }
    }

    fn fail_request(&mut self, now: Instant, id: u64, error: Error) {
        let Some(error) = self.negotiation_failed(now, id, error) else { return };
        self.renewal.forget(id);
        if let Some((key, method)) = self.calls.complete(id) {
            let message = format!("{}: {}", method.as_str(), error.message);
            self.outputs.push_back(Output::Done(key, Err(Error { message, ..error })));
        }
    }

    fn is_modern(&self) -> bool {
        self.wire.revision.era() == Era::Modern
    }
}
