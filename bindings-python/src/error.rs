//! The one place where the core's errors become Python's.

use gudgeon::error::{Error, ErrorKind};
use pyo3::{
    PyErr,
    exceptions::{PyRuntimeError, PyValueError},
};

/// Misuse is a `ValueError`: the caller gave something that can't be used.
pub(crate) fn raise(error: &Error) -> PyErr {
    match error.kind {
        ErrorKind::Misuse => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
