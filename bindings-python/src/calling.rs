//! Calls into Python that may never return.
//!
//! Before Python 3.14, a thread that enters the interpreter during finalization is ended with `pthread_exit`, which
//! unwinds its stack. Unwinding through Rust frames would abort the process, so the thread sleeps forever instead, as
//! it does from 3.14 on.

use std::hint::black_box;

use pyo3::{
    ffi::PyObject,
    prelude::*,
    types::{PyString, PyTuple},
};

type Called =
    unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;

mod raw {
    use pyo3::ffi::PyObject;

    #[expect(unsafe_code, reason = "PyO3 declares it as a function that never unwinds")]
    unsafe extern "C-unwind" {
        pub(super) fn PyObject_Call(
            callable: *mut PyObject,
            args: *mut PyObject,
            kwargs: *mut PyObject,
        ) -> *mut PyObject;
    }
}

/// Puts the thread to sleep forever when it is unwound.
struct NeverUnwound;

impl Drop for NeverUnwound {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls the callable and returns its result.
pub(crate) fn call<'py>(
    callable: &Bound<'py, PyAny>,
    args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = callable.py();
    let args = args.into_pyobject(py).map_err(Into::into)?;
    // Hidden from the compiler, which assumes that the function never unwinds and would omit the guard.
    let python: Called = black_box(raw::PyObject_Call);
    let guard = NeverUnwound;
    // SAFETY: both are alive, and `args` is a tuple; what comes is a reference of our own, or null with an exception.
    #[expect(unsafe_code, reason = "see above")]
    let result = unsafe {
        let result = python(callable.as_ptr(), args.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, result)
    };
    std::mem::forget(guard);
    result
}

/// Calls a method and returns its result.
pub(crate) fn call_method<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    args: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error: Into<PyErr>>,
) -> PyResult<Bound<'py, PyAny>> {
    call(&object.getattr(name)?, args)
}
