//! GET and DELETE of sessions, resumption of streams, and the transport of 2024-11-05.

use std::{sync::Arc, time::Instant};

use http::{HeaderMap, StatusCode};
use rustc_hash::FxHashMap;

use super::{
    Endpoint, Exchange, ExchangeId, ExchangeOwner, Part, events,
    logging::{End, Reason},
    opening::Found,
    reply,
    requests::{HttpRequest, too_many},
    session,
    sessions::{Session, is_standalone},
};
use crate::{
    error::option_name, framing::sse, log_events::EventKind, protocol::Frame,
    session::server::ServerSession,
};

const LAST_EVENT_ID: &str = "last-event-id";

impl Endpoint {
    pub(super) fn get(&mut self, now: Instant, request: HttpRequest) {
        if !request.accepts.stream {
            let message = "GET opens a stream of events: Accept must list text/event-stream";
            let reason = Reason::new("accept", message);
            return self.refuse_request(request, StatusCode::NOT_ACCEPTABLE, &reason);
        }
        let number = match self.find_session(now, &request) {
            Found::Session(number) => number,
            Found::Nothing => return self.refuse_without(request),
            Found::NoRoom => {
                return self.refuse_for_now(request, &too_many("sessions", "max_sessions"));
            }
        };
        if let Err(reason) = self.check_version(&request.mcp_headers) {
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
        }
        let Some(mut session) = self.sessions.take(number) else { return };
        session.touched = now;
        let last_event = request.facts.headers.get(LAST_EVENT_ID);
        let last_event = last_event.map(|value| value.to_str().unwrap_or_default().to_owned());
        let may_be_stored = self.stored.is_there() && self.config.event_store;
        if may_be_stored
            && let Some(event) = &last_event
            && session.is_from_elsewhere(event)
        {
            self.follow(now, request, &session, event);
            return self.sessions.put(session);
        }
        match last_event.filter(|event| !session.has_lost(event)) {
            Some(event) => self.resume(now, request, &mut session, &event),
            None if session.listening(None) >= self.config.max_streams => {
                self.refuse_for_now(request, &too_many("streams of one session", "max_streams"));
            }
            None => {
                let id = request.exchange;
                let stream = session.open(id, true);
                self.connect(now, request, &session, stream);
                self.deliver_kept(now, &mut session, stream);
            }
        }
        self.sessions.put(session);
        self.tell_missed_changes(now, number);
        self.announce_stream(number);
    }

    pub(super) fn delete(&mut self, now: Instant, request: HttpRequest) {
        if let Err(reason) = self.check_version(&request.mcp_headers)
            && request.facts.session_id.is_some()
        {
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
        }
        if !self.delete_session(now, &request) {
            return self.refuse_without(request);
        }
        self.answer_request(request, StatusCode::NO_CONTENT, HeaderMap::new(), Vec::new());
    }

    /// Ends a session, its streams and its calls.
    pub(super) fn end_session(&mut self, now: Instant, number: u64, end: End) {
        self.close_session(now, number, Some(end));
    }

    /// Ends a session for another one.
    pub(super) fn evict_session(&mut self, now: Instant, number: u64) {
        self.log_evicted(number);
        self.close_session(now, number, None);
    }

    /// `end`: the reason, unless it is logged already.
    fn close_session(&mut self, now: Instant, number: u64, end: Option<End>) {
        self.with_session(now, number, u64::MAX, None, Some(session::Input::Closed));
        let Some(session) = self.sessions.take(number) else { return };
        let stream_end = self.own_end(End::SessionEnded);
        for _ in 0..session.listening(None) {
            self.log_stream_end(&session, stream_end);
        }
        for exchange in session.exchanges() {
            self.end(exchange);
        }
        if let Some(end) = end {
            self.log_session_end(&session, end);
        }
        self.sessions.forget(&session);
    }

    /// Handles a client's disconnection. In a session it does not cancel the request.
    pub(super) fn handle_gone(&mut self, now: Instant, id: ExchangeId) {
        self.unsent.discard(id);
        if self.stop_following(id) || self.stop_handing_over(id) {
            self.exchanges.remove(&id);
            return;
        }
        let Some(exchange) = self.exchanges.get(&id) else { return };
        match exchange.owner {
            ExchangeOwner::Modern(_) => {
                self.pass_to_exchange(now, id, session::Input::Closed);
                self.exchanges.remove(&id);
            }
            ExchangeOwner::Stream { session, stream } => {
                self.exchanges.remove(&id);
                if let Some(mut session) = self.sessions.take(session) {
                    session.touched = now;
                    if session.is_got(stream) {
                        self.log_stream_end(&session, End::ClientLeft);
                    }
                    session.detach(stream);
                    self.sessions.put(session);
                }
            }
            ExchangeOwner::LegacySse { session } => {
                self.exchanges.remove(&id);
                self.end_session(now, session, End::ClientLeft);
            }
            ExchangeOwner::Followed | ExchangeOwner::HandedOver => {
                drop(self.exchanges.remove(&id));
            }
            ExchangeOwner::Metrics => self.leave_metrics(id),
            ExchangeOwner::Route(call) => self.cancel_route(now, id, call),
        }
    }

