//! Events for Python's clients: taken by the event loop, or by the thread that waits for them.

use std::{
    os::fd::{AsFd, AsRawFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gudgeon::{
    bindings::{
        client_middleware::WaitingRequest,
        client_notice::Notice,
        client_questions::Asked,
        mailbox::{self, Kind},
    },
    client::{OperationReply, Progress, Question},
    error::Error,
    peer::ToolData,
    protocol::Raw,
};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyBytes};

use crate::{
    client::describe,
    client_error::{error_json, raised},
    client_runtime::refuse_questions,
    waker::Waker,
};

/// The interval at which signals are checked.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// An event with its receiver: a request, by its ticket, or a client, by its number; both come from one counter.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) to: u64,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Done(OperationReply),
    Failed(Error),
    Progress(Progress),
    /// A log message, as JSON.
    Log(Raw),
    /// The name of the list.
    Changed(&'static str),
    /// An event of the client as a whole.
    Notice(Notice),
    /// A question that expects an answer with this number.
    Question {
        number: u32,
        kind: String,
        params: Raw,
        key: Option<String>,
    },
    /// The question was withdrawn.
    Withdrawn(u32),
    /// A request for the middleware of the client with this number.
    Middleware(u64, WaitingRequest),
}

impl Content {
    fn kind(&self) -> Kind {
        match self {
            Self::Done(reply) => Kind::Outcome(reply.result.get().len()),
            Self::Failed(_) => Kind::Outcome(0),
            Self::Progress(step) => Kind::Progress(step.message.as_ref().map_or(0, String::len)),
            Self::Log(message) => Kind::Notification(message.get().len()),
            Self::Changed(list) => Kind::Changed(list),
            Self::Notice(Notice::UrlDone(text)) => Kind::Notification(text.len()),
            Self::Notice(_) | Self::Question { .. } | Self::Withdrawn(_) => Kind::Event,
            Self::Middleware(..) => Kind::OfRequest,
        }
    }

    pub(crate) fn from_asked(asked: Asked<'_>) -> Self {
        match asked {
            Asked::Question(number, option, Question { key, params, .. }) => {
                let (kind, params, key) = (option.to_owned(), params.clone(), key.clone());
                Self::Question { number, kind, params, key }
            }
            Asked::Withdrawn(number) => Self::Withdrawn(number),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Entries {
    queue: Mutex<Queue>,
    arrived: Condvar,
    waker: Waker,
    /// True once nothing takes events any more, because the event loop is closed.
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    entries: mailbox::Mailbox<Entry>,
    /// The waiting threads; an event loop's mailbox has none.
    waiting: usize,
}

/// Holds events until they are taken.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Mailbox(pub(crate) Arc<Entries>);

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let waker = Waker::new()?;
        let (queue, arrived, is_closed) = (Mutex::default(), Condvar::new(), AtomicBool::default());
        Ok(Self(Arc::new(Entries { queue, arrived, waker, is_closed })))
    }

    /// Refuses the open questions of the clients whose events arrive here, and those to come, because the event loop is
    /// closed. Other events wait for the mailbox that a client moves to.
    fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        refuse_questions(&self.0);
    }

    /// Readable when there are events.
    fn fileno(&self) -> i32 {
        self.0.waker.as_fd().as_raw_fd()
    }

    /// Returns the next outcomes of requests, and at most one other event; an empty list if nothing has arrived.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.take().into_iter().map(|entry| entry.into_tuple(py)).collect()
    }

    /// Blocks until there is an event for this ticket or for a client as a whole, and returns the next one; signals are
    /// handled in the meantime.
    fn wait<'py>(&self, py: Python<'py>, ticket: u64) -> PyResult<Bound<'py, PyAny>> {
        loop {
            if let Some(entry) = py.detach(|| self.0.wait(ticket)) {
                return entry.into_tuple(py);
            }
            py.check_signals()?;
        }
    }
}

