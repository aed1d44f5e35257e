//! The conversion of errors of the core into Python exceptions.

use gudgeon::error::{Error, ErrorKind};
use pyo3::{
    PyErr,
    exceptions::{PyRuntimeError, PyValueError},
};

/// Misuse becomes `ValueError`.
pub(crate) fn raise(error: &Error) -> PyErr {
    match error.kind {
        ErrorKind::Misuse => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}
