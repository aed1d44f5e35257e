//! Log events of the core, passed to Python's `logging`.

use std::borrow::Cow;

use gudgeon::bindings::logs::{self, Level, LogEvent};
use pyo3::{prelude::*, sync::PyOnceLock, types::PyDict};
use serde_json::{Map, Value};

use crate::calling;

/// The function `gudgeon._call.log.log_event`. It is imported with the package: if the thread imported it, a process
/// forked meanwhile would inherit the locked import lock of the module, and would wait for it for ever.
static LOG_EVENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Queues the events of the core from now on. The thread that passes them on is started by the first one.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    LOG_EVENT.import(py, "gudgeon._call.log", "log_event")?;
    logs::install(start_thread);
    Ok(())
}

/// Passes the events that wait to `logging`; called when the interpreter exits.
#[pyfunction]
pub(crate) fn flush_logs(py: Python<'_>) {
    py.detach(|| logs::close(|events| Python::attach(|py| log(py, events, false))));
}

/// Returns a string in which control characters are escaped, so that it stays on its line of a log.
#[pyfunction]
pub(crate) fn single_line(text: &str) -> Cow<'_, str> {
    logs::single_line(text)
}

/// Returns `true` if standard error has room for a message.
#[pyfunction]
pub(crate) fn stderr_has_room() -> bool {
    logs::has_room()
}

/// Has a message logged by a thread. The newest of more than a thousand that wait are dropped and counted. `level` is 30
/// for a warning, 40 for an error, lower for information. `fields` are those of an event, strings and integers.
#[pyfunction]
#[pyo3(signature = (level, logger, message, fields = None))]
pub(crate) fn log_later(
    level: u32,
    logger: &str,
    message: &str,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let level = match level {
        40.. => Level::ERROR,
        30.. => Level::WARN,
        20.. => Level::INFO,
        _ => Level::DEBUG,
    };
    let mut given = Map::new();
    for (name, value) in fields.into_iter().flatten() {
        let value = match value.extract::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(value.str()?.to_string()),
        };
        given.insert(name.extract()?, value);
    }
    if logs::add(level, logger, message, given) {
        start_thread();
    }
    Ok(())
}

/// Returns the fields of an event for Python.
pub(crate) fn fields_of<'py>(
    py: Python<'py>,
    fields: &Map<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields {
        match value {
            Value::Bool(value) => dict.set_item(name, value)?,
            Value::Number(value) if value.is_f64() => dict.set_item(name, value.as_f64())?,
            Value::Number(value) => dict.set_item(name, value.as_i128())?,
            Value::String(value) => dict.set_item(name, value)?,
            _ => dict.set_item(name, value.to_string())?,
        }
    }
    Ok(dict)
}

fn start_thread() {
    if !logs::starts_waiting() {
        return;
    }
    let waiter = || {
        while logs::wait(|events| {
            // `None` while the interpreter is finalized.
            Python::try_attach(|py| log(py, events, true));
        }) {}
    };
    // Without a thread the events are passed on at the exit.
    let _ = std::thread::Builder::new().name("gudgeon-logs".into()).spawn(waiter);
}

/// `waits`: whether each event waits until it can be logged without blocking; otherwise it is dropped.
fn log(py: Python<'_>, events: Vec<LogEvent>, waits: bool) {
    let Some(log_event) = LOG_EVENT.get(py) else { return };
    let log = |event: &LogEvent| {
        let fields = fields_of(py, &event.fields)?;
        let level = event.level.as_str();
        calling::call(log_event.bind(py), (level, &event.logger, event.line(), fields, waits))
    };
    for event in events {
        // A handler of the log that raises does not take the other events with it.
        if let Err::<_, PyErr>(error) = log(&event) {
            error.write_unraisable(py, None);
        }
    }
}