impl Entries {
    /// Adds an event of a client, `None` for the outcome of several, for the request or client `to`.
    pub(crate) fn push(&self, client: Option<u64>, to: u64, content: Content) {
        let kind = content.kind();
        let mut queue = self.lock();
        if !queue.entries.push(Instant::now(), client, to, kind, Entry { to, content }) {
            return;
        }
        let is_awaited = queue.waiting > 0;
        drop(queue);
        if is_awaited {
            self.arrived.notify_all();
        }
        self.waker.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Moves the events of a client to another mailbox, without questions that are refused already.
    pub(crate) fn move_to(&self, client: u64, other: &Self) {
        let moved = self.lock().entries.take_all(client).into_iter().map(|(_, entry)| entry);
        let is_refused =
            |entry: &Entry| self.is_closed() && matches!(entry.content, Content::Question { .. });
        for entry in moved.filter(|entry| !is_refused(entry)) {
            other.push(Some(client), entry.to, entry.content);
        }
    }

    /// Drops the events of a cancelled request.
    pub(crate) fn forget(&self, ticket: u64) {
        self.lock().entries.forget(ticket);
    }

    fn take(&self) -> Vec<Entry> {
        let mut queue = self.lock();
        let entries = queue.entries.take(Instant::now());
        if queue.entries.is_empty() {
            // Under the lock, so that it comes before the wake-up for the next event.
            self.waker.clear();
        }
        entries
    }

    /// Once, for a while.
    fn wait(&self, ticket: u64) -> Option<Entry> {
        let mut queue = self.lock();
        if let Some(entry) = queue.entries.take_for(Instant::now(), ticket) {
            return Some(entry);
        }
        queue.waiting += 1;
        let waited = self.arrived.wait_timeout(queue, SIGNAL_INTERVAL);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waiting -= 1;
        queue.entries.take_for(Instant::now(), ticket)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// `(kind, receiver, …)`
    fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let bytes = |raw: &Raw| PyBytes::new(py, raw.get().as_bytes());
        let to = self.to;
        let tuple = match self.content {
            Content::Done(reply) => {
                // The data's place in the result, or its JSON.
                let data = match reply.data {
                    None => py.None(),
                    Some(ToolData::Structured { range, is_unwrapped }) => {
                        (range.start, range.end, is_unwrapped).into_py_any(py)?
                    }
                    Some(ToolData::Text(json)) => {
                        PyBytes::new(py, json.as_bytes()).into_py_any(py)?
                    }
                };
                ("done", to, bytes(&reply.result), data, reply.is_input_required).into_pyobject(py)
            }
            Content::Failed(error) => match raised(py, &error) {
                Some(exception) => ("raised", to, exception).into_pyobject(py),
                None => ("failed", to, error_json(&error).into_bytes()).into_pyobject(py),
            },
            Content::Progress(it) => {
                ("progress", to, it.progress, it.total, it.message).into_pyobject(py)
            }
            Content::Log(message) => ("log", to, bytes(&message)).into_pyobject(py),
            Content::Changed(list) => ("changed", to, list).into_pyobject(py),
            Content::Notice(Notice::UrlDone(id)) => ("url_done", to, id).into_pyobject(py),
            Content::Notice(Notice::Reconnected { attempt, reason, server }) => {
                let (server, reason) = (bytes(&describe(&server)), error_json(&reason));
                ("reconnected", to, server, attempt, reason.into_bytes()).into_pyobject(py)
            }
            Content::Notice(Notice::Lost(reason)) => ("lost", to, reason).into_pyobject(py),
            Content::Question { number, kind, params, key } => {
                ("question", to, number, kind, bytes(&params), key).into_pyobject(py)
            }
            Content::Withdrawn(number) => ("withdrawn", to, number).into_pyobject(py),
            Content::Middleware(client, it) => {
                ("middleware", to, client, it.number, it.method, it.params.into_bytes())
                    .into_pyobject(py)
            }
        };
        tuple.map(Bound::into_any)
    }
}
