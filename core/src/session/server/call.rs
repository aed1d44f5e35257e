//! What a request is to whoever answers it: itself, and its circumstances.

use std::sync::Arc;

use http::HeaderMap;

use crate::{
    error::Fault,
    protocol::{Dialect, Id, Method, Principal, Question, Raw, Request, Revision},
    session::{
        CallId,
        asking::{self, Answers},
    },
    wire::Wire,
};

/// A request to be answered.
#[derive(Debug)]
pub struct Call {
    pub request: Request,
    pub context: CallContext,
    /// The params, for a handler that answers in the core's place.
    pub raw_params: Option<Raw>,
}

/// The circumstances of a request, the same for every revision.
#[derive(Clone, Debug)]
pub struct CallContext {
    pub call: CallId,
    /// `None` for a notification.
    pub request_id: Option<Id>,
    /// With a dialect: the revision that comes nearest.
    pub revision: Revision,
    pub dialect: Option<Dialect>,
    /// The request's `_meta`, as it came.
    pub meta: Option<Raw>,
    pub client: Arc<ClientIdentity>,
    /// Bytes of what brought it.
    pub weight: usize,
    /// Whether anybody asked for progress.
    pub wants_progress: bool,
    /// What the client has answered already.
    pub answers: Answers,
    /// Who asks, where somebody has found out.
    pub principal: Option<Arc<Principal>>,
    /// The HTTP request that brought it.
    pub http: Option<Arc<HttpFacts>>,
    /// Whether arguments that HTTP headers mirror are to be compared with these.
    pub checks_headers: bool,
}

impl CallContext {
    /// Of a call of which no more is known yet.
    pub(super) fn new(
        call: CallId,
        wire: &'static Wire,
        client: Arc<ClientIdentity>,
        meta: Option<Raw>,
    ) -> Self {
        Self {
            call,
            request_id: None,
            revision: wire.revision,
            dialect: wire.dialect,
            meta,
            client,
            weight: 0,
            wants_progress: false,
            answers: Answers::default(),
            principal: None,
            http: None,
            checks_headers: false,
        }
    }

    /// How the call is spelled.
    pub fn wire(&self) -> &'static Wire {
        Wire::spelled(self.revision, self.dialect)
    }

    /// Whether it belongs to a session, which its client's identity then lives as long as.
    pub fn has_session(&self) -> bool {
        self.wire().client_requests.contains(&Method::Initialize)
    }

    /// Whether these questions can be put to the client together. Where one can't, none is to be asked.
    pub fn may_ask(&self, questions: &[Question]) -> Result<(), Fault> {
        asking::check_all(questions, self.client.capabilities.as_ref(), self.wire())
    }

    /// What the call is spoken in: a revision's date, or a dialect's name.
    pub fn spoken(&self) -> &'static str {
        self.wire().name()
    }
}

/// What is known of a call from the HTTP request that brought it.
#[derive(Debug, Default)]
pub struct HttpFacts {
    pub headers: HeaderMap,
    /// Of a session that began with `initialize`.
    pub session_id: Option<Arc<str>>,
    /// Whom the shell has let in.
    pub principal: Option<Arc<Principal>>,
}

/// Who asks, as far as it said so.
#[derive(Debug, Default)]
pub struct ClientIdentity {
    /// Its `Implementation`, as JSON.
    pub info: Option<Raw>,
    pub capabilities: Option<Raw>,
}

/// How far a handler got.
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
    /// As users name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}
