//! The server side of one connection: frames in; frames, calls and cancellations out.
//!
//! Era is decided frame by frame: a request that carries the modern envelope is served statelessly at any time,
//! anything else belongs to the handshake that `initialize` opens once.

mod asked;
mod batch;
mod call;
mod dialects;
mod legacy;
mod logging;
mod modern;
mod outgoing;
mod questions;
mod subscriptions;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use self::{
    asked::Asked,
    batch::Batches,
    legacy::Handshake,
    logging::{LogFlow, Unsaid},
    subscriptions::{Intent, Subscriptions},
};
pub use self::{
    call::{Call, CallContext, ClientIdentity, HttpFacts, ListKind, Progress},
    logging::Log,
    questions::nobody,
};
use super::{
    asking::{Answers, AskId},
    pending::{CallId, Pending},
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        Dialect, Frame, Id, LoggingLevel, Malformed, Message, Method, MethodName, Params, Raw,
        Request, Response, Revision, SubscriptionFilter,
    },
    wire::{self, HeaderClaims, Wire},
};

/// What a session needs to know of its server.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The server's `Implementation`, as JSON of the newest revision.
    pub server_info: String,
    /// What the server speaks, newest first.
    pub revisions: Vec<Revision>,
    /// What it understands beside these.
    pub dialects: Vec<Dialect>,
    /// Methods whose params are handed on as they came, for the handler that answers them.
    pub replaced: Vec<Method>,
    /// `ping` and `logging/setLevel`, where more than the session has a word in them.
    pub routed: Vec<Method>,
    /// Random, and secret: from it come names that nobody can guess.
    pub seed: [u8; 32],
}

