//! Errors of the core as JavaScript's.

use gudgeon::error::Error;
use napi::Status;

/// A mistake in how the library is used.
pub(crate) fn misuse(error: Error) -> napi::Error {
    let message = match error.hint {
        Some(hint) => format!("{}: {hint}", error.message),
        None => error.message,
    };
    napi::Error::new(Status::InvalidArg, message)
}

/// What the operating system refused.
pub(crate) fn io(what: &str, error: std::io::Error) -> napi::Error {
    napi::Error::new(Status::GenericFailure, format!("{what}: {error}"))
}
