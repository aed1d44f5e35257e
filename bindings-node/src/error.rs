//! The conversion of errors of the core into JavaScript errors.

use gudgeon::error::{Error, ErrorKind};
use napi::Status;

/// A misuse of the library.
pub(crate) fn misuse(error: Error) -> napi::Error {
    let message = match &error.hint {
        Some(hint) => format!("{}: {hint}", error.message),
        None => error.into_details().message,
    };
    napi::Error::new(Status::InvalidArg, message)
}

/// Any error. Only misuse is the caller's mistake; other errors come from the operating system.
pub(crate) fn failure(error: Error) -> napi::Error {
    match error.kind {
        ErrorKind::Misuse => misuse(error),
        _ => napi::Error::from_reason(misuse(error).reason),
    }
}

/// An error of the operating system.
pub(crate) fn io(what: &str, error: std::io::Error) -> napi::Error {
    napi::Error::new(Status::GenericFailure, format!("{what}: {error}"))
}
