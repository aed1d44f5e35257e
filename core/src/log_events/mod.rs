//! The events that a running server logs, as data: the machines make them, and a driver writes them after its lock is released.
//! An event has no session id, no credentials and no arguments of calls.

mod catalogue;
#[cfg(feature = "server")]
mod emit;
mod fields;
mod json_line;
#[cfg(feature = "bindings")]
mod page;
mod rejection;
mod request;

use std::{borrow::Cow, fmt, net::IpAddr, sync::Arc, time::Duration};

#[cfg(feature = "server")]
pub(crate) use self::emit::EventLog;
#[cfg(feature = "bindings")]
pub use self::page::page;
#[cfg(any(feature = "bindings", feature = "server"))]
pub(crate) use self::request::RequestStage;
pub use self::{
    catalogue::{Declaration, EventKind},
    json_line::{LOG_FORMAT, json_line},
};
use crate::{
    error::{ComponentName, option_name},
    log_text::{beginning, single_line},
    protocol::{Id, Principal, TraceIds},
};

/// The length in bytes to which a part of a sentence is cut that a peer may have chosen.
const MAX_DETAIL: usize = 1_000;

/// An event of a running server.
#[derive(Clone, Debug)]
pub struct LogEvent {
    pub(crate) kind: EventKind,
    /// The reason or the limit, one of a fixed set; empty where the kind has none.
    pub(crate) reason: &'static str,
    /// The part of the sentence that differs from event to event.
    pub(crate) detail: Cow<'static, str>,
    pub(crate) facts: EventFacts,
}

/// The circumstances of an event, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct EventFacts {
    pub(crate) method: Option<String>,
    pub(crate) request_id: Option<Id>,
    /// The id of the session. Its digest is logged.
    pub(crate) session: Option<Arc<str>>,
    /// The name that the client gives itself.
    pub(crate) client: Option<String>,
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) remote: Option<IpAddr>,
    /// The trace, and the span that caused the request.
    pub(crate) trace: Option<TraceIds>,
    pub(crate) component: Option<Box<ComponentName>>,
    pub(crate) status: Option<u16>,
    pub(crate) duration: Option<Duration>,
    pub(crate) reference: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) in_flight: Option<usize>,
    /// The process id of a worker, and the code with which it ended.
    pub(crate) worker: Option<(u32, i32)>,
    pub(crate) messages: Option<u64>,
}

impl LogEvent {
    /// Creates an event about which nothing else is known.
    pub(crate) fn new(kind: EventKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, reason: "", detail: detail.into(), facts: EventFacts::default() }
    }

    /// Creates a report about the server's own code or configuration.
    #[doc(hidden)] // For the language bindings.
    pub fn problem(text: impl Into<String>) -> Self {
        Self::new(EventKind::ServerProblem, text.into())
    }

    /// Sets the reason, or the name of the limit.
    #[must_use]
    pub(crate) fn because(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }

    #[must_use]
    pub(crate) fn with(self, facts: EventFacts) -> Self {
        Self { facts, ..self }
    }

    /// Sets the address that the request came from.
    #[must_use]
    pub(crate) fn with_remote(mut self, remote: Option<IpAddr>) -> Self {
        self.facts.remote = remote;
        self
    }

    /// Returns the properties of events of its kind.
    pub fn declaration(&self) -> &'static Declaration {
        self.kind.declaration()
    }

    /// Returns whether the host reports it, because it is an error in the server's own code, and the host knows more about that.
    pub fn is_for_host(&self) -> bool {
        matches!(self.kind, EventKind::CallFailed | EventKind::ServerProblem)
    }

    /// Returns whether it is an event of the ready-made middleware, whose text has its limits.
    fn is_of_middleware(&self) -> bool {
        matches!(
            self.kind,
            EventKind::RequestReceived | EventKind::RequestDone | EventKind::RequestTimed
        )
    }

    /// Returns the text of a report to the host, or the part of another event's sentence that only it has.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the session's name in a sentence.
    fn session(&self) -> String {
        match &self.facts.session {
            Some(id) => format!("session {}", fields::digest(id)),
            None => "a session".to_owned(),
        }
    }
}

