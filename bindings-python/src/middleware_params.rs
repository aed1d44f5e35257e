//! Params of handlers as middleware sees and changes them.

use gudgeon::{error::Error, router::HandlerKind};
use pyo3::prelude::*;

use crate::error::raise;

/// Returns the params of a request with this input of its handler; both are JSON. `key` is the name, URI or template
/// under which the server has the handler, and `argument` that of a completion.
#[pyfunction]
pub(crate) fn middleware_params(
    kind: &str,
    key: &str,
    argument: &str,
    input: &[u8],
) -> PyResult<String> {
    let kind: HandlerKind = kind.parse().map_err(|it| raise(&it))?;
    kind.params(key, argument, text(input)?).map_err(|it| raise(&it))
}

/// Returns the handler's input for params that middleware changed; both are JSON. None if it stays what it was.
#[pyfunction]
pub(crate) fn middleware_input(kind: &str, params: &[u8]) -> PyResult<Option<String>> {
    let kind: HandlerKind = kind.parse().map_err(|it| raise(&it))?;
    kind.input(text(params)?).map_err(|it| raise(&it))
}

fn text(json: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(json).map_err(|it| raise(&Error::misuse(it.to_string())))
}
