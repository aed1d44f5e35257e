//! Failures of a command and their exit codes.

use std::{fmt, io, process::ExitCode};

use gudgeon::error::{Error, ErrorKind};

use crate::background::failure_in;

/// Why a command failed: what is printed to standard error, and the exit code.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    message: String,
    /// How to fix it.
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

impl FailureKind {
    const ALL: [Self; 11] = [
        Self::Reported,
        Self::Usage,
        Self::Connect,
        Self::Timeout,
        Self::Auth,
        Self::Protocol,
        Self::Unsupported,
        Self::NotFound,
        Self::Declined,
        Self::File,
        Self::Cancelled,
    ];

    /// Returns the kind with this exit code.
    pub fn of_exit_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == code)
    }
}

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

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Prints the failure to standard error and returns its exit code.
    pub fn report(&self) -> ExitCode {
        // Without a standard error nothing can be told.
        let _ = io::Write::write_fmt(&mut io::stderr().lock(), format_args!("{self}\n"));
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Some(failure) = error.data.as_deref().and_then(failure_in) {
            return failure;
        }
        let kind = match error.kind {
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
        match &error.target {
            // The error's own hint is for programs.
            Some(url) if kind == FailureKind::Auth && error.http_status == Some(401) => {
                Self::new(kind, error.message).with_hint(format!("run `gudgeon auth login {url}`"))
            }
            _ => Self::new(kind, error.to_string()),
        }
    }
}

/// A failed write to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(FailureKind::File, error.to_string())
    }
}
