//! The log events of an endpoint: refused requests, sessions and streams.

use std::{
    borrow::Cow,
    fmt,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use http::StatusCode;

use super::{Admission, Endpoint, Part, Refused, requests::HttpRequest, sessions::Session};
use crate::{
    error::option_name,
    log_events::{EventFacts, EventKind, LogEvent},
    metrics::Metrics,
    session::server::HttpFacts,
};

/// A function that takes an event, from any thread.
pub(crate) type WriteEvent = Box<dyn Fn(LogEvent) + Send + Sync>;

/// The place to which requests are reported that are refused before they reach the state of the endpoint.
pub(super) struct RefusalLog {
    /// Empty without a driver.
    write: OnceLock<WriteEvent>,
    metrics: Arc<Metrics>,
}

/// The reason why a request is refused: a name for the log, and the text of the answer.
#[derive(Debug)]
pub(super) struct Reason {
    pub(super) name: &'static str,
    pub(super) text: Cow<'static, str>,
    /// The reason is a limit, of this name.
    is_limit: bool,
}

/// The reason why a session or stream ends, for the log.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The client ended it with DELETE.
    Deleted,
    ClientLeft,
    Idle,
    TokenExpired,
    ServerStopped,
    /// The handshake failed.
    NotOpened,
    /// The stream is complete, or another request took its place.
    Complete,
    SessionEnded,
}

impl Reason {
    pub(super) fn new(name: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { name, text: text.into(), is_limit: false }
    }

    /// Creates the reason that a limit is reached; `option` or another name says which.
    pub(super) fn limit(option: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { is_limit: true, ..Self::new(option, text) }
    }

    /// Returns the event of a request that is refused with this status.
    pub(super) fn event(&self, status: StatusCode) -> LogEvent {
        let kind = match self.is_limit {
            true => EventKind::HttpOverloaded,
            false => EventKind::HttpRefused,
        };
        let facts = EventFacts { status: Some(status.as_u16()), ..EventFacts::default() };
        LogEvent::new(kind, self.text.clone()).because(self.name).with(facts)
    }
}

impl Refused {
    /// Returns the reason for the log; `None` for a step that every client takes. Texts about credentials stay out of it.
    pub(super) fn reason(&self) -> Option<Reason> {
        let max_body = || format!("the body is too long (option {})", option_name("max_body"));
        Some(match self {
            Self::BodyTooLarge => Reason::new("body_too_large", max_body()),
            Self::BodyTooSlow => Reason::new("body_too_slow", "the body did not come in time"),
            Self::BodyBroken => Reason::new("body_broken", "the body could not be read"),
            Self::TooMuchInput => Reason::limit("input_bytes", "too much is being received"),
            Self::Unidentified => Reason::new("auth_failed", "the authentication failed"),
            Self::UnknownUrl => Reason::new("unknown_url", "the server does not know its own URL"),
            Self::NoCredentials => Reason::new("no_credentials", "it has no access token"),
            Self::InvalidRequest(_) => {
                Reason::new("unreadable_credentials", "its credentials can't be read")
            }
            Self::InvalidToken(_) => {
                Reason::new("invalid_token", "its access token is not valid here")
            }
            Self::InvalidProof(_) => Reason::new("invalid_proof", "its DPoP proof is not valid"),
            // The client proves it again with the nonce.
            Self::NeedsNonce(_) => return None,
            Self::AuthUnavailable => {
                Reason::new("auth_unavailable", "access tokens can't be checked at the moment")
            }
            Self::InsufficientScope { .. } => {
                Reason::new("insufficient_scope", "its access token lacks scopes")
            }
        })
    }
}

impl RefusalLog {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { write: OnceLock::new(), metrics }
    }

    /// Reports a request of which these facts are known.
    #[cold]
    pub(super) fn write(&self, reason: &Reason, part: &Part, facts: &HttpFacts) {
        self.metrics.refused(reason.name);
        let (Some(write), Part::Head { status, .. }) = (self.write.get(), part) else { return };
        let mut event = reason.event(*status);
        set_caller(&mut event.facts, facts);
        write(event);
    }
}

/// The answer to a request whose head is not admitted, with the reason if it is refused.
pub(super) struct NotAdmitted {
    pub(super) part: Part,
    pub(super) reason: Option<Reason>,
}

impl From<Part> for NotAdmitted {
    /// Creates the answer to a request that is not refused.
    fn from(part: Part) -> Self {
        Self { part, reason: None }
    }
}

impl From<(Part, Reason)> for NotAdmitted {
    fn from((part, reason): (Part, Reason)) -> Self {
        Self { part, reason: Some(reason) }
    }
}

