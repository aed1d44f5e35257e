//! Questions of handlers to their client: who waits for which answer.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
};

use gudgeon::{
    error::Fault,
    protocol::Raw,
    router::Failure,
    session::{CallId, asking::AskId},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};

use crate::stream::{Stream, lock};

type Answer = Result<Raw, Failure>;

/// Handlers that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    asked: Mutex<HashMap<(CallId, AskId), Waiter>>,
    next: AtomicU64,
}

enum Waiter {
    /// A thread that blocks.
    Thread(Sender<Answer>),
    /// `resolve(result, failure)`, called from any thread.
    Task(Py<PyAny>),
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Thread(_)) { "Thread" } else { "Task" })
    }
}

impl Waiting {
    pub(crate) fn thread(&self, call: CallId) -> (AskId, Receiver<Answer>) {
        let (sender, receiver) = channel();
        (self.insert(call, Waiter::Thread(sender)), receiver)
    }

    pub(crate) fn task(&self, call: CallId, resolve: Py<PyAny>) -> AskId {
        self.insert(call, Waiter::Task(resolve))
    }

    fn insert(&self, call: CallId, waiter: Waiter) -> AskId {
        let ask = AskId(self.next.fetch_add(1, Ordering::Relaxed));
        lock(&self.asked).insert((call, ask), waiter);
        ask
    }

    /// Answers have come.
    pub(crate) fn settle(&self, answers: Vec<(CallId, AskId, Result<Raw, Fault>)>) {
        for (call, ask, answer) in answers {
            let answer = answer.map_err(Failure::from);
            let waiter = lock(&self.asked).remove(&(call, ask));
            match waiter {
                // It may have given up in between.
                Some(Waiter::Thread(sender)) => drop(sender.send(answer)),
                Some(Waiter::Task(resolve)) => Python::attach(|py| {
                    let told = python(py, answer).and_then(|it| resolve.call1(py, it));
                    if let Err(error) = told {
                        error.write_unraisable(py, None);
                    }
                }),
                None => (),
            }
        }
    }

    /// A call is over: nobody of it waits any more.
    pub(crate) fn forget(&self, call: CallId) {
        let over: Vec<_> = {
            let mut asked = lock(&self.asked);
            let keys: Vec<_> = asked.keys().filter(|(of, _)| *of == call).copied().collect();
            keys.iter().filter_map(|it| asked.remove(it)).collect()
        };
        // Dropped outside the lock: that may run Python.
        drop(over);
    }
}

/// An answer that a `def` handler waits for.
#[pyclass(frozen)]
pub(crate) struct Pending {
    pub(crate) stream: Arc<Stream>,
    pub(crate) answer: Mutex<Receiver<Answer>>,
}

#[pymethods]
impl Pending {
    /// Blocks until it is here: `(result, failure)`. Whoever leads hands the lead on first.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let answer = py.detach(|| {
            self.stream.stand_aside();
            lock(&self.answer).recv()
        });
        // Without an answer the call is over.
        python(py, answer.unwrap_or(Err(Failure::Cancelled)))
    }
}

/// `(result, None)` with JSON, or `(None, (kind, code, message, data))`.
fn python(py: Python<'_>, answer: Answer) -> PyResult<Bound<'_, PyTuple>> {
    let failure = match answer {
        Ok(result) => {
            let json = PyBytes::new(py, result.get().as_bytes());
            return (json, py.None()).into_pyobject(py);
        }
        Err(failure) => failure,
    };
    let data = |data: Option<Raw>| data.map(|it| it.get().to_owned());
    let told = match failure {
        Failure::MissingCapability { message, data: missing } => {
            ("missingCapability", 0, message, data(missing))
        }
        Failure::NotSupported(message) => ("notSupported", 0, message, None),
        Failure::Protocol { code, message, data: more } => ("protocol", code, message, data(more)),
        _ => ("cancelled", 0, String::new(), None),
    };
    (py.None(), told).into_pyobject(py)
}
