//! Questions of handlers to their client, and the waiters for their answers.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
};

use gudgeon::{
    engine::RunId, error::Fault, protocol::Raw, router::Failure, session::asking::AskId,
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use rustc_hash::FxHashMap;

use crate::{
    calling,
    stream::{Stream, lock},
};

/// `None`: the call was cancelled or its connection closed.
type Answer = Option<Result<Raw, Failure>>;

/// The handlers that wait for answers.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    asked: Mutex<FxHashMap<RunId, Vec<(AskId, Waiter)>>>,
    next: AtomicU64,
}

enum Waiter {
    /// A blocked thread.
    Thread(Sender<Result<Raw, Failure>>),
    /// `resolve(result, failure)`; may be called from any thread.
    Task(Py<PyAny>),
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Thread(_)) { "Thread" } else { "Task" })
    }
}

impl Waiting {
    pub(crate) fn thread(&self, call: RunId) -> (AskId, Receiver<Result<Raw, Failure>>) {
        let (sender, receiver) = channel();
        (self.insert(call, Waiter::Thread(sender)), receiver)
    }

    pub(crate) fn task(&self, call: RunId, resolve: Py<PyAny>) -> AskId {
        self.insert(call, Waiter::Task(resolve))
    }

    fn insert(&self, call: RunId, waiter: Waiter) -> AskId {
        let ask = AskId(self.next.fetch_add(1, Ordering::Relaxed));
        lock(&self.asked).entry(call).or_default().push((ask, waiter));
        ask
    }

    /// Delivers answers.
    pub(crate) fn settle(&self, answers: Vec<(RunId, AskId, Result<Raw, Fault>)>) {
        for (call, ask, answer) in answers {
            // The waiter may have given up in the meantime.
            if let Some(waiter) = self.take(call, ask) {
                waiter.tell(Some(answer.map_err(Failure::from)));
            }
        }
    }

    /// Releases all waiters of a cancelled call.
    pub(crate) fn forget(&self, call: RunId) {
        let over = lock(&self.asked).remove(&call);
        for (_, waiter) in over.into_iter().flatten() {
            waiter.tell(None);
        }
    }

    /// Releases all waiters.
    pub(crate) fn forget_all(&self) {
        let over = std::mem::take(&mut *lock(&self.asked));
        for (_, waiter) in over.into_values().flatten() {
            waiter.tell(None);
        }
    }

    fn take(&self, call: RunId, ask: AskId) -> Option<Waiter> {
        let mut asked = lock(&self.asked);
        let of_call = asked.get_mut(&call)?;
        let at = of_call.iter().position(|(it, _)| *it == ask)?;
        let (_, waiter) = of_call.swap_remove(at);
        if of_call.is_empty() {
            asked.remove(&call);
        }
        Some(waiter)
    }
}

impl Waiter {
    fn tell(self, answer: Answer) {
        match (self, answer) {
            // The thread may have given up in the meantime.
            (Self::Thread(sender), Some(answer)) => drop(sender.send(answer)),
            (Self::Thread(_), None) => (),
            (Self::Task(resolve), answer) => Python::attach(|py| {
                let told = python(py, answer).and_then(|it| calling::call(resolve.bind(py), it));
                if let Err(error) = told {
                    error.write_unraisable(py, None);
                }
            }),
        }
    }
}

/// The answer that a `def` handler waits for.
#[pyclass(frozen)]
pub(crate) struct Pending {
    pub(crate) stream: Arc<Stream>,
    pub(crate) answer: Mutex<Receiver<Result<Raw, Failure>>>,
}

#[pymethods]
impl Pending {
    /// Blocks until the answer arrives: `(result, failure)`. If the thread leads, the lead is passed on first.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let answer = py.detach(|| {
            let answer = lock(&self.answer);
            match answer.try_recv() {
                Err(TryRecvError::Empty) => {
                    let _aside = self.stream.enter_blocking();
                    answer.recv().ok()
                }
                at_once => at_once.ok(),
            }
        });
        python(py, answer)
    }
}

/// Returns `(result, None)` with JSON, or `(None, (kind, code, message, data))`.
pub(crate) fn python(py: Python<'_>, answer: Answer) -> PyResult<Bound<'_, PyTuple>> {
    let data = |data: Option<Raw>| data.map(|it| it.get().to_owned());
    let told = match answer {
        Some(Ok(result)) => {
            let json = PyBytes::new(py, result.get().as_bytes());
            return (json, py.None()).into_pyobject(py);
        }
        Some(Err(Failure::MissingCapability { message, data: missing })) => {
            ("missingCapability", 0, message, data(missing))
        }
        Some(Err(Failure::NotSupported(message))) => ("notSupported", 0, message, None),
        Some(Err(Failure::Declined(question))) => ("declined", 0, question, None),
        Some(Err(Failure::Protocol { code, message, data: more })) => {
            ("protocol", code, message, data(more))
        }
        Some(Err(_)) | None => ("abandoned", 0, String::new(), None),
    };
    (py.None(), told).into_pyobject(py)
}
