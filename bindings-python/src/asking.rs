//! Questions of handlers to their client, and the waiters for their answers.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};

use gudgeon::{
    bindings::waiting::{self, AskedTogether},
    engine::RunId,
    error::Fault,
    protocol::{Question, Raw},
    router::Failure,
    session::{asking::AskId, server::CallContext},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};

use crate::{
    call::Call,
    calling,
    stream::{Stream, lock},
};

/// The handlers that wait for answers.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<waiting::Waiting<Waiter>>);

enum Waiter {
    /// A blocked thread. Dropped without a message if the call was cancelled or its connection closed.
    Thread(Sender<()>),
    /// `resolve(answered)`; may be called from any thread.
    Task(Py<PyAny>),
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Thread(_)) { "Thread" } else { "Task" })
    }
}

impl Waiting {
    pub(crate) fn ask(
        &self,
        run: RunId,
        questions: Vec<Question>,
        context: &CallContext,
    ) -> Arc<AskedTogether> {
        lock(&self.0).ask(run, questions, context)
    }

    /// Delivers an answer.
    pub(crate) fn settle(&self, run: RunId, ask: AskId, outcome: Result<Raw, Fault>) {
        let waiter = lock(&self.0).settle(run, ask, outcome);
        if let Some(waiter) = waiter {
            waiter.wake(true);
        }
    }

    /// Releases all waiters of a cancelled call.
    pub(crate) fn forget(&self, run: RunId) {
        let over = lock(&self.0).forget(run);
        over.for_each(|waiter| waiter.wake(false));
    }

    /// Releases all waiters.
    pub(crate) fn forget_all(&self) {
        let over = lock(&self.0).forget_all();
        over.for_each(|waiter| waiter.wake(false));
    }

    fn wait(&self, asked: &Arc<AskedTogether>, waiter: Waiter) {
        lock(&self.0).wait(asked, waiter);
    }
}

impl Waiter {
    fn wake(self, is_answered: bool) {
        match self {
            // The thread may have given up in the meantime.
            Self::Thread(sender) if is_answered => drop(sender.send(())),
            Self::Thread(_) => (),
            Self::Task(resolve) => Python::attach(|py| {
                if let Err(error) = calling::call(resolve.bind(py), (is_answered,)) {
                    error.write_unraisable(py, None);
                }
            }),
        }
    }
}

/// Questions that a handler asks together, until it has accepted an answer to each.
#[pyclass(frozen)]
pub(crate) struct Questions {
    pub(crate) call: Py<Call>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) asked: Arc<AskedTogether>,
}

#[pymethods]
impl Questions {
    /// `True` until an outcome of each question was taken and none is rejected.
    #[getter]
    fn is_open(&self) -> bool {
        self.asked.set().is_open()
    }

    /// Sends the open questions. Returns `True` if there are any: `resolve(answered)` is then called from any thread,
    /// with `False` if the call was cancelled or its connection closed.
    fn send(&self, py: Python<'_>, resolve: Py<PyAny>) -> bool {
        self.put(py, Waiter::Task(resolve))
    }

    /// Sends the open questions and blocks until all are answered. If the thread leads, the lead is passed on first.
    /// Returns `False` if the call was cancelled or its connection closed.
    fn wait(&self, py: Python<'_>) -> bool {
        let (sender, answered): (_, Receiver<()>) = channel();
        if !self.put(py, Waiter::Thread(sender)) {
            return true;
        }
        self.call.get().end_round(py, true);
        py.detach(move || {
            if !self.asked.set().is_waiting() {
                return true;
            }
            let _guard = self.stream.enter_blocking();
            answered.recv().is_ok()
        })
    }

    /// Returns the new outcomes: the question's index and `(result, failure)`.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<(usize, Bound<'py, PyTuple>)>> {
        let outcomes = self.asked.set().take();
        outcomes.into_iter().map(|(at, outcome)| Ok((at, python(py, outcome)?))).collect()
    }

    /// Rejects an answer because of this problem: its question is sent again.
    fn reject(&self, at: usize, problem: String) {
        self.asked.set().reject(at, problem);
    }
}

impl Questions {
    fn put(&self, py: Python<'_>, waiter: Waiter) -> bool {
        let unsent = self.asked.set().send();
        if unsent.is_empty() {
            return false;
        }
        let (stream, call) = (&self.stream, self.call.get());
        stream.waiting.wait(&self.asked, waiter);
        if call.cancelled() {
            stream.waiting.forget(self.asked.run());
        } else {
            py.detach(|| stream.distribute(self.asked.send(unsent, &stream.server), false));
            call.flush(py);
        }
        true
    }
}

/// Returns `(result, None)` with JSON, or `(None, (kind, code, message, data))`.
pub(crate) fn python(py: Python<'_>, answer: Result<Raw, Fault>) -> PyResult<Bound<'_, PyTuple>> {
    let data = |data: Option<Raw>| data.map(|raw| raw.get().to_owned());
    let error = match answer.map_err(Failure::from) {
        Ok(result) => {
            let json = PyBytes::new(py, result.get().as_bytes());
            return (json, py.None()).into_pyobject(py);
        }
        Err(Failure::MissingCapability { message, data: missing }) => {
            ("missingCapability", 0, message, data(missing))
        }
        Err(Failure::NotSupported(message)) => ("notSupported", 0, message, None),
        Err(Failure::Declined(question)) => ("declined", 0, question, None),
        Err(Failure::Protocol { code, message, data: more }) => {
            ("protocol", code, message, data(more))
        }
        Err(_) => ("abandoned", 0, String::new(), None),
    };
    (py.None(), error).into_pyobject(py)
}
