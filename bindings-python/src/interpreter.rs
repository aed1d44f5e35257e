//! The check for the main interpreter.

use pyo3::{exceptions::PyImportError, ffi, prelude::*};

/// Errors in a sub-interpreter, because threads and kept Python objects belong to the whole process.
pub(crate) fn check_is_main() -> PyResult<()> {
    // SAFETY: a thread that makes a result of Python's is attached to the current interpreter.
    #[expect(unsafe_code, reason = "PyO3 has no other way to tell interpreters apart")]
    let interpreter = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if interpreter == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "gudgeon works in the main interpreter only, and this is a sub-interpreter: use it in the main one \
         (mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
    ))
}
