//! Forked processes: our threads do not exist in them, and streams belong to the parent.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::{calling, hooks};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Handles a fork, in the child process.
#[pyfunction]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    gudgeon::bindings::logs::forked();
}

/// Returns a number that differs between this process and its ancestors.
pub(crate) fn generation() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Like `leave`, for a task: tasks running at the fork are cancelled when the child leaves its event loop.
pub(crate) fn leave_unless_cancelled(py: Python<'_>, result: &PyResult<Bound<'_, PyAny>>) {
    let is_cancelled = result
        .as_ref()
        .is_err_and(|error| error.get_type(py).name().is_ok_and(|name| name == "CancelledError"));
    if !is_cancelled {
        leave(py, result);
    }
}

/// Ends a forked process when its handler ends, because only the parent can answer.
pub(crate) fn leave(py: Python<'_>, result: &PyResult<Bound<'_, PyAny>>) {
    let error = result.as_ref().err().map(|error| error.clone_ref(py).into_value(py));
    let left =
        hooks::hooks(py).and_then(|hooks| calling::call(hooks.leave_fork.bind(py), (error,)));
    if let Err(error) = left {
        error.write_unraisable(py, None);
    }
    std::process::abort();
}