impl Admission {
    /// Has refused requests reported to this function, which is called from any thread and without any lock.
    pub(crate) fn log_to(&self, write: WriteEvent) {
        // Each endpoint has one driver.
        let _ = self.0.log.write.set(write);
    }

    /// Reports a request that is not admitted, and that came from this address. Returns the answer to it.
    pub(super) fn refused_from(&self, remote: Option<IpAddr>, answer: NotAdmitted) -> Part {
        let NotAdmitted { part, reason } = answer;
        if let Some(reason) = reason {
            self.0.log.write(&reason, &part, &HttpFacts { remote, ..HttpFacts::default() });
        }
        part
    }
}

impl Endpoint {
    /// Logs that a request is refused with this status.
    #[cold]
    pub(super) fn log_refused(
        &mut self,
        request: &HttpRequest,
        reason: &Reason,
        status: StatusCode,
    ) {
        let mut event = reason.event(status);
        self.metrics().refused(reason.name);
        set_caller(&mut event.facts, &request.facts);
        self.engine.log(event);
    }

    /// Logs an event of a session that a request caused, such as that it was opened.
    pub(super) fn log_of_request(&mut self, kind: EventKind, session: u64, request: &HttpFacts) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        let event = opened(kind, session, request);
        self.engine.log(event);
    }

    /// Logs that a client opened a stream of a session.
    pub(super) fn log_stream_opened(&mut self, session: &Session, request: &HttpFacts) {
        self.engine.log(opened(EventKind::StreamOpened, session, request));
    }

    /// Logs the end of a session.
    pub(super) fn log_session_end(&mut self, session: &Session, end: End) {
        // A session that was not opened has not been logged either.
        if session.peer.machine.agreed().is_some() || session.legacy_sse.is_some() {
            let event = LogEvent::new(EventKind::SessionEnded, end.text()).because(end.name());
            self.engine.log(event.with(facts_of(session)));
        }
    }

    /// Logs the end of a session that is not in memory, for this request.
    pub(super) fn log_absent_session_end(&mut self, request: &HttpFacts, end: End) {
        let mut event = LogEvent::new(EventKind::SessionEnded, end.text()).because(end.name());
        event.facts.session.clone_from(&request.session_id);
        self.engine.log(event);
    }

    /// Logs that a session ends for another one.
    pub(super) fn log_evicted(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        let detail = format!("option {}", option_name("max_sessions"));
        let event = LogEvent::new(EventKind::SessionEvicted, detail).because("max_sessions");
        self.engine.log(event.with(facts_of(session)));
    }

    /// Logs the end of a stream of a session.
    pub(super) fn log_stream_end(&mut self, session: &Session, end: End) {
        let event = LogEvent::new(EventKind::StreamClosed, end.text()).because(end.name());
        self.engine.log(event.with(facts_of(session)));
    }

    /// Returns the reason for which the server itself ends something now.
    pub(super) fn own_end(&self, otherwise: End) -> End {
        match self.is_closing {
            true => End::ServerStopped,
            false => otherwise,
        }
    }
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::ClientLeft => "client_left",
            Self::Idle => "idle",
            Self::TokenExpired => "token_expired",
            Self::ServerStopped => "server_stopped",
            Self::NotOpened => "not_opened",
            Self::Complete => "complete",
            Self::SessionEnded => "session_ended",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Deleted => "its client ended it",
            Self::ClientLeft => "its client left",
            Self::Idle => "it was idle for too long",
            Self::TokenExpired => "its access token has expired",
            Self::ServerStopped => "the server stopped",
            Self::NotOpened => "its handshake failed",
            Self::Complete => "it is complete",
            Self::SessionEnded => "its session ended",
        }
    }
}

impl fmt::Debug for RefusalLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalLog").finish_non_exhaustive()
    }
}

fn opened(kind: EventKind, session: &Session, request: &HttpFacts) -> LogEvent {
    let mut event = LogEvent::new(kind, "").with(facts_of(session));
    event.facts.principal.clone_from(&request.principal);
    event.facts.remote = request.remote;
    event
}

fn facts_of(session: &Session) -> EventFacts {
    EventFacts {
        session: Some(session.id.clone()),
        client: session.peer.machine.client().and_then(|(_, client)| client.name()),
        ..EventFacts::default()
    }
}

fn set_caller(event: &mut EventFacts, request: &HttpFacts) {
    event.principal.clone_from(&request.principal);
    event.remote = request.remote;
    event.session.clone_from(&request.session_id);
}
