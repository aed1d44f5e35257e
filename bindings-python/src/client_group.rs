//! Groups of clients, which the core decides about.

use gudgeon::bindings::client_group::answer;
use pyo3::{prelude::*, types::PyBytes};

/// Answers a question about a group of clients, both JSON.
#[pyfunction]
pub(crate) fn answer_of_group<'py>(py: Python<'py>, question: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, answer(question).as_bytes())
}