impl fmt::Display for LogEvent {
    /// Writes the sentence of the event, on one line unless it is a report with a traceback.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_for_host() || self.is_of_middleware() {
            return f.write_str(&self.detail);
        }
        let detail = single_line(beginning(&self.detail, MAX_DETAIL));
        let facts = &self.facts;
        let name = |name: &Option<String>| match name.as_deref().unwrap_or_default() {
            "" => "gudgeon".to_owned(),
            name => single_line(name).into_owned(),
        };
        match self.kind {
            EventKind::HttpRefused | EventKind::HttpOverloaded => {
                let status = facts.status.unwrap_or_default();
                write!(f, "refused a request with status {status}: {detail}")
            }
            EventKind::SessionOpened => write!(f, "opened {}{}", self.session(), self.for_client()),
            EventKind::SessionRestored => {
                write!(f, "restored {} from its id{}", self.session(), self.for_client())
            }
            EventKind::SessionEnded => write!(f, "ended {}: {detail}", self.session()),
            EventKind::SessionEvicted => {
                write!(f, "ended {} to make room for another one: {detail}", self.session())
            }
            EventKind::AnswerLost => write!(
                f,
                "dropped an answer of {}, because nobody here has asked: share a store, or send all requests of a session to one process",
                self.session()
            ),
            EventKind::StreamOpened if facts.session.is_none() => {
                write!(f, "opened a subscription{}", self.for_client())
            }
            EventKind::StreamOpened => write!(f, "opened a stream of {}", self.session()),
            EventKind::StreamClosed if facts.session.is_none() => {
                write!(f, "closed a subscription: {detail}")
            }
            EventKind::StreamClosed => write!(f, "closed a stream of {}: {detail}", self.session()),
            EventKind::CallRejected => match &facts.request_id {
                Some(id) => write!(f, "rejected request {}: {detail}", fields::request_id(id)),
                None => write!(f, "rejected a request: {detail}"),
            },
            EventKind::CallCut => match &facts.component {
                Some(component) => write!(f, "stopped {}: {detail}", component.for_log()),
                None => write!(f, "stopped a handler: {detail}"),
            },
            EventKind::RequestReceived
            | EventKind::RequestDone
            | EventKind::RequestTimed
            | EventKind::CallFailed
            | EventKind::CallTimedOut
            | EventKind::CallCancelled
            | EventKind::WorkerEnded
            | EventKind::ServerProblem => f.write_str(&detail),
            EventKind::StoreWithoutMessages => f.write_str(
                "the store carries no messages, so clients hear only of changes that this process reports, and questions, \
                 cancellations and resumed streams do not reach the other servers: add publish and subscribe to the store, or use \
                 Redis or a file",
            ),
            EventKind::StoreUnreadable => {
                let messages = match facts.messages.unwrap_or_default() {
                    1 => "1 message".to_owned(),
                    number => format!("{number} messages"),
                };
                write!(
                    f,
                    "{messages} of the store can't be opened, so clients are told that everything may have changed: all servers \
                     with one store need the same keys ({}), and nobody else may write there",
                    option_name("request_state_keys")
                )
            }
            EventKind::ServerStarted => {
                let url = facts.url.as_deref().unwrap_or_default();
                write!(f, "{} serves {url}", name(&facts.server))
            }
            EventKind::ServerStopping => {
                let requests = match facts.in_flight.unwrap_or_default() {
                    1 => "1 request is in flight".to_owned(),
                    number => format!("{number} requests are in flight"),
                };
                write!(f, "{} stops; {requests}", name(&facts.server))
            }
            EventKind::ServerStopped => {
                let url = facts.url.as_deref().unwrap_or_default();
                write!(f, "{} has stopped serving {url}", name(&facts.server))
            }
        }
    }
}

impl LogEvent {
    fn for_client(&self) -> String {
        match &self.facts.client {
            Some(client) => format!(" for the client {:?}", fields::name(client)),
            None => String::new(),
        }
    }
}

impl ComponentName {
    /// Returns the component as sentences of a log name it.
    fn for_log(&self) -> String {
        format!("{} {:?}", self.kind, fields::name(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_its_digest_and_never_by_its_id() {
        let facts = EventFacts { session: Some("secret-id".into()), ..EventFacts::default() };
        let event = LogEvent::new(EventKind::SessionEnded, "its client ended it").with(facts);
        assert_eq!(event.to_string(), "ended session 2d4e223a: its client ended it");
        assert!(!event.fields().values().any(|value| value.to_string().contains("secret-id")));
    }

    #[test]
    fn a_text_of_a_client_stays_on_its_line_and_is_cut() {
        let detail = format!("unknown tool \"a\n\u{1b}[2J{}", "x".repeat(2 * MAX_DETAIL));
        let event = LogEvent::new(EventKind::CallRejected, detail);
        let text = event.to_string();
        assert!(text.starts_with(r#"rejected a request: unknown tool "a\n\u{1b}[2Jx"#), "{text}");
        assert!(text.len() < MAX_DETAIL + 100);
    }

    #[test]
    fn names_are_used_once() {
        let mut names: Vec<_> = EventKind::ALL.iter().map(|kind| kind.declaration().name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EventKind::ALL.len());
    }
}
