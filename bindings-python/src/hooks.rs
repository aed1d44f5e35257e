//! Functions that the Python half of the package provides.

use pyo3::{prelude::*, sync::PyOnceLock};

use crate::calling;

/// Functions of `gudgeon._call.entry` and `gudgeon._call.log`.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// `enter(invoke, raw, call)`: runs a `def` handler inside its own context.
    pub(crate) enter: Py<PyAny>,
    /// `answer(invoke, raw, call, slot)`: the coroutine that runs an `async def` handler.
    pub(crate) answer: Py<PyAny>,
    /// `describe(error, expose)` → JSON.
    pub(crate) describe: Py<PyAny>,
    /// `unknown_reply_type(reply)` → the exception for a reply of an unknown type.
    pub(crate) unknown_reply_type: Py<PyAny>,
    /// `report(text, error=None)`: logs a line, and the exception that it is about.
    pub(crate) report: Py<PyAny>,
    /// `detail(text)`: logs a line at debug level.
    pub(crate) detail: Py<PyAny>,
    /// `leave_fork(error)`: ends the process with the status that matches the handler's outcome.
    pub(crate) leave_fork: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Imported when the first server is created.
pub(crate) fn hooks(py: Python<'_>) -> PyResult<&Hooks> {
    HOOKS.get_or_try_init(py, || {
        let entry = py.import("gudgeon._call.entry")?;
        let log = py.import("gudgeon._call.log")?;
        let get = |name: &str| entry.getattr(name).map(Bound::unbind);
        Ok(Hooks {
            enter: get("enter")?,
            answer: get("answer")?,
            describe: get("describe")?,
            unknown_reply_type: get("unknown_reply_type")?,
            report: log.getattr("report")?.unbind(),
            detail: log.getattr("detail")?.unbind(),
            leave_fork: get("leave_fork")?,
        })
    })
}

/// Logs details that callers do not receive.
pub(crate) fn report(py: Python<'_>, texts: &[String]) {
    call_hook(py, |hooks| &hooks.report, texts);
}

/// Logs an exception that callers do not receive; `text` says where it was raised.
pub(crate) fn report_exception(py: Python<'_>, text: &str, error: &Py<PyAny>) {
    if let Ok(hooks) = hooks(py)
        && let Err(problem) = calling::call(hooks.report.bind(py), (text, error))
    {
        problem.write_unraisable(py, None);
    }
}

/// Logs a line at debug level.
pub(crate) fn detail(py: Python<'_>, texts: &[String]) {
    call_hook(py, |hooks| &hooks.detail, texts);
}

fn call_hook(py: Python<'_>, hook: impl Fn(&Hooks) -> &Py<PyAny>, texts: &[String]) {
    for text in texts {
        if let Ok(hooks) = hooks(py)
            && let Err(error) = calling::call(hook(hooks).bind(py), (text,))
        {
            error.write_unraisable(py, None);
        }
    }
}
