//! The names of components of servers that are mounted into others.

use gudgeon::router;
use pyo3::prelude::*;

use crate::error::raise;

/// Returns the key of a component of this kind in the server that its server is mounted into.
#[pyfunction]
pub(crate) fn mounted_key(kind: &str, prefix: &str, key: &str) -> String {
    router::mounted_key(kind, prefix, key)
}

/// Raises `ValueError` for a prefix that no name can begin with.
#[pyfunction]
pub(crate) fn check_prefix(prefix: &str) -> PyResult<()> {
    router::check_prefix(prefix).map_err(|error| raise(&error))
}
