//! The interpreter state of a thread.

use pyo3::ffi;

/// A thread's own interpreter state, kept for its whole life, so that entering the interpreter is cheap.
pub(crate) struct Pin {
    held: ffi::PyGILState_STATE,
    state: *mut ffi::PyThreadState,
}

impl Pin {
    #[expect(unsafe_code, reason = "PyO3 offers no thread state that outlives an attach")]
    pub(crate) fn new() -> Self {
        // SAFETY: the pair is undone in reverse order on this same thread, and threads are joined before the
        // interpreter is finalised.
        unsafe {
            let held = ffi::PyGILState_Ensure();
            Self { held, state: ffi::PyEval_SaveThread() }
        }
    }
}

impl Drop for Pin {
    #[expect(unsafe_code, reason = "see Pin::new")]
    fn drop(&mut self) {
        // SAFETY: see `new`.
        unsafe {
            ffi::PyEval_RestoreThread(self.state);
            ffi::PyGILState_Release(self.held);
        }
    }
}
