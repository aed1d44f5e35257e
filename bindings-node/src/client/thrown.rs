//! Errors for the values that middleware threw, which the core passes on to the caller.

use std::fmt;

use gudgeon::{
    client::describe,
    error::{Error, ErrorKind},
};

/// The number under which JavaScript keeps the value that was thrown.
#[derive(Debug)]
struct Thrown(u32);

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {} of middleware", self.0)
    }
}

impl std::error::Error for Thrown {}

/// Returns the error for a value that middleware threw; `message` describes it.
pub(super) fn middleware_failed(number: u32, message: &str) -> Error {
    let message = format!("the middleware failed: {message}");
    Error::new(ErrorKind::Misuse, message)
        .with(|details| details.source = Some(Box::new(Thrown(number))))
}

/// Returns an error as JSON; `{"thrown": number}` for a value that middleware threw.
pub(super) fn error_json(error: &Error) -> String {
    match error.source.as_deref().and_then(|source| source.downcast_ref::<Thrown>()) {
        Some(Thrown(number)) => format!(r#"{{"thrown":{number}}}"#),
        None => describe(error, &error.message),
    }
}
