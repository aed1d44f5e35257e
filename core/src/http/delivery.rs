//! The conversion of a session's frames to parts of HTTP answers.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    Endpoint, EndpointOutput, Exchange, ExchangeId, ExchangeOwner, Part, Reader, StoreTicket,
    logging::End,
    reply,
    sessions::{Session, is_standalone},
};
use crate::{
    error::{Fault, FaultKind},
    framing::sse,
    protocol::json,
    session::{
        InboundKey,
        server::{MissingScopes, OutgoingFrame, disconnected},
    },
    wire,
};

const NO_STREAM: &str = "the client can't be asked: its request does not accept text/event-stream, and it has no GET \
     stream open, so nothing would carry the question: accept text/event-stream, or open a GET stream";

impl Endpoint {
    /// Delivers the frames of a stateless request. Returns whether the answer is complete now.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        id: ExchangeId,
        exchange: &mut Exchange,
        sent: Vec<OutgoingFrame>,
    ) -> bool {
        let is_legacy =
            matches!(&exchange.owner, ExchangeOwner::Modern(peer) if peer.machine.is_sessionless());
        for sent in sent {
            let is_reply = sent.is_reply();
            let OutgoingFrame { frame, error, is_change, missing_scopes, .. } = sent;
            let Some(frame) = frame else {
                // A subscription that was cut has sent its end.
                if is_reply && exchange.is_streaming {
                    self.outputs.push_back(EndpointOutput::Exchange(id, Part::End));
                    return true;
                }
                continue;
            };
            let (status, headers) = match missing_scopes {
                None if is_legacy => (reply::legacy_status(error), reply::json_head()),
                None => (error.map_or(StatusCode::OK, wire::status), reply::json_head()),
                Some(missing) => self.step_up(exchange, *missing, reply::json_head()),
            };
            // A stream has no place for the status.
            let is_json = exchange.accepts.json || status != StatusCode::OK;
            if is_reply && !exchange.is_streaming && is_json {
                self.respond(id, exchange, status, headers, frame, false);
                return true;
            }
            if !exchange.accepts.stream {
                continue;
            }
            let mut bytes = Vec::with_capacity(frame.len() + 16);
            sse::event(&mut bytes, None, &frame);
            if is_change && exchange.is_streaming {
                exchange.quiet_since = now;
                self.outputs.push_back(EndpointOutput::Change(Reader::Exchange(id), bytes));
                continue;
            }
            self.stream(now, id, exchange, bytes, !is_reply);
            if is_reply {
                return true;
            }
        }
        false
    }

    /// Returns the status and the headers of the answer to a sender that needs more scopes (2026-07-28, "Runtime Insufficient
    /// Scope Errors").
    fn step_up(
        &self,
        exchange: &Exchange,
        missing: MissingScopes,
        mut headers: HeaderMap,
    ) -> (StatusCode, HeaderMap) {
        if let Some(challenge) = self.admission.step_up(exchange.metadata.as_deref(), missing) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        (StatusCode::FORBIDDEN, headers)
    }

    /// Errors if no stream can carry a question of this request.
    ///
    /// A connected client that accepts no events and has no GET stream fails at once, because nothing makes it open one later.
    /// A client whose connection broke, or that had a GET stream where streams can be resumed, may reconnect, so the question
    /// waits (2025-11-25, Transports, "Resumability and Redelivery").
    pub(super) fn has_way_to_ask(&mut self, number: u64, key: InboundKey) -> Result<(), Fault> {
        let Some(session) = self.sessions.get_mut(number) else { return Err(disconnected()) };
        let Some(stream) = session.peer.stream_of(key) else { return Ok(()) };
        let own = session
            .stream(stream)
            .filter(|stream| !stream.is_streaming)
            .and_then(|stream| stream.exchange);
        let takes_none = own
            .and_then(|id| self.exchanges.get(&id))
            .is_some_and(|exchange| !exchange.accepts.stream);
        let may_resume = self.config.event_store && session.has_listened;
        if takes_none && session.standalone().is_none() && !may_resume {
            return Err(Fault::new(FaultKind::Handler, NO_STREAM));
        }
        Ok(())
    }

    /// Delivers one frame of a session on the stream that it belongs to; `None`: on the standalone one.
    pub(super) fn deliver_in_session(
        &mut self,
        now: Instant,
        session: &mut Session,
        stream: Option<u64>,
        sent: OutgoingFrame,
    ) {
        let is_reply = sent.is_reply();
        let OutgoingFrame {
            frame,
            about,
            error,
            is_change,
            is_list_change,
            is_asking,
            missing_scopes,
        } = sent;
        if let Some(only) = session.legacy_sse {
            let Some(frame) = frame else { return };
            let mut bytes = Vec::with_capacity(frame.len() + 32);
            sse::named_event(&mut bytes, "message", &frame);
            self.write(now, only, bytes, is_change);
            return;
        }
        let Some(number) = stream.or_else(|| session.standalone()) else {
            if let Some(frame) = frame {
                self.keep(session, frame, is_change, is_list_change);
            }
            return;
        };
        let Some(entry) = session.stream(number) else { return };
        let (connected, streaming) = (entry.exchange, entry.is_streaming);
        let is_heard = connected.is_some() || self.config.event_store;
        if is_reply && !streaming {
            self.answer_in_session(session, number, connected, frame, (error, missing_scopes));
            return;
        }
        let Some(frame) = frame else {
            self.end_stream(session, number);
            return;
        };
        let is_stream = self.begin_stream(now, session, number, None);
        if is_asking && !(is_stream && is_heard) {
            let sent = OutgoingFrame {
                frame: Some(frame),
                about,
                error,
                is_change,
                is_list_change,
                is_asking,
                missing_scopes,
            };
            return self.deliver_in_session(now, session, None, sent);
        }
        if !is_stream {
            return;
        }
        self.log_and_write(now, session, number, (&frame, is_reply), is_change);
        if is_reply {
            self.end_stream(session, number);
        }
    }

    /// Keeps a message until the client opens a stream, and offers it to the other processes, where it may have one. A changed
    /// list is reported by each process itself.
    fn keep(&mut self, session: &mut Session, frame: Vec<u8>, is_change: bool, is_list: bool) {
        // With a store, each process with a stream reports changes itself.
        let is_reported = is_list || (is_change && self.stored.is_there());
        let offered = match self.is_shared && !is_reported {
            true => String::from_utf8(frame.clone()).ok().map(json::raw),
            false => None,
        };
        let kept = session.keep(frame, is_change);
        if kept.is_full {
            tracing::warn!(
                "dropped the oldest messages of a session that opens no stream for them"
            );
        }
        if let (Some(frame), Some(message)) = (offered, kept.message) {
            let id = session.id.to_string();
            self.offer(&id, message, frame, is_change);
        }
    }

    /// Writes one event of a session's stream, with an id if the stream can be resumed. With `true` beside the frame, the stream
    /// is complete with it.
    pub(super) fn log_and_write(
        &mut self,
        now: Instant,
        session: &mut Session,
        number: u64,
        (frame, is_last): (&[u8], bool),
        is_change: bool,
    ) {
        let event = self.config.event_store.then(|| session.log().append(number, frame));
        let stored = event
            .as_ref()
            .and_then(|event| self.store_event(now, session, number, event, Some(frame), is_last));
        let mut bytes = Vec::with_capacity(frame.len() + 32);
        sse::event(&mut bytes, event.as_deref(), frame);
        let Some(exchange) = session.stream(number).and_then(|stream| stream.exchange) else {
            return;
        };
        match stored {
            Some(_) => self.write_after(now, exchange, stored, bytes),
            None => self.write(now, exchange, bytes, is_change && event.is_none()),
        }
    }

    /// Answers a POST with a complete body.
    fn answer_in_session(
        &mut self,
        session: &mut Session,
        number: u64,
        connected: Option<ExchangeId>,
        frame: Option<Vec<u8>>,
        (error, missing_scopes): (Option<i64>, Option<Box<MissingScopes>>),
    ) {
        session.close(number);
        let Some(id) = connected else { return };
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        let Some(frame) = frame else {
            self.respond(
                id,
                &mut exchange,
                StatusCode::ACCEPTED,
                HeaderMap::new(),
                Vec::new(),
                false,
            );
            return;
        };
        let (status, headers) = match missing_scopes {
            None => (reply::legacy_status(error), reply::json_head()),
            Some(missing) => self.step_up(&exchange, *missing, reply::json_head()),
        };
        let (status, headers, body) = if exchange.accepts.json || status != StatusCode::OK {
            (status, headers, frame)
        } else {
            let mut bytes = Vec::with_capacity(frame.len() + 16);
            sse::event(&mut bytes, None, &frame);
            (StatusCode::OK, reply::stream_head(), bytes)
        };
        let part = first_part(&mut exchange, status, named(headers, session), body, false);
        let stored = self.unsent.wait_for(id, session.changing);
        self.send_after(id, stored, part);
    }

    /// Turns the answer to a POST into a stream, unless it is one already. Returns whether that is possible.
    pub(super) fn begin_stream(
        &mut self,
        now: Instant,
        session: &mut Session,
        number: u64,
        retry: Option<Duration>,
    ) -> bool {
        let Some(stream) = session.stream(number) else { return false };
        if stream.is_streaming {
            return true;
        }
        let Some(id) = stream.exchange else { return false };
        if !self.exchanges.get(&id).is_some_and(|exchange| exchange.accepts.stream) {
            return false;
        }
        stream.is_streaming = true;
        if self.stored.is_there() {
            stream.request =
                self.exchanges.get(&id).and_then(|exchange| exchange.request_id.clone());
        }
        let (mut first, mut stored) = (Vec::new(), None);
        if self.config.event_store && primes(session) {
            let event = session.log().prime(number);
            sse::priming(&mut first, &event, retry);
            stored = self.store_event(now, session, number, &event, None, false);
        }
        let primed = stored.is_some().then(|| std::mem::take(&mut first));
        let headers = named(reply::stream_head(), session);
        if let Some(mut exchange) = self.exchanges.remove(&id) {
            exchange.is_streaming = true;
            exchange.quiet_since = now;
            self.respond(id, &mut exchange, StatusCode::OK, headers, first, true);
            self.exchanges.insert(id, exchange);
        }
        if let Some(primed) = primed {
            self.write_after(now, id, stored, primed);
        }
        true
    }

    /// Closes the connection of a call's stream; its answer is stored (2025-11-25, Transports, "Sending Messages").
    pub(super) fn let_poll(&mut self, number: u64, key: InboundKey, retry: Option<Duration>) {
        let Some(mut session) = self.sessions.take(number) else { return };
        if let Some(stream) = session.peer.stream_of(key)
            && self.config.event_store
            && session.legacy_sse.is_none()
            && primes(&session)
        {
            let now = session.touched;
            self.begin_stream(now, &mut session, stream, retry);
            if let Some(id) = session.stream(stream).and_then(|stream| stream.exchange.take()) {
                if let Some(after) = retry {
                    let mut bytes = Vec::new();
                    sse::retry(&mut bytes, after);
                    self.write(now, id, bytes, false);
                }
                self.end(id);
            }
        }
        self.sessions.put(session);
    }

    /// Ends a session's stream, which is complete.
    pub(super) fn end_stream(&mut self, session: &mut Session, number: u64) {
        self.end_stream_because(session, number, End::Complete);
    }

    /// Ends a session's stream; `end` is the reason, unless the server stops.
    pub(super) fn end_stream_because(&mut self, session: &mut Session, number: u64, end: End) {
        if session.is_got(number) {
            self.log_stream_end(session, self.own_end(end));
        }
        let connected = session.stream(number).and_then(|stream| stream.exchange);
        if !is_standalone(number) || connected.is_some() {
            session.close(number);
        }
        if let Some(id) = connected {
            self.end(id);
        }
    }

    /// Begins an answer.
    pub(super) fn respond(
        &mut self,
        id: ExchangeId,
        exchange: &mut Exchange,
        status: StatusCode,
        headers: HeaderMap,
        body: Vec<u8>,
        more: bool,
    ) {
        let part = first_part(exchange, status, headers, body, more);
        self.outputs.push_back(EndpointOutput::Exchange(id, part));
    }

    /// Writes on an answer that is a stream, or that becomes one.
    pub(super) fn stream(
        &mut self,
        now: Instant,
        id: ExchangeId,
        exchange: &mut Exchange,
        bytes: Vec<u8>,
        more: bool,
    ) {
        exchange.quiet_since = now;
        if !exchange.is_streaming {
            exchange.is_streaming = true;
            self.respond(id, exchange, StatusCode::OK, reply::stream_head(), bytes, more);
            return;
        }
        self.outputs.push_back(EndpointOutput::Exchange(id, Part::Bytes(bytes)));
        if !more {
            self.outputs.push_back(EndpointOutput::Exchange(id, Part::End));
        }
    }

    pub(super) fn write(&mut self, now: Instant, id: ExchangeId, bytes: Vec<u8>, is_change: bool) {
        if !is_change {
            return self.write_after(now, id, None, bytes);
        }
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.quiet_since = now;
            self.outputs.push_back(EndpointOutput::Change(Reader::Exchange(id), bytes));
        }
    }

    /// Writes once an event is stored.
    fn write_after(
        &mut self,
        now: Instant,
        id: ExchangeId,
        event: Option<StoreTicket>,
        bytes: Vec<u8>,
    ) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.quiet_since = now;
            self.send_after(id, event, Part::Bytes(bytes));
        }
    }

    /// Ends a complete stream; an answer that has not begun is not sent.
    pub(super) fn end(&mut self, id: ExchangeId) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        if exchange.is_streaming {
            return self.send_after(id, None, Part::End);
        }
        let (status, why) = match self.is_closing {
            true => (StatusCode::SERVICE_UNAVAILABLE, "the server stopped before it had an answer"),
            false => (StatusCode::NOT_FOUND, "the session ended before there was an answer"),
        };
        let body = reply::refusal_of(exchange.request_id.as_ref(), why);
        self.respond(id, &mut exchange, status, reply::json_head(), body, false);
    }
}

/// Returns the first part of an answer.
fn first_part(
    exchange: &mut Exchange,
    status: StatusCode,
    mut headers: HeaderMap,
    body: Vec<u8>,
    more: bool,
) -> Part {
    if let Some(cors) = exchange.cors.take() {
        headers.extend(*cors);
    }
    Part::Head { status, headers, body, more }
}

/// Returns whether the session's revision has streams that begin with an id.
fn primes(session: &Session) -> bool {
    session.peer.machine.agreed().is_some_and(|wire| wire.vocabulary.primed_streams)
}

/// Returns a head with the id of the session, if there is one.
pub(super) fn named(mut headers: HeaderMap, session: &Session) -> HeaderMap {
    if session.peer.machine.agreed().is_some() {
        set_session_id(&mut headers, &session.id);
    }
    headers
}

/// Adds the id of a session to a head.
pub(super) fn set_session_id(headers: &mut HeaderMap, id: &str) {
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(reply::SESSION_ID, id);
    }
}
