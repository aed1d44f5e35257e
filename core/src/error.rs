//! Error types: [`Error`] for callers of this library, [`Fault`] for a request that failed, before it has an error
//! code.

use std::{fmt, sync::OnceLock};

use serde_json::value::RawValue;

/// The failure of an operation of this library: one sentence that says what is wrong, and a hint at how to fix it.
#[derive(Debug)]
pub struct Error {
    pub kind: ErrorKind,
    /// One sentence: the place and what is wrong there.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The URL or command of the server.
    pub target: Option<String>,
    /// The operation that failed: "connect", "negotiate", "call", …
    pub phase: Option<&'static str>,
    /// The JSON-RPC error code, if the peer sent one.
    pub code: Option<i64>,
    /// The JSON-RPC error's `data`, if the peer sent any.
    pub data: Option<Box<RawValue>>,
    /// The status of the HTTP response that caused the error.
    pub http_status: Option<u16>,
    /// The `WWW-Authenticate` header of that response: the credentials that the server asks for.
    pub www_authenticate: Option<String>,
    /// The exit status of the server's process, if it exited; a signal is a negative number.
    pub exit_status: Option<i32>,
    /// The last lines that the server's process wrote to its standard error.
    pub stderr: Option<String>,
    /// The error that caused this one.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The cause of an [`Error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server could not be reached or started.
    Connect,
    /// The connection broke while it was in use.
    Lost,
    /// No answer arrived within the time limit.
    Timeout,
    /// Credentials are missing or were rejected.
    Auth,
    /// The peer answered with a JSON-RPC error.
    Protocol,
    /// The peer does not support the operation.
    Unsupported,
    /// A tool reported an error.
    Tool,
    /// The resource does not exist.
    NotFound,
    /// The user declined a question.
    Declined,
    /// The call, or a question, was cancelled.
    Cancelled,
    /// The caller used this library wrongly.
    Misuse,
}

impl ErrorKind {
    /// Returns the kind's name in JSON and in the other languages, in camelCase.
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
    /// Creates an error without hint, target or cause.
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
            www_authenticate: None,
            exit_status: None,
            stderr: None,
            source: None,
        }
    }

    /// Creates an error of kind [`Misuse`](ErrorKind::Misuse); the message says what is wrong and how to fix it.
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    /// Sets the hint at how to fix the error.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint that an option, given in snake case, sets the limit that was reached.
    #[must_use]
    pub fn limited_by(self, option: &str) -> Self {
        self.with_hint(format!("{} sets the limit", option_name(option)))
    }

    /// Sets the URL or command of the server.
    #[must_use]
    pub fn with_target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Sets the operation that failed, such as "connect".
    #[must_use]
    pub fn in_phase(mut self, phase: &'static str) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Sets the error that caused this one.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// The language whose names for options errors use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Language {
    /// Rust and Python: snake case.
    #[default]
    Rust,
    /// Camel case, and `Ms` behind durations.
    TypeScript,
}

/// Options that are durations: TypeScript's names for them end in `Ms`.
const DURATIONS: [&str; 9] = [
    "header_timeout",
    "idle_timeout",
    "keep_alive",
    "max_timeout",
    "park_ttl",
    "session_idle",
    "shutdown_grace",
    "state_ttl",
    "timeout",
];

/// The language of this build: the core is linked into each binding by itself.
static LANGUAGE: OnceLock<Language> = OnceLock::new();

/// Returns the name of an option, given in snake case, in the language of this build.
pub fn option_name(name: &str) -> String {
    LANGUAGE.get().copied().unwrap_or_default().option(name)
}

impl Language {
    /// Sets the language of this build; only the first call has an effect. Default: Rust.
    pub fn set(self) {
        let _ = LANGUAGE.set(self);
    }

    /// Returns the name of an option, given in snake case, in this language.
    pub fn option(self, name: &str) -> String {
        if self != Self::TypeScript {
            return name.to_owned();
        }
        let mut words = name.split('_');
        let mut out = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(word.len().min(1));
            out.push_str(&first.to_ascii_uppercase());
            out.push_str(rest);
        }
        if DURATIONS.contains(&name) {
            out.push_str("Ms");
        }
        out
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

/// The failure of a request, before a revision's table maps it to an error code.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub data: Option<Box<RawValue>>,
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
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: None }
    }

    /// Creates a fault of kind [`InvalidRequest`](FaultKind::InvalidRequest).
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidRequest, message)
    }

    /// Creates a fault of kind [`InvalidParams`](FaultKind::InvalidParams).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(FaultKind::InvalidParams, message)
    }

    /// Creates a fault of kind [`UnknownMethod`](FaultKind::UnknownMethod) for the method `name`.
    pub fn unknown_method(name: &str) -> Self {
        Self::new(FaultKind::UnknownMethod, format!("method not found: {name}"))
    }

    /// Sets the data of the JSON-RPC error.
    #[must_use]
    pub fn with_data(mut self, data: Option<Box<RawValue>>) -> Self {
        self.data = data;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_names_of_the_language() {
        for (name, typescript) in [
            ("max_body", "maxBody"),
            ("park_ttl", "parkTtlMs"),
            ("timeout", "timeoutMs"),
            ("cors", "cors"),
        ] {
            assert_eq!(Language::TypeScript.option(name), typescript);
            assert_eq!(Language::Rust.option(name), name);
        }
        assert_eq!(option_name("max_body"), "max_body");
    }
}
