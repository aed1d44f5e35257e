//! Admitted HTTP requests: assignment to sessions and stateless exchanges, and refusals that depend on the pending calls.

use std::{sync::Arc, time::Instant};

use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};

use super::{
    Endpoint, EndpointOutput, Exchange, ExchangeId, ExchangeOwner, HttpFacts, Part, PeerId,
    PeerSession, Pump, SessionMode,
    admitted::{AdmittedRequest, RequestHead},
    content::Content,
    logging::Reason,
    opening::Found,
    reply::{self, Accepts},
    session,
};
use crate::{
    error::{Fault, FaultKind, option_name},
    log_events::LogEvent,
    protocol::{Frame, Id, Message, Method, Revision},
    session::server::ServerSession,
    wire::{self, McpHeaders, RequestEra},
};

/// The value of `Retry-After`, in seconds.
pub(super) const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
const TOO_HEAVY: &str =
    "the requests in flight are too long together: send this one again when some are answered";
const TOO_MUCH_UNREAD: &str =
    "too many bytes of answers wait to be read: read them, and send this request again";
const NOTIFICATIONS_BUSY: &str =
    "too many notifications and requests are being handled: send this one again later";
/// The names of these limits in logs.
const IN_FLIGHT_BYTES: &str = "in_flight_bytes";
const UNREAD_ANSWERS: &str = "unread_answers";
const NOTIFICATIONS: &str = "notifications";

/// An HTTP request that waits for its answer.
#[derive(Debug)]
pub(super) struct HttpRequest {
    pub(super) exchange: ExchangeId,
    pub(super) facts: Arc<HttpFacts>,
    pub(super) mcp_headers: McpHeaders,
    pub(super) accepts: Accepts,
    pub(super) cors: Option<Box<HeaderMap>>,
    /// The id of the JSON-RPC request in its body, once the body was read.
    pub(super) request_id: Option<Id>,
    /// `true` if the client leaves so much unread that it may not call.
    is_behind: bool,
    /// The URL of the document about this resource.
    pub(super) metadata: Option<Box<str>>,
    /// The time at which the access token expires.
    pub(super) expires: Option<Instant>,
}

impl HttpRequest {
    /// Returns a request that another process has handed over.
    pub(super) fn handed_over(
        exchange: ExchangeId,
        facts: Arc<HttpFacts>,
        mcp_headers: McpHeaders,
        accepts: Accepts,
        request_id: Option<Id>,
    ) -> Self {
        Self {
            exchange,
            facts,
            mcp_headers,
            accepts,
            cors: None,
            request_id,
            is_behind: false,
            metadata: None,
            expires: None,
        }
    }
}

