//! Functions that the Python half of the package provides.

use gudgeon::log_events::LogEvent;
use pyo3::{prelude::*, sync::PyOnceLock};

use crate::{calling, logs};

/// Functions of `gudgeon._call.entry` and `gudgeon._call.log`, and methods of `contextvars.Context`.
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
    /// `report(text, error=None, fields=None)`: logs an error, and the exception that it is about.
    pub(crate) report: Py<PyAny>,
    /// `session_json(values)` → JSON.
    pub(crate) session_json: Py<PyAny>,
    /// `leave_fork(error)`: ends the process with the status that matches the handler's outcome.
    pub(crate) leave_fork: Py<PyAny>,
    /// `copy_context(context)` → a copy of it. It and the next one are not looked up in the context, which makes an object for
    /// each call.
    pub(crate) copy_context: Py<PyAny>,
    /// `run_in_context(context, function, *args)`: calls a function in a context.
    pub(crate) run_in_context: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// Imported when the first server is created.
pub(crate) fn hooks(py: Python<'_>) -> PyResult<&Hooks> {
    HOOKS.get_or_try_init(py, || {
        let entry = py.import("gudgeon._call.entry")?;
        let log = py.import("gudgeon._call.log")?;
        let context = py.import("contextvars")?.getattr("Context")?;
        let get = |name: &str| entry.getattr(name).map(Bound::unbind);
        Ok(Hooks {
            enter: get("enter")?,
            answer: get("answer")?,
            describe: get("describe")?,
            unknown_reply_type: get("unknown_reply_type")?,
            report: log.getattr("report")?.unbind(),
            session_json: get("session_json")?,
            leave_fork: get("leave_fork")?,
            copy_context: context.getattr("copy")?.unbind(),
            run_in_context: context.getattr("run")?.unbind(),
        })
    })
}

/// Logs an event whose details callers do not receive.
pub(crate) fn report(py: Python<'_>, event: &LogEvent) {
    call_report(py, event.detail(), None, event);
}

/// Logs an exception that callers do not receive; `text` says where it was raised.
pub(crate) fn report_exception(py: Python<'_>, text: &str, error: &Py<PyAny>) {
    report_raised(py, text, error, &LogEvent::problem(text));
}

/// Logs the exception that an event is about.
pub(crate) fn report_raised(py: Python<'_>, text: &str, error: &Py<PyAny>, event: &LogEvent) {
    call_report(py, text, Some(error), event);
}

fn call_report(py: Python<'_>, text: &str, error: Option<&Py<PyAny>>, event: &LogEvent) {
    let call = || {
        let fields = logs::fields_of(py, &event.fields())?;
        calling::call(hooks(py)?.report.bind(py), (text, error, fields))
    };
    if let Err::<_, PyErr>(problem) = call() {
        problem.write_unraisable(py, None);
    }
}
