//! What can go wrong: [`Error`] for the callers of this library, [`Fault`] for the peer whose request died.

use std::fmt;

use serde_json::value::RawValue;

/// Why an operation of ours failed, flat and in one sentence, with what would mend it.
#[derive(Debug)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    /// What would mend it.
    pub hint: Option<String>,
    /// The URL or command.
    pub target: Option<String>,
    /// What was being done: "connect", "negotiate", "call", …
    pub phase: Option<&'static str>,
    /// The JSON-RPC code, where the peer sent one.
    pub code: Option<i64>,
    pub data: Option<Box<RawValue>>,
    /// The status of the HTTP reply that is to blame.
    pub http_status: Option<u16>,
    /// How the server's process ended, where it did; a signal's number below zero.
    pub exit_status: Option<i32>,
    /// The last lines that the server's process wrote to its standard error.
    pub stderr: Option<String>,
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Who must act.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server could not be reached or started.
    Connect,
    /// The connection broke while it was in use.
    Lost,
    /// No answer in time.
    Timeout,
    /// Credentials are missing or were refused.
    Auth,
    /// The peer answered with a JSON-RPC error.
    Protocol,
    /// The peer does not offer this.
    Unsupported,
    /// A tool ran and failed.
    Tool,
    /// No such resource.
    NotFound,
    /// The user declined a question.
    Declined,
    /// The call, or a question, was cancelled.
    Cancelled,
    /// The caller used this library wrongly.
    Misuse,
}

impl ErrorKind {
    /// As JSON and other languages call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Lost => "lost",
            Self::Timeout => "timeout",
            Self::Auth => "auth",
            Self::Protocol => "protocol",
            Self::Unsupported => "unsupported",
            Self::Tool => "tool",
            Self::NotFound => "notFound",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Misuse => "misuse",
        }
    }
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            target: None,
            phase: None,
            code: None,
            data: None,
            http_status: None,
            exit_status: None,
            stderr: None,
            source: None,
        }
    }

    /// A mistake in how the library is used: what is wrong, and the mend.
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn with_target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    #[must_use]
    pub fn in_phase(mut self, phase: &'static str) -> Self {
        self.phase = Some(phase);
        self
    }

    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|it| &**it as _)
    }
}

/// What a request died of, before any revision gave it a code.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub data: Option<Box<RawValue>>,
}

/// The reasons why a request can die.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FaultKind {
    /// Not JSON.
    Unreadable,
    /// JSON, but no message, or not allowed now.
    InvalidRequest,
    /// A message over the limit, which was thrown away.
    TooLarge,
    /// A request before `initialize`.
    NotInitialized,
    /// The session was idle for too long.
    SessionExpired,
    UnknownMethod,
    /// Params of the wrong shape, an unknown prompt, a bad cursor.
    InvalidParams,
    UnknownTool,
    /// A tool's arguments fail its input schema.
    InvalidArguments,
    /// `data` holds the URI.
    ResourceNotFound,
    /// `data` holds what is supported and what was requested.
    UnsupportedRevision,
    /// An HTTP header is missing, malformed, or does not say what the body says.
    HeaderMismatch,
    /// `data` holds the capabilities that the client did not declare.
    MissingCapability,
    /// The handler says so: the model can mend it. `data` becomes the result's `_meta`.
    Tool,
    /// The handler failed in a way that is the server's, not the caller's: an exception, a timeout, a bad result.
    Handler,
    /// The handler ran longer than it may.
    TimedOut,
    /// The user said no to what the handler asked; the message is the question.
    Declined,
    /// The handler chose a JSON-RPC error itself.
    Protocol(i64),
    /// A bug of ours.
    Internal,
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: None }
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidRequest, message)
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidParams, message)
    }

    pub fn unknown_method(name: &str) -> Self {
        Self::new(FaultKind::UnknownMethod, format!("method not found: {name}"))
    }

    #[must_use]
    pub fn with_data(mut self, data: Option<Box<RawValue>>) -> Self {
        self.data = data;
        self
    }
}
