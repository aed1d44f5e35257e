//! Params and results of handlers as middleware sees and changes them.

use gudgeon::{
    error::Error,
    router::{self, HandlerKind, Reply},
};
use pyo3::prelude::*;

use crate::{convert, error::raise};

/// Returns the params of a request with this input of its handler; both are JSON. `key` is the name, URI or template
/// under which the server has the handler, and `argument` that of a completion.
#[pyfunction]
pub(crate) fn middleware_params(
    kind: &str,
    key: &str,
    argument: &str,
    input: &[u8],
) -> PyResult<String> {
    let kind: HandlerKind = kind.parse().map_err(|error| raise(&error))?;
    kind.params(key, argument, text(input)?).map_err(|error| raise(&error))
}

/// Returns the handler's input for params that middleware changed; both are JSON. None if it stays what it was.
#[pyfunction]
pub(crate) fn middleware_input(kind: &str, params: &[u8]) -> PyResult<Option<String>> {
    let kind: HandlerKind = kind.parse().map_err(|error| raise(&error))?;
    kind.input(text(params)?).map_err(|error| raise(&error))
}

/// Returns the complete result of a handler's reply, as JSON. The contents of a resource have no URI.
#[pyfunction]
#[pyo3(signature = (kind, mime_type, reply))]
pub(crate) fn middleware_result(
    kind: &str,
    mime_type: Option<&str>,
    reply: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let kind: HandlerKind = kind.parse().map_err(|error| raise(&error))?;
    match convert::reply(reply)? {
        Reply::Result(result) => Ok(result),
        reply => kind.result("", mime_type, reply).map_err(|error| raise(&error)),
    }
}

/// Returns the error of middleware that changed the params of a request which runs no handler.
#[pyfunction]
pub(crate) fn params_changed(method: &str) -> String {
    router::params_changed(method)
}

/// Returns the error of middleware that returned nothing in place of a result.
#[pyfunction]
pub(crate) fn nothing_returned(method: &str) -> String {
    router::nothing_returned(method)
}

fn text(json: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(json).map_err(|error| raise(&Error::misuse(error.to_string())))
}
