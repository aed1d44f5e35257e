//! Errors of the core as JSON, for the exceptions of `gudgeon.errors`.

use std::fmt;

use gudgeon::{
    client::describe,
    error::{Error, ErrorKind},
};
use pyo3::prelude::*;

/// The exception of a middleware, on its way through the core to the caller.
#[derive(Debug)]
struct Raised(PyErr);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

/// Returns the error for an exception of a middleware.
pub(crate) fn middleware_failed(exception: &Bound<'_, PyAny>) -> Error {
    let exception = PyErr::from_value(exception.clone());
    let message = format!("the middleware failed: {exception}");
    Error::new(ErrorKind::Misuse, message)
        .with(|details| details.source = Some(Box::new(Raised(exception))))
}

/// Returns the exception of a middleware that an error stands for.
pub(crate) fn raised<'py>(py: Python<'py>, error: &Error) -> Option<Bound<'py, PyAny>> {
    let source = error.source.as_deref()?.downcast_ref::<Raised>()?;
    Some(source.0.value(py).clone().into_any())
}

pub(crate) fn error_json(error: &Error) -> String {
    describe(error, bare_message(error))
}

/// The Python exceptions add the target themselves.
fn bare_message(error: &Error) -> &str {
    let message = error.message.as_str();
    let target = error.target.as_deref();
    let rest = target.and_then(|target| message.strip_prefix(target)?.strip_prefix(": "));
    rest.unwrap_or(message)
}
