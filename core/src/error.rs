//! The errors of this library.

pub(crate) mod fault;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod given;
#[cfg(not(feature = "bindings"))]
pub(crate) mod given;
pub(crate) mod host_error;
mod option_name;

use std::{
    fmt, io,
    ops::{Deref, DerefMut},
};

use serde_json::value::RawValue;

#[doc(hidden)]
pub use self::fault::{ComponentName, Fault, FaultKind};
#[cfg(not(feature = "bindings"))]
pub(crate) use self::option_name::{Language, option_name};
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub use self::option_name::{Language, option_name};

use self::host_error::HostError;

/// The failure of an operation of this library: one sentence that says what is wrong, and a hint at how to fix it.
///
/// It has the fields of [`ErrorDetails`]. `Debug` prints the sentence as well, for `fn main() -> Result<(), gudgeon::Error>`;
/// `{:#?}` prints all fields.
///
/// ```
/// use gudgeon::{Error, error::ErrorKind};
///
/// let error = Error::new(ErrorKind::Connect, "the shelf can't be reached");
/// assert_eq!(error.kind, ErrorKind::Connect);
/// assert_eq!(format!("{error:?}"), "the shelf can't be reached");
/// ```
pub struct Error(Box<ErrorDetails>);

/// The fields of an [`Error`].
#[derive(Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ErrorDetails {
    pub kind: ErrorKind,
    /// One sentence: the place and what is wrong there.
    pub message: String,
    /// A way to fix it.
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

/// Makes the names of an enum's values, which `as_str` returns, its text.
macro_rules! impl_names {
    ($type:ty) => {
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use impl_names;

/// Implements `new` for options that users can't write as literals.
#[cfg(feature = "auth")]
macro_rules! impl_new {
    ($($type:ty),*) => {$(
        impl $type {
            /// Creates the default options and changes them.
            pub fn new(change: impl FnOnce(&mut Self)) -> Self {
                let mut options = Self::default();
                change(&mut options);
                options
            }
        }
    )*};
}
#[cfg(feature = "auth")]
pub(crate) use impl_new;

/// The cause of an [`Error`]. Its text is the name in JSON and in the other languages, in camelCase.
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
    pub(crate) fn as_str(self) -> &'static str {
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

impl_names!(ErrorKind);

impl Error {
    /// Creates an error without hint, target or cause.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails {
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
        }))
    }

    /// Copies the error for another caller. Of its source the copy has the text, or the number of the operating system's
    /// error.
    pub(crate) fn duplicate(&self) -> Self {
        let source = self.source.as_deref().map(|source| {
            if let Some(raised) = HostError::cause_of(source) {
                return raised.into();
            }
            match source.downcast_ref().and_then(io::Error::raw_os_error) {
                Some(number) => io::Error::from_raw_os_error(number).into(),
                None => source.to_string().into(),
            }
        });
        Self(Box::new(ErrorDetails {
            kind: self.kind,
            message: self.message.clone(),
            hint: self.hint.clone(),
            target: self.target.clone(),
            phase: self.phase,
            code: self.code,
            data: self.data.clone(),
            http_status: self.http_status,
            www_authenticate: self.www_authenticate.clone(),
            exit_status: self.exit_status,
            stderr: self.stderr.clone(),
            source,
        }))
    }

    /// Changes fields.
    #[doc(hidden)] // For the language bindings and the command.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ErrorDetails)) -> Self {
        change(&mut self.0);
        self
    }

    /// Returns the fields, to move values out of them.
    pub fn into_details(self) -> ErrorDetails {
        *self.0
    }

    /// Creates an error of kind [`Misuse`](ErrorKind::Misuse); the message says what is wrong and how to fix it.
    #[doc(hidden)] // For the language bindings.
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    /// Creates an error for an address that needs a Cargo feature of this crate.
    #[cfg(not(all(feature = "tls", feature = "websocket")))]
    pub(crate) fn without_feature(feature: &str, address: &impl fmt::Display) -> Self {
        Self::misuse(format!("{address} needs the feature {feature:?} of the crate gudgeon"))
            .with_hint(format!("add it in Cargo.toml: gudgeon = {{ features = [{feature:?}] }}"))
    }

    /// Sets the hint at how to fix the error.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the hint that an option, given in snake case, sets the limit that was reached.
    #[must_use]
    pub(crate) fn limited_by(self, option: &str) -> Self {
        self.with_hint(format!("{} sets the limit", option_name(option)))
    }

    /// Sets the URL or command of the server.
    #[must_use]
    pub(crate) fn with_target(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Sets the operation that failed, such as "connect".
    #[must_use]
    pub(crate) fn in_phase(mut self, phase: &'static str) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Sets the error that caused this one.
    #[must_use]
    pub(crate) fn caused_by(
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
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        match &self.stderr {
            Some(stderr) => write!(f, "; the end of its standard error:\n{stderr}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => self.0.fmt(f),
            false => fmt::Display::fmt(self, f),
        }
    }
}

impl Deref for Error {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorDetails {
        &mut self.0
    }
}

impl From<ErrorDetails> for Error {
    fn from(details: ErrorDetails) -> Self {
        Self(Box::new(details))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_and_prints_its_sentence() {
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
        let error = Error::new(ErrorKind::Timeout, "no answer").with_hint("wait longer");
        assert_eq!(format!("{error:?}"), "no answer (wait longer)");
        assert_eq!(error.to_string(), "no answer (wait longer)");
        assert!(format!("{error:#?}").contains("kind: Timeout"));
        assert_eq!(error.into_details().hint.as_deref(), Some("wait longer"));
    }
}
