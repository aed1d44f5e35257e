//! Groups of clients, which the core decides about.

use gudgeon::{
    bindings::{
        client_group::answer,
        group_targets::{Targets, read, read_file},
    },
    error::Language,
};
use pyo3::{IntoPyObjectExt as _, prelude::*, types::PyBytes};

use crate::options::{self, raised};

/// Answers a question about a group of clients, both JSON.
#[pyfunction]
pub(crate) fn answer_of_group<'py>(py: Python<'py>, question: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, answer(question).as_bytes())
}

/// Returns the mapping of names to targets in what a group was given, or the path of the file that holds it.
#[pyfunction]
pub(crate) fn group_targets<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match read(Language::Python, options::Python(given.clone())) {
        Ok(Targets::File(path)) => path.into_bound_py_any(given.py()),
        Ok(Targets::Named(targets)) => Ok(targets.0),
        Err(problem) => Err(raised(&problem, || repr(given))),
    }
}

/// Returns the targets by name in the text of a JSON file, as JSON.
#[pyfunction]
pub(crate) fn group_file(path: &str, text: &[u8]) -> PyResult<String> {
    read_file(Language::Python, path, text).map_err(|it| raised(&it, String::new))
}

fn repr(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "a value".to_owned(), |it| it.to_string())
}