    /// Opens the stream of the HTTP+SSE transport, whose first event has the address for POSTs (2024-11-05, Transports, "HTTP with SSE").
    pub(super) fn open_legacy_sse(&mut self, now: Instant, request: HttpRequest, path: &str) {
        if !request.accepts.stream {
            let message = "GET opens a stream of events: Accept must list text/event-stream";
            let reason = Reason::new("accept", message);
            return self.refuse_request(request, StatusCode::NOT_ACCEPTABLE, &reason);
        }
        if !self.make_room_for_session(now, &request) {
            return self.refuse_for_now(request, &too_many("sessions", "max_sessions"));
        }
        let machine = ServerSession::new(Arc::clone(&self.session));
        let (id, facts) = (self.sessions.random_id(), Arc::clone(&request.facts));
        let mut session = self.sessions.create(now, id, machine, &facts);
        session.legacy_sse = Some(request.exchange);
        let mut first = Vec::new();
        sse::named_event(
            &mut first,
            "endpoint",
            format!("{path}?session_id={}", session.id).as_bytes(),
        );
        let id = request.exchange;
        let mut exchange =
            exchange(now, request, ExchangeOwner::LegacySse { session: session.number });
        self.respond(id, &mut exchange, StatusCode::OK, reply::stream_head(), first, true);
        self.exchanges.insert(id, exchange);
        let number = session.number;
        self.sessions.put(session);
        self.log_of_request(EventKind::SessionOpened, number, &facts);
    }

    pub(super) fn post_legacy_sse(
        &mut self,
        now: Instant,
        request: HttpRequest,
        id: Option<&str>,
        frame: Frame<'_>,
    ) {
        let owner = request.facts.principal.as_deref();
        let number = id.and_then(|id| self.sessions.number(id, owner, true));
        let Some(session) = number.and_then(|number| self.sessions.get_mut(number)) else {
            return self.refuse_session(request);
        };
        let number = session.number;
        let id = Arc::clone(&session.id);
        if matches!(&frame, Frame::One(Err(malformed)) if malformed.unreadable) {
            return self.refuse_frame(request, frame);
        }
        if let Some(why) = self.too_much(&frame, &request) {
            return self.refuse_for_now(request, &why);
        }
        let facts = Arc::new(request.facts.in_session(id));
        let input = session::Input::Parsed(frame);
        self.with_session(now, number, 0, Some(&facts), Some(input));
        self.sessions.weigh(number);
        self.answer_request(request, StatusCode::ACCEPTED, HeaderMap::new(), Vec::new());
    }

    /// Resumes a broken stream of the client, with that stream's events only.
    fn resume(&mut self, now: Instant, request: HttpRequest, session: &mut Session, event: &str) {
        if !self.config.event_store {
            let option = option_name("event_store");
            let text = format!("streams can't be resumed here (option {option})");
            let reason = Reason::new("resumption", text);
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
        }
        let Ok((stream, missed)) = session.log().replay(event) else {
            return self.refuse_request(request, StatusCode::BAD_REQUEST, &too_old());
        };
        let is_over = !is_standalone(stream) && session.stream(stream).is_none();
        if !is_over && session.listening(Some(stream)) >= self.config.max_streams {
            return self
                .refuse_for_now(request, &too_many("streams of one session", "max_streams"));
        }
        let id = request.exchange;
        if !is_over {
            let was_got = session.is_got(stream);
            if let Some(before) = session.resume(stream, id) {
                if was_got {
                    self.log_stream_end(session, End::Complete);
                }
                self.unsent.discard(before);
                self.end(before);
            }
        }
        self.connect(now, request, session, stream);
        let mut unstored = FxHashMap::default();
        for (ticket, event, readers) in self.unsent.events_of(session.number, stream) {
            *readers = vec![id];
            event.is_followed = false;
            unstored.insert(event.number, ticket);
        }
        for (event, frame) in missed {
            let stored = events::number_of(&event).and_then(|event| unstored.get(&event).copied());
            let mut bytes = Vec::with_capacity(frame.len() + 32);
            sse::event(&mut bytes, Some(&event), &frame);
            self.send_after(id, stored, Part::Bytes(bytes));
        }
        if is_over {
            self.log_stream_end(session, End::Complete);
            self.end(id);
        } else if is_standalone(stream) {
            self.deliver_kept(now, session, stream);
        }
    }

    /// Begins the answer to a GET.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        request: HttpRequest,
        session: &Session,
        stream: u64,
    ) {
        let id = request.exchange;
        self.log_stream_opened(session, &request.facts);
        let owner = ExchangeOwner::Stream { session: session.number, stream };
        let mut exchange = exchange(now, request, owner);
        // The first byte shows proxies and clients that the stream is open.
        let first = sse::KEEP_ALIVE.to_vec();
        let headers = super::delivery::named(reply::stream_head(), session);
        self.respond(id, &mut exchange, StatusCode::OK, headers, first, true);
        self.exchanges.insert(id, exchange);
    }

    pub(super) fn deliver_kept(&mut self, now: Instant, session: &mut Session, stream: u64) {
        for frame in session.undelivered() {
            self.log_and_write(now, session, stream, (&frame, false), false);
        }
    }

    fn refuse_without(&mut self, request: HttpRequest) {
        if request.facts.session_id.is_some() {
            return self.refuse_session(request);
        }
        let message =
            "Mcp-Session-Id is missing: GET and DELETE belong to a session that initialize opened";
        let reason = Reason::new("no_session", message);
        self.refuse_request(request, StatusCode::BAD_REQUEST, &reason);
    }
}

/// Returns the reason for which a stream can't be resumed after an event.
pub(super) fn too_old() -> Reason {
    let message = "Last-Event-ID was never issued in this session, or is too old to go on from";
    Reason::new("resumption", message)
}

pub(super) fn exchange(now: Instant, request: HttpRequest, owner: ExchangeOwner) -> Exchange {
    let HttpRequest { accepts, cors, request_id, expires, .. } = request;
    Exchange {
        owner,
        accepts,
        is_streaming: true,
        quiet_since: now,
        is_lagging: false,
        expires,
        cors,
        request_id,
        metadata: None,
    }
}