impl Endpoint {
    /// Checks whether a request may open a message connection here. Fails with the answer to it.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn admit_upgrade(&self, head: &Parts) -> Result<(), Part> {
        self.admission.upgrade(head, None)?;
        self.admit_connection().map_err(|reason| Part::unavailable(&reason.text))
    }

    /// Errors with the reason if no message connection may be opened at the moment.
    pub(super) fn admit_connection(&self) -> Result<(), Reason> {
        match self.is_closing {
            true => Err(closing()),
            false if self.connections.len() < self.config.max_sessions => Ok(()),
            false => Err(too_many("connections", "max_sessions")),
        }
    }

    /// Returns the answer to a request that may not become a message connection at the moment, and its event.
    pub(crate) fn refuse_connection(&self) -> Option<(Part, LogEvent)> {
        let reason = self.admit_connection().err()?;
        let event = reason.event(StatusCode::SERVICE_UNAVAILABLE);
        self.metrics().refused(reason.name);
        Some((Part::unavailable(&reason.text), event))
    }

    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        exchange: ExchangeId,
        mut request: AdmittedRequest<'_>,
    ) {
        request.lift(exchange, &self.session);
        let AdmittedRequest { head, content, body } = request;
        let RequestHead { facts, mcp_headers, accepts, cors, is_behind, metadata, expires, .. } =
            head;
        let (facts, request_id) = (Arc::new(facts), content.request_id());
        let request = HttpRequest {
            exchange,
            facts,
            mcp_headers,
            accepts,
            cors,
            request_id,
            is_behind,
            metadata,
            expires,
        };
        if matches!(content, Content::Metrics) {
            return self.read_metrics(now, request);
        }
        if self.is_closing {
            return self.refuse_for_now(request, &closing());
        }
        match content {
            Content::Metrics => (),
            Content::Post(frame, era) => self.post(now, request, frame, era),
            Content::Lifted(peer, _) => self.post_lifted(now, request, peer, body),
            Content::Route(route, input) => self.handle_route(now, request, &route, input),
            Content::Get => self.get(now, request),
            Content::Delete => self.delete(now, request),
            Content::OpenLegacySse { path } => self.open_legacy_sse(now, request, &path),
            Content::PostLegacySse { session, frame } => {
                self.post_legacy_sse(now, request, session.as_deref(), frame);
            }
        }
        if let Some(at) = expires.filter(|_| self.exchanges.contains_key(&exchange)) {
            self.expiry.note(at);
        }
    }

    fn post(&mut self, now: Instant, request: HttpRequest, frame: Frame<'_>, era: RequestEra) {
        if let Some(why) = self.too_much(&frame, &request) {
            return self.refuse_for_now(request, &why);
        }
        match era {
            RequestEra::Dialect => {
                let machine = ServerSession::for_dialect(Arc::clone(&self.session));
                self.post_alone(now, request, frame, machine);
            }
            RequestEra::Legacy if self.admission.has_sessions() => {
                self.post_legacy(now, request, frame);
            }
            RequestEra::Legacy if self.config.sessions == SessionMode::None => {
                self.post_without_session(now, request, frame);
            }
            // A server of 2026-07-28 alone answers with the supported versions.
            RequestEra::Legacy if is_initialize(&frame) => {
                let machine = ServerSession::new(Arc::clone(&self.session));
                self.post_alone(now, request, frame, machine);
            }
            RequestEra::Legacy | RequestEra::Modern => self.post_modern(now, request, frame),
        }
    }

    /// Returns the reason why a message that starts handlers is refused while too much is in flight. Answers and
    /// cancellations are always accepted, because they end calls.
    pub(super) fn too_much(&self, frame: &Frame<'_>, request: &HttpRequest) -> Option<Reason> {
        if !request.is_behind
            && self.in_flight() < self.config.max_in_flight
            && !self.engine.is_full()
        {
            return None;
        }
        let of_one = |message: &Result<Message<'_>, _>| match message {
            Ok(Message::Request { .. }) => self.too_many_requests(request),
            Ok(Message::Notification { method, .. }) if self.engine.listens_to(method) => {
                Some(Reason::limit(NOTIFICATIONS, NOTIFICATIONS_BUSY))
            }
            _ => None,
        };
        match frame {
            Frame::One(message) => of_one(message),
            Frame::Batch(messages) => messages.iter().find_map(of_one),
        }
    }

    /// Returns the reason why a request is refused while too much is in flight and its client holds its share of that.
    pub(super) fn too_many_requests(&self, request: &HttpRequest) -> Option<Reason> {
        if request.is_behind {
            return Some(Reason::limit(UNREAD_ANSWERS, TOO_MUCH_UNREAD));
        }
        let is_full = self.in_flight() >= self.config.max_in_flight;
        let why = match self.engine.is_heavy() {
            true => Reason::limit(IN_FLIGHT_BYTES, TOO_HEAVY),
            false if is_full => too_many("requests in flight", "max_in_flight"),
            false => return None,
        };
        let client = request.facts.client_key();
        (!self.engine.leaves_room_to(client, self.config.max_in_flight)).then_some(why)
    }

    fn post_modern(&mut self, now: Instant, mut request: HttpRequest, frame: Frame<'_>) {
        match &frame {
            Frame::One(Ok(Message::Response { .. })) => {
                let message = "answers are not POSTed in 2026-07-28: send the request again with inputResponses";
                let reason = Reason::new("answer", message);
                return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
            }
            Frame::One(Err(malformed)) if malformed.is_response => {
                self.log_refused(&request, &invalid_message(), StatusCode::BAD_REQUEST);
                let body = reply::refusal_of(request.request_id.as_ref(), &malformed.message);
                let status = StatusCode::BAD_REQUEST;
                return self.answer_request(request, status, reply::json_head(), body);
            }
            Frame::One(Ok(Message::Request { method, .. }))
                if *method == Method::Listen.as_str() && !request.accepts.stream =>
            {
                let message =
                    "subscriptions/listen answers with text/event-stream: list it in Accept";
                let reason = Reason::new("accept", message);
                return self.refuse_request(request, StatusCode::NOT_ACCEPTABLE, &reason);
            }
            _ => (),
        }
        let mcp_headers = std::mem::take(&mut request.mcp_headers);
        let machine = ServerSession::for_exchange(Arc::clone(&self.session), mcp_headers);
        self.post_alone(now, request, frame, machine);
    }

    fn post_lifted(
        &mut self,
        now: Instant,
        request: HttpRequest,
        peer: Box<PeerSession>,
        body: &[u8],
    ) {
        if let Some(why) = self.too_many_requests(&request) {
            return self.refuse_for_now(request, &why);
        }
        match self.handler_elsewhere(now, &request.facts, &peer) {
            Some(process) => self.hand_over(now, request, peer, body, process),
            None => self.serve_alone(now, request, peer),
        }
    }

    fn post_alone(
        &mut self,
        now: Instant,
        request: HttpRequest,
        frame: Frame<'_>,
        mut machine: ServerSession,
    ) {
        machine.handle(session::Input::Parsed(frame));
        let peer = Box::new(PeerSession::new(PeerId::Exchange(request.exchange), machine));
        self.serve_alone(now, request, peer);
    }

    /// Serves a stateless request that its session has read; the session exists until the answer is complete.
    pub(super) fn serve_alone(
        &mut self,
        now: Instant,
        request: HttpRequest,
        mut peer: Box<PeerSession>,
    ) {
        let HttpRequest {
            exchange: id, facts, accepts, cors, request_id, metadata, expires, ..
        } = request;
        let mut pump = Pump { now, engine: &mut self.engine, facts: Some(&facts) };
        let mut sent = Vec::new();
        peer.drain(&mut pump, 0, &mut |_, frame| sent.push(frame));
        let is_silent = sent.is_empty() && peer.is_idle();
        let mut exchange = Exchange {
            owner: ExchangeOwner::Modern(peer),
            accepts,
            is_streaming: false,
            quiet_since: now,
            is_lagging: false,
            expires,
            cors,
            request_id,
            metadata,
        };
        if is_silent {
            let status = StatusCode::ACCEPTED;
            self.respond(id, &mut exchange, status, HeaderMap::new(), Vec::new(), false);
        } else if !self.deliver(now, id, &mut exchange, sent) {
            self.exchanges.insert(id, exchange);
        }
    }

    fn post_legacy(&mut self, now: Instant, request: HttpRequest, frame: Frame<'_>) {
        let is_initialize = is_initialize(&frame);
        let number = match self.find_session(now, &request) {
            Found::Session(number) => number,
            Found::NoRoom => {
                return self.refuse_for_now(request, &too_many("sessions", "max_sessions"));
            }
            Found::Nothing if is_initialize => return self.initialize(now, request, frame),
            Found::Nothing if matches!(frame, Frame::One(Err(_))) => {
                return self.refuse_frame(request, frame);
            }
            Found::Nothing if request.facts.session_id.is_some() => {
                return self.refuse_session(request);
            }
            Found::Nothing => {
                let message = "Mcp-Session-Id is missing: send initialize first, or a request of 2026-07-28 with its params._meta";
                let reason = Reason::new("no_session", message);
                return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
            }
        };
        if let Err(reason) = self.check_version(&request.mcp_headers)
            && !is_initialize
        {
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
        }
        if asks_for_more(&frame) {
            self.presume_confirmed(now, number);
        }
        self.pass_on(number, &frame, &request.facts);
        self.post_to_session(now, request, number, Some(frame));
    }

    /// Serves a request before 2026-07-28 by itself. Without a header its revision is the one that had none (2025-06-18,
    /// Transports, "Protocol Version Header").
    fn post_without_session(&mut self, now: Instant, request: HttpRequest, frame: Frame<'_>) {
        let is_initialize = is_initialize(&frame);
        if let Err(reason) = self.check_version(&request.mcp_headers)
            && !is_initialize
        {
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
        }
        let spoken = (!is_initialize).then(|| wire::spoken_by(&request.mcp_headers));
        let machine = ServerSession::without_session(Arc::clone(&self.session), spoken);
        self.post_alone(now, request, frame, machine);
    }

    /// Passes a message to its session; `None` if the session has read it.
    pub(super) fn post_to_session(
        &mut self,
        now: Instant,
        request: HttpRequest,
        number: u64,
        frame: Option<Frame<'_>>,
    ) {
        let HttpRequest {
            exchange: id, facts, accepts, cors, request_id, metadata, expires, ..
        } = request;
        let Some(session) = self.sessions.get_mut(number) else { return };
        let stream = session.open(id, false);
        let facts = match facts.session_id {
            Some(_) => facts,
            None => Arc::new(facts.in_session(Arc::clone(&session.id))),
        };
        let exchange = Exchange {
            owner: ExchangeOwner::Stream { session: number, stream },
            accepts,
            is_streaming: false,
            quiet_since: now,
            is_lagging: false,
            expires,
            cors,
            request_id,
            metadata,
        };
        self.exchanges.insert(id, exchange);
        let input = frame.map(session::Input::Parsed);
        self.with_session(now, number, stream, Some(&facts), input);
        // No call answers on this stream, so it is complete.
        if let Some(session) = self.sessions.get_mut(number)
            && session.stream(stream).is_some()
            && !session.peer.is_busy(stream)
        {
            session.close(stream);
            if let Some(mut exchange) = self.exchanges.remove(&id) {
                let status = StatusCode::ACCEPTED;
                self.respond(id, &mut exchange, status, HeaderMap::new(), Vec::new(), false);
            }
        }
    }

    /// Checks the version header. Without it, the session's revision applies (2025-11-25, Transports, "Protocol Version
    /// Header").
    pub(super) fn check_version(&self, mcp_headers: &McpHeaders) -> Result<(), Reason> {
        let Some(claimed) = mcp_headers.protocol_version() else { return Ok(()) };
        match Revision::parse(claimed) {
            Some(revision) if self.session.revisions.contains(&revision) => Ok(()),
            _ => {
                let spoken: Vec<_> =
                    self.session.revisions.iter().map(|revision| revision.as_str()).collect();
                let text = format!(
                    "MCP-Protocol-Version {claimed:?} is not supported here; this server supports {}",
                    spoken.join(", ")
                );
                Err(Reason::new("version", text))
            }
        }
    }

    pub(super) fn refuse_session(&mut self, request: HttpRequest) {
        let message = "no such session, or it has ended: send initialize to open a new one";
        self.refuse_request(request, StatusCode::NOT_FOUND, &Reason::new("session", message));
    }

    /// Refuses a body that is not a message, under its id if it has one that can be read.
    pub(super) fn refuse_frame(&mut self, request: HttpRequest, frame: Frame<'_>) {
        let Frame::One(Err(malformed)) = frame else { return };
        let kind = match malformed.unreadable {
            true => FaultKind::Unreadable,
            false => FaultKind::InvalidRequest,
        };
        let fault = Fault::new(kind, malformed.message);
        let wire = wire::spoken_by(&request.mcp_headers);
        let id = request.request_id.as_ref();
        let Some((status, body)) = reply::fault(wire, id, fault) else { return };
        self.log_refused(&request, &invalid_message(), status);
        self.answer_request(request, status, reply::json_head(), body);
    }

    pub(super) fn refuse_request(
        &mut self,
        request: HttpRequest,
        status: StatusCode,
        reason: &Reason,
    ) {
        self.log_refused(&request, reason, status);
        let body = reply::refusal_of(request.request_id.as_ref(), &reason.text);
        self.answer_request(request, status, reply::json_head(), body);
    }

    /// Answers with 503, so that the client tries again later.
    pub(super) fn refuse_for_now(&mut self, request: HttpRequest, reason: &Reason) {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        self.log_refused(&request, reason, status);
        let body = reply::refusal_of(request.request_id.as_ref(), &reason.text);
        self.answer_request(request, status, wait_head(), body);
    }

    pub(super) fn answer_request(
        &mut self,
        request: HttpRequest,
        status: StatusCode,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) {
        if let Some(cors) = request.cors {
            headers.extend(*cors);
        }
        self.answer(request.exchange, Part::Head { status, headers, body, more: false });
    }

    fn answer(&mut self, exchange: ExchangeId, part: Part) {
        self.outputs.push_back(EndpointOutput::Exchange(exchange, part));
    }
}

/// Returns the reason that a limit was reached; `option` sets the limit.
pub(super) fn too_many(what: &str, option: &'static str) -> Reason {
    Reason::limit(option, format!("too many {what} (option {})", option_name(option)))
}

pub(super) fn closing() -> Reason {
    Reason::new("closing", "the server is shutting down")
}

/// Returns the reason for the log that a body is not a message. The answer says more, and quotes the body.
fn invalid_message() -> Reason {
    Reason::new("invalid_message", "its body is not a valid message")
}

fn is_initialize(frame: &Frame<'_>) -> bool {
    let Frame::One(Ok(Message::Request { method, .. })) = frame else { return false };
    *method == Method::Initialize.as_str()
}

/// Returns whether a message is a request that clients send only after they have confirmed the handshake.
fn asks_for_more(frame: &Frame<'_>) -> bool {
    let Frame::One(Ok(Message::Request { method, .. })) = frame else { return false };
    *method != Method::Initialize.as_str() && *method != Method::Ping.as_str()
}

pub(super) fn wait_head() -> HeaderMap {
    let mut headers = reply::json_head();
    headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    headers
}
