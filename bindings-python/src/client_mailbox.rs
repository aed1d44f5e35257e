//! Events for Python's clients: taken in batches by the event loop, or by the thread that waits for them.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, AsRawFd},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gudgeon::{
    bindings::{client_questions::Asked, reconnecting::Notice},
    client::{Progress, Question, Reply},
    error::Error,
    protocol::Raw,
};
use pyo3::{prelude::*, types::PyBytes};

use crate::{client::describe, client_error::error_json, waker::Waker};

/// The maximum size of queued notifications, in bytes; beyond it they are dropped.
const MAX_UNREAD: usize = 16 * 1024 * 1024;
/// The overhead of an event, in bytes.
const ENVELOPE: usize = 256;
/// The interval at which signals are checked.
const PATIENCE: Duration = Duration::from_millis(100);

/// The addressee: a request, by its ticket, or a client, by its number; both come from one counter.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: u64,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Done(Reply),
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
}

impl Content {
    pub(crate) fn of(asked: Asked<'_>) -> Self {
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
pub(crate) struct Letters {
    queue: Mutex<Queue>,
    arrived: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Queue {
    letters: VecDeque<Letter>,
    unread: usize,
    /// The waiting threads; an event loop's mailbox has none.
    waiting: usize,
}

/// Holds events until they are taken.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Mailbox(pub(crate) Arc<Letters>);

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let waker = Waker::new()?;
        Ok(Self(Arc::new(Letters { queue: Mutex::default(), arrived: Condvar::new(), waker })))
    }

    /// Readable when there are events.
    fn fileno(&self) -> i32 {
        self.0.waker.as_fd().as_raw_fd()
    }

    /// Returns all events.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.waker.clear();
        let letters = self.0.collect(None);
        letters.into_iter().map(|it| it.into_tuple(py)).collect()
    }

    /// Blocks until there is an event for this ticket or for a client as a whole, or the timeout in seconds is over;
    /// signals are handled in the meantime.
    #[pyo3(signature = (ticket, timeout = None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        ticket: u64,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let limit = timeout.and_then(|it| Duration::try_from_secs_f64(it.max(0.0)).ok());
        let deadline = limit.and_then(|it| Instant::now().checked_add(it));
        loop {
            let letters = py.detach(|| self.0.wait(ticket, deadline));
            if !letters.is_empty() {
                return letters.into_iter().map(|it| it.into_tuple(py)).collect();
            }
            py.check_signals()?;
            if deadline.is_some_and(|it| it <= Instant::now()) {
                return Ok(Vec::new());
            }
        }
    }
}

impl Letters {
    pub(crate) fn push(&self, to: u64, content: Content) {
        let mut queue = self.lock();
        // Repeated changes of one list are merged.
        if let Content::Changed(list) = content
            && queue.letters.iter().any(|it| it.to == to && it.is_change_of(list))
        {
            return;
        }
        let letter = Letter { to, content };
        let weight = letter.weight();
        if weight > 0 && queue.unread + weight > MAX_UNREAD {
            return;
        }
        queue.unread += weight;
        queue.letters.push_back(letter);
        let is_awaited = queue.waiting > 0;
        drop(queue);
        if is_awaited {
            self.arrived.notify_all();
        }
        self.waker.wake();
    }

    /// Drops the events of a cancelled request.
    pub(crate) fn forget(&self, ticket: u64) {
        let mut queue = self.lock();
        queue.letters.retain(|it| it.to != ticket);
        queue.unread = queue.letters.iter().map(Letter::weight).sum();
    }

    /// Returns all events, or those for this ticket and for clients as a whole, in order.
    fn collect(&self, ticket: Option<u64>) -> Vec<Letter> {
        collect(&mut self.lock(), ticket)
    }

    /// Once, for a while.
    fn wait(&self, ticket: u64, deadline: Option<Instant>) -> Vec<Letter> {
        let rest = deadline.map_or(PATIENCE, |it| it.saturating_duration_since(Instant::now()));
        let mut queue = self.lock();
        let letters = collect(&mut queue, Some(ticket));
        if !letters.is_empty() {
            return letters;
        }
        queue.waiting += 1;
        let waited = self.arrived.wait_timeout(queue, rest.min(PATIENCE));
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waiting -= 1;
        collect(&mut queue, Some(ticket))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn collect(queue: &mut Queue, ticket: Option<u64>) -> Vec<Letter> {
    let is_mine = |it: &Letter| ticket.is_none_or(|ticket| it.to == ticket || !it.is_for_request());
    let taken: Vec<_> = if queue.letters.iter().all(is_mine) {
        queue.letters.drain(..).collect()
    } else {
        let (mine, others) = std::mem::take(&mut queue.letters).into_iter().partition(is_mine);
        queue.letters = others;
        mine.into()
    };
    queue.unread -= taken.iter().map(Letter::weight).sum::<usize>();
    taken
}

impl Letter {
    fn is_for_request(&self) -> bool {
        matches!(self.content, Content::Done(_) | Content::Failed(_) | Content::Progress(_))
    }

    fn is_change_of(&self, list: &str) -> bool {
        matches!(self.content, Content::Changed(it) if it == list)
    }

    /// 0 for events that must not be dropped; their number is bounded by the number of requests.
    fn weight(&self) -> usize {
        let text = match &self.content {
            Content::Progress(step) => step.message.as_ref().map_or(0, String::len),
            Content::Log(message) => message.get().len(),
            Content::Notice(Notice::UrlDone(text)) => text.len(),
            _ => return 0,
        };
        text + ENVELOPE
    }

    /// `(what, to whom, …)`
    fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let bytes = |it: &Raw| PyBytes::new(py, it.get().as_bytes());
        let to = self.to;
        let tuple = match self.content {
            Content::Done(reply) => {
                let data = reply.data.as_ref().map(bytes);
                ("done", to, bytes(&reply.result), data, reply.is_input_required).into_pyobject(py)
            }
            Content::Failed(error) => {
                ("failed", to, error_json(&error).into_bytes()).into_pyobject(py)
            }
            Content::Progress(it) => {
                ("progress", to, it.progress, it.total, it.message).into_pyobject(py)
            }
            Content::Log(message) => ("log", to, bytes(&message)).into_pyobject(py),
            Content::Changed(list) => ("changed", to, list).into_pyobject(py),
            Content::Notice(Notice::UrlDone(id)) => ("url_done", to, id).into_pyobject(py),
            Content::Notice(Notice::Reconnected(it)) => {
                let server = it.server.as_ref().map(describe);
                ("reconnected", to, server.as_ref().map(bytes)).into_pyobject(py)
            }
            Content::Notice(Notice::Lost(reason)) => ("lost", to, reason).into_pyobject(py),
            Content::Question { number, kind, params, key } => {
                ("question", to, number, kind, bytes(&params), key).into_pyobject(py)
            }
            Content::Withdrawn(number) => ("withdrawn", to, number).into_pyobject(py),
        };
        tuple.map(Bound::into_any)
    }
}
