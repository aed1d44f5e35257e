//! Failures of a command and their exit codes.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{ElicitRequestParams, code},
};

use crate::escape;

use crate::background::failure_in;

/// The failure of a command: the text for standard error, and the exit code.
#[derive(Clone, Debug)]
pub struct Failure {
    kind: FailureKind,
    message: String,
    /// The way to fix it.
    hint: Option<String>,
}

/// The kind of a failure. Its number is the exit code, which scripts rely on: `docs/command-line.md` lists them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum FailureKind {
    /// The tool reported an error, or a check found one.
    Reported = 1,
    /// The arguments of the command are wrong.
    Usage = 2,
    /// The server could not be reached or started, or the connection broke.
    Connect = 3,
    Timeout = 4,
    /// Credentials are missing or were rejected.
    Auth = 5,
    /// The server answered with a JSON-RPC error.
    Protocol = 6,
    /// The server does not support the operation.
    Unsupported = 7,
    NotFound = 8,
    /// A question was declined.
    Declined = 9,
    /// A file could not be read or written.
    File = 10,
    Cancelled = 130,
}

/// The exit code of a call that asks a question, which `gudgeon answer` answers.
pub const ASKED: u8 = 20;

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Returns the failure of wrong arguments.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the same failure with another exit code.
    #[must_use]
    pub fn with_kind(self, kind: FailureKind) -> Self {
        Self { kind, ..self }
    }

    /// Returns the message, without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Prints the failure to standard error and returns its exit code.
    pub fn report(&self) -> ExitCode {
        let mut stderr = io::stderr().lock();
        let text = self.to_string();
        let text = if stderr.is_terminal() { escape::lines(&text) } else { text.into() };
        // Without a standard error there is no place for the message.
        let _ = writeln!(stderr, "{text}");
        ExitCode::from(self.kind as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The message is without the server's standard error, which this program has passed on.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Some(failure) = error.data.as_deref().and_then(failure_in) {
            return failure;
        }
        let is_connecting = matches!(error.phase, Some("connect" | "negotiate"));
        let kind = match error.kind {
            // The server is none, or speaks no revision that this program speaks.
            ErrorKind::Protocol if is_connecting => FailureKind::Connect,
            ErrorKind::Tool => FailureKind::Reported,
            ErrorKind::Misuse => FailureKind::Usage,
            ErrorKind::Connect | ErrorKind::Lost => FailureKind::Connect,
            ErrorKind::Timeout => FailureKind::Timeout,
            ErrorKind::Auth => FailureKind::Auth,
            ErrorKind::Unsupported => FailureKind::Unsupported,
            ErrorKind::NotFound => FailureKind::NotFound,
            ErrorKind::Declined => FailureKind::Declined,
            ErrorKind::Cancelled => FailureKind::Cancelled,
            _ => FailureKind::Protocol,
        };
        if kind == FailureKind::Auth
            && error.http_status == Some(401)
            && let Some(url) = &error.target
        {
            // The error's own hint is for programs.
            let hint = format!("run `gudgeon auth login {url}`");
            return Self::new(kind, error.into_details().message).with_hint(hint);
        }
        let hint = hint(&error);
        let error = error.into_details();
        let failure = Self::new(kind, error.message);
        match error.hint.map(in_options).into_iter().chain(hint).collect::<Vec<_>>() {
            hints if hints.is_empty() => failure,
            hints => failure.with_hint(hints.join("; ")),
        }
    }
}

/// Names an option of the library as that of this program.
fn in_options(hint: String) -> String {
    match hint.strip_suffix(" sets the limit") {
        Some(option @ ("timeout" | "max_timeout" | "connect_timeout")) => {
            format!("--{} sets the limit", option.replace('_', "-"))
        }
        _ => hint,
    }
}

/// Returns the option of this program that an error calls for, or the pages to visit.
fn hint(error: &Error) -> Option<String> {
    let data = error.data.as_ref().map_or("", |data| data.get());
    match error.code {
        Some(code::MISSING_REQUIRED_CLIENT_CAPABILITY) if data.contains("\"sampling\"") => {
            Some("--sample COMMAND answers the server's requests to a model".into())
        }
        Some(code::MISSING_REQUIRED_CLIENT_CAPABILITY) if data.contains("\"roots\"") => {
            Some("--root FOLDER tells the server the folders that it may use".into())
        }
        Some(code::URL_ELICITATION_REQUIRED) => {
            let pages = error.elicitations().into_iter().filter_map(|question| match question {
                ElicitRequestParams::Url(page) => Some(page.url),
                ElicitRequestParams::Form(_) => None,
            });
            Some(format!("visit {}, then repeat the command", pages.collect::<Vec<_>>().join(", ")))
        }
        _ => None,
    }
}

/// A failed write to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(FailureKind::File, error.to_string())
    }
}