/// What the shell tells the session.
#[derive(Debug)]
pub enum Input<'a> {
    /// One frame arrived.
    Frame(&'a [u8]),
    /// One frame arrived that was parsed already.
    Parsed(Frame<'a>),
    /// A frame arrived that was longer than the limit, in bytes, and was thrown away.
    TooLong { limit: usize },
    /// A call handed out by [`Output::Call`] has finished.
    Done(CallId, Result<Response, Fault>),
    /// A call's handler got further.
    Progress(CallId, Progress),
    /// A handler has something to tell. With `is_behind`, when the peer does not read, it is not told at once.
    Log { now: Instant, call: CallId, log: Log, is_behind: bool },
    /// The client of [`Output::Call`] listens from now on, to what the server honours of its filter.
    Listening(CallId, SubscriptionFilter),
    /// A handler asks the client; `params` are in the newest vocabulary.
    Ask { call: CallId, ask: AskId, method: Method, params: Raw },
    /// What somebody was sent to this page for is finished.
    PageDone(&'a str),
    /// What the server offers has changed.
    Changed(ListKind),
    /// The resource with this URI has changed.
    Updated(&'a str),
    /// What is known of the server has changed.
    Config(Arc<SessionConfig>),
    /// The server stops: subscriptions end with their result, and so will those that begin from now on.
    EndSubscriptions,
    /// The peer leaves too much unread, or whatever else this reason says: subscriptions are torn down.
    CutSubscriptions(&'a str),
    /// Who listened to the notification with this number, in [`Output::Notified`], is done, or nobody listens.
    Heard(CallId),
    /// The time of the deadline has come.
    Tick(Instant),
    /// The session was idle for too long; see [`ServerSession::may_expire`].
    Expired,
    /// The peer is gone: every call in flight is given up.
    Closed,
}

/// What the session asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Write this frame.
    Send(Sent),
    /// Answer this request and report back with [`Input::Done`].
    Call(Call),
    /// The peer no longer wants this call's result.
    Cancel(CallId),
    /// No reply will come to the frame that brought this call.
    Silent(CallId),
    /// What became of a question.
    Answered { call: CallId, ask: AskId, outcome: Result<Raw, Fault> },
    /// The peer tells something that a handler may have been registered for.
    Notified { method: MethodName, params: Raw, context: CallContext },
    /// A line for the log of whoever runs the server.
    Report(String),
}

/// A frame to be written, and what it belongs to: where a peer has several streams, that decides on which it goes.
#[derive(Debug)]
pub struct Sent {
    pub frame: Vec<u8>,
    pub about: About,
    /// The code, where it is one error.
    pub error: Option<i64>,
    /// It tells of a change: while an equal one waits to be sent, it says nothing new.
    pub is_change: bool,
    /// It asks the client, or takes back what was asked: where its own stream can't carry it, another must.
    pub is_asking: bool,
}

impl Sent {
    fn new(frame: Vec<u8>, about: About) -> Self {
        Self { frame, about, error: None, is_change: false, is_asking: false }
    }
}

/// What a frame belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum About {
    /// It answers the frame that brought this call; `None`: the frame that was handled just now.
    Reply(Option<CallId>),
    /// It was said while this call was under way.
    Call(CallId),
    /// The peer as a whole.
    Peer,
}

/// The state machine.
#[derive(Debug)]
pub struct ServerSession {
    config: Arc<SessionConfig>,
    handshake: Handshake,
    /// What the headers of the one HTTP request said that this session is for.
    claims: Option<HeaderClaims>,
    /// It is as long as one HTTP request in a dialect that knows no sessions there.
    stands_alone: bool,
    /// The revision that the peer spoke last, which spells errors that belong to no request.
    spoken: &'static Wire,
    pending: Pending<Inbound>,
    batches: Batches,
    subscriptions: Subscriptions,
    /// Made with the first question.
    asked: Option<Box<Asked>>,
    /// Handlers of notifications that run, by their numbers.
    listeners: HashSet<CallId>,
    logs: LogFlow,
    is_ending: bool,
    is_closed: bool,
    /// Lists that changed before the client had confirmed the handshake: it is told right after.
    untold: Vec<ListKind>,
    outputs: VecDeque<Output>,
}

/// A request the peer is waiting on.
#[derive(Debug)]
struct Inbound {
    method: MethodName,
    client: Arc<ClientIdentity>,
    wire: &'static Wire,
    progress_token: Option<Id>,
    /// The progress reported last: it must increase.
    progress: Option<f64>,
    /// One that did not was reported.
    has_stepped_back: bool,
    log: LogPolicy,
    unsaid: Unsaid,
    slot: Option<batch::Slot>,
    /// The answer to `initialize` in a dialect: the version that was agreed on.
    version: Option<String>,
    /// What it changes in the session when it succeeds.
    intent: Option<Intent>,
}

/// Which log messages a call may send.
#[derive(Clone, Copy, Debug)]
enum LogPolicy {
    /// What the request's own envelope asks for; nothing when it asks for none.
    Request(Option<LoggingLevel>),
    /// What `logging/setLevel` said last.
    Session,
}

/// A request that may be served: how it is spelled and under which circumstances.
struct Admitted {
    wire: &'static Wire,
    client: Arc<ClientIdentity>,
    log: LogPolicy,
    progress_token: Option<Id>,
    meta: Option<Raw>,
}

impl ServerSession {
    pub fn new(config: Arc<SessionConfig>) -> Self {
        Self {
            config,
            handshake: Handshake::Awaiting,
            claims: None,
            stands_alone: false,
            spoken: Wire::of(Revision::V2024_11_05),
            pending: Pending::new(),
            batches: Batches::default(),
            subscriptions: Subscriptions::default(),
            asked: None,
            listeners: HashSet::new(),
            logs: LogFlow::default(),
            is_ending: false,
            is_closed: false,
            untold: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// A session as long as one HTTP request of the stateless era, whose headers must agree with its body.
    pub fn for_exchange(config: Arc<SessionConfig>, claims: HeaderClaims) -> Self {
        Self { claims: Some(claims), spoken: Wire::of(Revision::LATEST), ..Self::new(config) }
    }

    /// A session as long as one HTTP request in a dialect that knows no sessions there.
    pub fn for_dialect(config: Arc<SessionConfig>) -> Self {
        Self { stands_alone: true, ..Self::new(config) }
    }

    /// The revision that `initialize` agreed on.
    pub fn agreed(&self) -> Option<&'static Wire> {
        self.handshake.wire()
    }

    pub fn handle(&mut self, input: Input<'_>) {
        match input {
            Input::Frame(bytes) => self.handle_frame(Frame::parse(bytes)),
            Input::Parsed(frame) => self.handle_frame(frame),
            Input::TooLong { limit } => {
                let message = format!("message longer than {limit} bytes");
                let fault = Fault::new(FaultKind::TooLarge, message);
                self.refuse(None, None, None, fault);
            }
            Input::Done(call, outcome) => self.handle_done(call, outcome),
            Input::Progress(call, progress) => self.send_progress(call, progress),
            Input::Log { now, call, log, is_behind } => self.send_log(now, call, &log, is_behind),
            Input::Ask { call, ask, method, params } => self.ask(call, ask, method, params),
            Input::PageDone(page) => self.tell_page_done(page),
            Input::Listening(call, filter) => self.start_listening(call, filter),
            Input::Changed(kind) => self.send_changed(kind),
            Input::Updated(uri) => self.send_updated(uri),
            Input::Config(config) => self.config = config,
            Input::EndSubscriptions => self.end_subscriptions(),
            Input::CutSubscriptions(reason) => self.cut_subscriptions(reason),
            Input::Heard(call) => self.end_listener(call),
            Input::Tick(now) => self.tick(now),
            Input::Expired => self.handshake.expire(),
            Input::Closed => {
                self.is_closed = true;
                self.subscriptions = Subscriptions::default();
                let calls = self.pending.drain();
                self.give_up_questions(&calls);
                self.outputs.extend(calls.into_iter().map(Output::Cancel));
            }
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Requests that were read and not yet answered: a shell stops reading while there are too many.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn handle_frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::One(Ok(message)) => self.handle_message(message, None),
            Frame::One(Err(malformed)) => self.refuse_malformed(malformed, None),
            Frame::Batch(members) => self.handle_batch(members),
        }
    }

    fn handle_message(&mut self, message: Message<'_>, slot: Option<batch::Slot>) {
        match message {
            Message::Request { id, method, params } => {
                self.handle_request(id, &method, &params, slot);
            }
            Message::Notification { method, params } => self.handle_notification(&method, &params),
            Message::Response { id, outcome } => self.handle_answer(id.as_ref(), outcome),
        }
    }

    fn handle_request(
        &mut self,
        id: Id,
        name: &str,
        params: &Params<'_>,
        slot: Option<batch::Slot>,
    ) {
        let dialect = self.dialect_of(name, params);
        self.spoken = dialect.unwrap_or(self.spoken);
        let admitted = match dialect {
            Some(wire) => self.admit_dialect(wire, name),
            None => self.admit(name, params, slot.is_some()),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(fault) => return self.refuse(Some(&id), None, slot, fault),
        };
        self.spoken = admitted.wire;
        if self.pending.contains(&id) {
            let fault =
                Fault::invalid_request(format!("a request with the id {id} is still in flight"));
            return self.refuse(Some(&id), None, slot, fault);
        }
        let mut request = match wire::lift_request(admitted.wire, name, params) {
            Ok(request) => request,
            Err(fault) => {
                let method = admitted.wire.method(name).map(MethodName::Standard);
                return self.refuse(Some(&id), method.as_ref(), slot, fault);
            }
        };
        if let Some(claims) = &self.claims
            && let Err(fault) = wire::check_standard(claims, name, params)
        {
            return self.refuse(Some(&id), None, slot, fault);
        }
        if let Request::Initialize(initialize) = &mut request {
            if let Some(wire) = dialect {
                self.open_dialect(wire, initialize);
                return self.call(id, request, None, admitted, slot);
            }
            match self.handshake.open(initialize, &self.config.revisions) {
                Ok(wire) => {
                    let admitted = Admitted { wire, ..admitted };
                    return self.call(id, request, None, admitted, slot);
                }
                Err(fault) => return self.refuse(Some(&id), None, slot, fault),
            }
        }
        if !matches!(request.method(), MethodName::Standard(it) if self.config.routed.contains(&it))
            && let Some(response) = self.answered_at_once(admitted.wire, &request)
        {
            let answer = self.result(admitted.wire, &id, &response);
            return self.settle(None, slot, Some(answer));
        }
        let is_replaced = dialect.is_none()
            && matches!(request.method(), MethodName::Standard(it) if self.config.replaced.contains(&it));
        let as_came = is_replaced.then(|| params.without_meta());
        self.call(id, request, as_came, admitted, slot);
    }

    /// What needs nobody else.
    fn answered_at_once(&mut self, wire: &'static Wire, request: &Request) -> Option<Response> {
        match request {
            Request::Ping => Some(Response::Raw(wire::pong(wire))),
            Request::SetLevel { level } => {
                self.handshake.set_level(*level);
                Some(Response::Empty)
            }
            _ => None,
        }
    }

    /// Which revision a request is served in, or why it may not be sent now.
    fn admit(&self, name: &str, params: &Params<'_>, in_batch: bool) -> Result<Admitted, Fault> {
        if let Some(claims) = &self.claims {
            return modern::admit_exchange(claims, params, &self.config.revisions);
        }
        match wire::claim(params, &self.config.revisions)? {
            wire::Claim::Modern(_) if in_batch => Err(modern::refuse_batch()),
            wire::Claim::Modern(envelope) => Ok(modern::admit(&envelope)),
            wire::Claim::None(meta) | wire::Claim::Partial(meta) => {
                self.handshake.admit(name, &meta)
            }
        }
    }

    /// `as_came`: the params, for a handler that answers this method in the core's place.
    fn call(
        &mut self,
        id: Id,
        mut request: Request,
        as_came: Option<Raw>,
        admitted: Admitted,
        slot: Option<batch::Slot>,
    ) {
        let Admitted { wire, client, log, progress_token, meta } = admitted;
        let intent = Intent::of(&request);
        self.spoken = wire;
        let inbound = Inbound {
            method: request.method(),
            client: Arc::clone(&client),
            wire,
            progress_token,
            progress: None,
            has_stepped_back: false,
            log,
            unsaid: Unsaid::default(),
            slot,
            version: match (&request, wire.dialect) {
                (Request::Initialize(it), Some(_)) => Some(it.protocol_version.clone()),
                _ => None,
            },
            intent,
        };
        if let Some(params) = as_came {
            request = Request::Other { method: request.method(), params };
        }
        let wants_progress = inbound.may_report();
        let call = self.pending.register(id.clone(), inbound);
        let context = CallContext {
            call,
            request_id: Some(id),
            revision: wire.revision,
            dialect: wire.dialect,
            meta,
            client,
            wants_progress,
            answers: Answers::default(),
            principal: None,
            http: None,
            checks_headers: self.claims.is_some(),
        };
        self.outputs.push_back(Output::Call(Call { request, context }));
    }

    fn handle_notification(&mut self, name: &str, params: &Params<'_>) {
        if let Some(claims) = &self.claims
            && let Err(fault) =
                wire::check_notification(claims, name, params, &self.config.revisions)
        {
            return self.refuse(None, None, None, fault);
        }
        let method = self.read_notification(name);
        match &method {
            MethodName::Standard(Method::Initialized) => self.confirm(),
            MethodName::Standard(Method::Cancelled) => {
                let id = params.get("requestId").and_then(|it| Id::parse(it.get()));
                if let Some((call, inbound)) = id.and_then(|it| self.pending.cancel(&it)) {
                    self.subscriptions.forget(call);
                    self.withdraw(call);
                    self.outputs.push_back(Output::Cancel(call));
                    self.settle(Some(call), inbound.slot, None);
                }
            }
            MethodName::Standard(Method::RootsListChanged) | MethodName::Vendor(_) => {
                let Ok(admitted) = self.admit(name, params, false) else { return };
                let call = self.pending.number();
                self.listeners.insert(call);
                let context = CallContext {
                    call,
                    request_id: None,
                    revision: admitted.wire.revision,
                    dialect: admitted.wire.dialect,
                    meta: admitted.meta,
                    client: admitted.client,
                    wants_progress: false,
                    answers: Answers::default(),
                    principal: None,
                    http: None,
                    checks_headers: false,
                };
                let params = params.without_meta();
                self.outputs.push_back(Output::Notified { method, params, context });
            }
            MethodName::Standard(_) => (),
        }
    }

    fn handle_done(&mut self, call: CallId, outcome: Result<Response, Fault>) {
        self.end_log(call);
        // The peer may have cancelled while the handler ran.
        let Some((id, mut inbound)) = self.pending.complete(call) else { return };
        let outcome = outcome.map(|it| inbound.introduce(it));
        self.subscriptions.forget(call);
        self.withdraw(call);
        if outcome.is_err() && inbound.method == MethodName::Standard(Method::Initialize) {
            self.handshake = Handshake::Awaiting;
        }
        let answer = match outcome.and_then(|it| self.intend(inbound.intent, it)) {
            Ok(response) => self.result(inbound.wire, &id, &response),
            Err(fault) => {
                self.note_pages(call, inbound.wire, &fault);
                self.failure(inbound.wire, Some(&id), Some(&inbound.method), fault)
            }
        };
        self.settle(Some(call), inbound.slot, Some(answer));
    }

    fn refuse_malformed(&mut self, malformed: Malformed, slot: Option<batch::Slot>) {
        if malformed.is_response {
            return self.settle(None, slot, None);
        }
        let fault = match malformed.unreadable {
            true => Fault::new(FaultKind::Unreadable, malformed.message),
            false => Fault::invalid_request(malformed.message),
        };
        self.refuse(malformed.id.as_ref(), None, slot, fault);
    }
}

impl Inbound {
    /// Whether progress can be told: to a token, or where it can do without.
    fn may_report(&self) -> bool {
        self.progress_token.is_some() || self.wire.dialect == Some(Dialect::Bare)
    }

    /// The answer to `initialize` has the version that was agreed on, that to `ping` the dialect's word.
    fn introduce(&mut self, response: Response) -> Response {
        match (self.version.take(), response) {
            (_, Response::Empty) if self.method == MethodName::Standard(Method::Ping) => {
                Response::Raw(wire::pong(self.wire))
            }
            (Some(version), Response::Description(server)) => {
                Response::Raw(wire::introduction(&version, &server))
            }
            (_, response) => response,
        }
    }
}

/// A reply, spelled.
struct Answer {
    frame: Vec<u8>,
    /// The code, where it is an error that HTTP may tell by its status.
    error: Option<i64>,
}

/// A progress token or id in raw JSON, where it is one.
fn token(raw: Option<&serde_json::value::RawValue>) -> Option<Id> {
    raw.and_then(|it| Id::parse(it.get()))
}
