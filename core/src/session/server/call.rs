//! A request as handed to the router or engine, with its context.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::HeaderMap;
use serde::Deserialize;

use super::session_values::ReadValues;
use crate::{
    error::Fault,
    log_events::EventFacts,
    protocol::{
        ClientKey, Dialect, Id, Method, Principal, Question, Raw, Request, Revision, TraceContext,
        TraceIds,
    },
    session::{
        InboundKey,
        asking::{self, Answers},
    },
    wire::Wire,
};

/// A request to answer.
#[derive(Debug)]
pub struct Call {
    pub key: InboundKey,
    pub request: Request,
    pub context: CallContext,
    /// The params as sent, for a handler that replaces the core's answer.
    pub raw_params: Option<Raw>,
}

/// The context of a request, independent of the revision.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// `None` for a notification.
    pub request_id: Option<Id>,
    /// The revision; for a dialect, the most similar one.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// The request's `_meta`, as sent.
    pub meta: Option<Raw>,
    /// The span that caused the request, as `_meta` names it.
    pub cause: Option<Box<TraceIds>>,
    pub client: Arc<ClientIdentity>,
    /// The size of the message, in bytes.
    pub weight: usize,
    /// `true` if the client asked for progress.
    pub wants_progress: bool,
    /// The answers received so far.
    pub answers: Answers,
    /// The authenticated principal, if known.
    pub principal: Option<Arc<Principal>>,
    /// The address that the client calls from, if known.
    pub remote: Option<IpAddr>,
    /// The HTTP request that contained the call.
    pub http: Option<Arc<HttpFacts>>,
    /// `true` if arguments must be compared with the HTTP headers that repeat them.
    pub checks_headers: bool,
    /// The values of the session, if a store has them. Otherwise the host keeps them.
    pub session_values: Option<Box<ReadValues>>,
}

impl CallContext {
    /// Creates the context of a call without further information.
    pub(crate) fn new(wire: &'static Wire, client: Arc<ClientIdentity>, meta: Option<Raw>) -> Self {
        Self {
            request_id: None,
            revision: wire.revision,
            dialect: wire.dialect,
            meta,
            cause: None,
            client,
            weight: 0,
            wants_progress: false,
            answers: Answers::default(),
            principal: None,
            remote: None,
            http: None,
            checks_headers: false,
            session_values: None,
        }
    }

    /// Returns the client that the call is counted for, if it is known.
    pub(crate) fn client_key(&self) -> Option<ClientKey> {
        ClientKey::new(self.principal.as_deref(), self.remote)
    }

    /// Returns the trace context of the call.
    #[doc(hidden)] // For the language bindings.
    pub fn trace(&self) -> CallTrace {
        let own = self.meta.as_deref().map(TraceContext::from_meta).unwrap_or_default();
        let Some(http) = &self.http else { return CallTrace { parent: own, link: None } };
        let ambient = http.ambient.as_deref().cloned().unwrap_or_default();
        let active = ambient.traceparent.clone();
        let link = active.filter(|_| own.traceparent.is_some());
        let parent = own.or(ambient).or(TraceContext::from_headers(&http.headers));
        CallTrace { parent, link }
    }

    /// Returns the ids of the trace and of the span that caused the call.
    fn trace_ids(&self) -> Option<TraceIds> {
        self.cause.as_deref().copied().or_else(|| self.http.as_ref()?.trace_ids())
    }

    /// Returns the facts of the call for the log.
    pub(crate) fn log_facts(&self) -> EventFacts {
        EventFacts {
            request_id: self.request_id.clone(),
            session: self.http.as_ref().and_then(|http| http.session_id.clone()),
            client: self.client.name(),
            principal: self.principal.clone(),
            remote: self.remote,
            trace: self.trace_ids(),
            ..EventFacts::default()
        }
    }

