//! JSON texts.

use gudgeon::protocol::valid_json::contains;
use pyo3::prelude::*;

/// Returns whether a JSON text contains `null`. Python's `in` takes many times as long for large texts.
#[pyfunction]
pub(crate) fn has_null(text: &[u8]) -> bool {
    contains(text, "null")
}
