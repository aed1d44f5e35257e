//! The reason for which a request failed, before a revision gives it a code.

use serde_json::value::RawValue;

/// The failure of a request, before a revision's table maps it to an error code.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub data: Option<Box<RawValue>>,
    /// The component that the request is about, for logs.
    pub component: Option<Box<ComponentName>>,
    /// The name of the failure that the log and the caller have, if the handler failed.
    pub reference: Option<Box<str>>,
}

/// The kind and name of a component, for logs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ComponentName {
    /// `tool`, `prompt` or `resource`.
    pub kind: &'static str,
    /// The name, or a resource's URI.
    pub name: String,
    /// `false` if the server does not have it.
    pub exists: bool,
}

/// The cause of a [`Fault`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FaultKind {
    /// The frame is not JSON.
    Unreadable,
    /// The frame is JSON but not a JSON-RPC message, or the message is not allowed at this time.
    InvalidRequest,
    /// The message exceeds the size limit and was discarded.
    TooLarge,
    /// A request arrived before `initialize`.
    NotInitialized,
    /// The session expired after being idle.
    SessionExpired,
    UnknownMethod,
    /// The params have the wrong shape, or name an unknown prompt or an invalid cursor.
    InvalidParams,
    UnknownTool,
    /// The tool's arguments do not match its input schema.
    InvalidArguments,
    /// The resource does not exist; `data` holds its URI.
    ResourceNotFound,
    /// The server does not speak the requested revision; `data` holds the supported and the requested revisions.
    UnsupportedRevision,
    /// An HTTP header is missing, malformed, or differs from the body.
    HeaderMismatch,
    /// The client did not declare a required capability; `data` holds the missing capabilities.
    MissingCapability,
    /// The caller's token lacks scopes that the component needs; `data` holds them.
    InsufficientScope,
    /// The tool's handler reported an error that the model can correct. `data` becomes the result's `_meta`.
    Tool,
    /// The handler failed for a reason the caller can't fix: an exception, a timeout, an invalid result.
    Handler,
    /// The handler exceeded its time limit.
    TimedOut,
    /// The user declined the handler's question; the message is the question.
    Declined,
    /// The handler returned this JSON-RPC error code.
    Protocol(i64),
    /// A bug in this library.
    Internal,
}

impl Fault {
    /// Creates a fault without data.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: None, component: None, reference: None }
    }

    /// Creates a fault of kind [`InvalidRequest`](FaultKind::InvalidRequest).
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidRequest, message)
    }

    /// Creates a fault of kind [`InvalidParams`](FaultKind::InvalidParams).
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidParams, message)
    }

    /// Creates a fault of kind [`UnknownMethod`](FaultKind::UnknownMethod) for the method `name`.
    pub(crate) fn unknown_method(name: &str) -> Self {
        Self::new(FaultKind::UnknownMethod, format!("method not found: {name}"))
    }

    /// Sets the component that the request is about.
    #[must_use]
    pub(crate) fn about(mut self, kind: &'static str, name: &str) -> Self {
        self.component.get_or_insert_with(|| Box::new(ComponentName::new(kind, name)));
        self
    }

    /// Sets the component that the request names, and that the server does not have.
    #[must_use]
    pub(crate) fn about_unknown(mut self, kind: &'static str, name: &str) -> Self {
        self.component =
            Some(Box::new(ComponentName { exists: false, ..ComponentName::new(kind, name) }));
        self
    }

    /// Sets the data of the JSON-RPC error.
    #[must_use]
    pub(crate) fn with_data(mut self, data: Option<Box<RawValue>>) -> Self {
        self.data = data;
        self
    }
}

impl ComponentName {
    pub(crate) fn new(kind: &'static str, name: &str) -> Self {
        Self { kind, name: name.to_owned(), exists: true }
    }
}