    /// Returns the tables of the call's revision or dialect.
    pub(crate) fn wire(&self) -> &'static Wire {
        Wire::spelled(self.revision, self.dialect)
    }

    /// Returns `true` if the call belongs to a session, in which the client's identity is constant.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn has_session(&self) -> bool {
        let is_alone = self.http.as_ref().is_some_and(|http| http.session_id.is_none());
        !is_alone && self.wire().client_requests.contains(&Method::Initialize)
    }

    /// Returns whether the client may have declared a capability to answer questions.
    pub(crate) fn can_be_asked(&self) -> bool {
        let can_answer = |declared: &Raw| {
            ["elicitation", "sampling", "roots"].iter().any(|name| declared.get().contains(name))
        };
        // Without a session nothing is known, and the refusal of a question says so.
        self.client.capabilities.as_ref().is_none_or(can_answer)
    }

    /// Errors if these questions can't be put to the client together. If one can't be asked, none is.
    pub(crate) fn may_ask(&self, questions: &[Question]) -> Result<(), Fault> {
        asking::check_all(questions, self.client.capabilities.as_ref(), self.wire())
    }

    /// Returns the revision's date or the dialect's name.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn spoken(&self) -> &'static str {
        self.wire().name()
    }
}

/// The properties of the HTTP request that contains a call.
#[derive(Debug, Default)]
pub struct HttpFacts {
    pub headers: HeaderMap,
    /// The id of a session opened by `initialize`.
    pub session_id: Option<Arc<str>>,
    /// The address that the request came from, if known.
    pub remote: Option<IpAddr>,
    /// The principal that the shell authenticated.
    pub principal: Option<Arc<Principal>>,
    /// The trace context that was active in the host, such as that of a web framework's span.
    pub ambient: Option<Box<TraceContext>>,
}

/// The trace context of a call.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CallTrace {
    /// The context of which the call's span is a child: that of `_meta`; else the one that is active in the host; else that of
    /// the HTTP headers.
    pub parent: TraceContext,
    /// The span that was active in the host, if it is not the parent.
    pub link: Option<String>,
}

impl HttpFacts {
    /// Returns the ids of the trace and of the span that caused the request, if a call in it does not say.
    pub(crate) fn trace_ids(&self) -> Option<TraceIds> {
        let ambient = self.ambient.as_deref().and_then(TraceContext::ids);
        ambient.or_else(|| TraceContext::from_headers(&self.headers).ids())
    }

    /// Returns the facts of the request as one of the session with this id.
    pub(crate) fn in_session(&self, id: Arc<str>) -> Self {
        Self {
            headers: self.headers.clone(),
            session_id: Some(id),
            remote: self.remote,
            principal: self.principal.clone(),
            ambient: self.ambient.clone(),
        }
    }

    /// Returns the client that the request is counted for, if it is known.
    pub(crate) fn client_key(&self) -> Option<ClientKey> {
        ClientKey::new(self.principal.as_deref(), self.remote)
    }
}

/// The identity that the client declared.
#[derive(Debug, Default)]
pub struct ClientIdentity {
    /// The client's `Implementation`, as JSON.
    pub info: Option<Raw>,
    pub capabilities: Option<Raw>,
    has_values: AtomicBool,
}

impl ClientIdentity {
    pub fn new(info: Option<Raw>, capabilities: Option<Raw>) -> Self {
        Self { info, capabilities, has_values: AtomicBool::new(false) }
    }

    /// Returns the name that the client gives itself.
    pub(crate) fn name(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named: Named = serde_json::from_str(self.info.as_ref()?.get()).ok()?;
        Some(named.name).filter(|name| !name.is_empty())
    }

    /// Records that handlers store values for this client's session, which therefore stays in memory.
    pub fn keep_values(&self) {
        self.has_values.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_values(&self) -> bool {
        self.has_values.load(Ordering::Relaxed)
    }
}

/// A progress report of a handler.
#[derive(Clone, Debug)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The lists that can change.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ListKind {
    Tools,
    Resources,
    Prompts,
}

impl ListKind {
    /// Returns the name used in the API.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}
