//! What Python registered: a function, how it is to be run, and how long it takes.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use pyo3::{PyTraverseError, PyVisit, prelude::*};

/// A handler this quick is called without another look.
const QUICK: Duration = Duration::from_micros(500);
/// A handler this slow is handed to a worker from then on.
const SLOW: Duration = Duration::from_millis(5);
/// So many quick calls in a row, and a slow handler is taken for quick again: the machine was busy, not the handler.
const REFORMED: u32 = 64;

/// A handler and its pace.
pub(crate) struct PyHandler {
    /// `invoke(raw, call)` → a reply, or a coroutine of one.
    invoke: Py<PyAny>,
    is_async: bool,
    /// An async function that runs in its place: middleware around it.
    wrapper: OnceLock<Py<PyAny>>,
    /// Exceptions whose text callers may see.
    pub(crate) expose: Py<PyAny>,
    /// `Some(true)`: always on a worker; `Some(false)`: never.
    pub(crate) thread: Option<bool>,
    is_wrapped: AtomicBool,
    quick: AtomicBool,
    slow: AtomicBool,
    quick_in_a_row: AtomicU32,
    /// Calls that stalled the leader and have not come back.
    stalled: AtomicU32,
}

impl PyHandler {
    pub(crate) fn new(
        invoke: Py<PyAny>,
        is_async: bool,
        expose: Py<PyAny>,
        thread: Option<bool>,
    ) -> Self {
        Self {
            invoke,
            is_async,
            wrapper: OnceLock::new(),
            expose,
            thread,
            is_wrapped: AtomicBool::new(false),
            quick: AtomicBool::new(false),
            slow: AtomicBool::new(false),
            quick_in_a_row: AtomicU32::new(0),
            stalled: AtomicU32::new(0),
        }
    }

    /// What is to be called, and whether that gives a coroutine.
    pub(crate) fn target(&self) -> (&Py<PyAny>, bool) {
        self.wrapper.get().map_or((&self.invoke, self.is_async), |it| (it, true))
    }

    /// The handler itself, behind its wrapper.
    pub(crate) fn inner(&self) -> &Py<PyAny> {
        &self.invoke
    }

    /// Shows the garbage collector what it holds.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.invoke)?;
        visit.call(&self.expose)?;
        visit.call(self.wrapper.get())
    }

    pub(crate) fn is_async(&self) -> bool {
        self.is_async || self.is_wrapped.load(Ordering::Acquire)
    }

    pub(crate) fn wrap(&self, wrapper: Py<PyAny>) {
        self.wrapper.get_or_init(|| wrapper);
        self.is_wrapped.store(true, Ordering::Release);
    }

    pub(crate) fn wants_worker(&self) -> bool {
        self.thread.unwrap_or_else(|| {
            self.slow.load(Ordering::Relaxed) || self.stalled.load(Ordering::Relaxed) > 0
        })
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.quick.load(Ordering::Relaxed)
    }

    /// Whether others may go on while it runs in place.
    pub(crate) fn is_preemptible(&self) -> bool {
        self.thread != Some(false)
    }

    pub(crate) fn stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn came_back(&self) {
        self.stalled.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn took(&self, time: Duration) {
        let quick = time < QUICK;
        if self.quick.load(Ordering::Relaxed) != quick {
            self.quick.store(quick, Ordering::Relaxed);
        }
        if time >= SLOW {
            self.slow.store(true, Ordering::Relaxed);
            self.quick_in_a_row.store(0, Ordering::Relaxed);
        } else if self.slow.load(Ordering::Relaxed) {
            let row = if quick { self.quick_in_a_row.load(Ordering::Relaxed) + 1 } else { 0 };
            self.quick_in_a_row.store(row, Ordering::Relaxed);
            self.slow.store(row < REFORMED, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for PyHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyHandler").field("is_async", &self.is_async()).finish_non_exhaustive()
    }
}

/// The handler of one registration, for who registered it.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) handler: Arc<PyHandler>,
    /// What known hosts will not take of it.
    #[pyo3(get)]
    pub(crate) warnings: Vec<String>,
}

impl Registered {
    /// Of something that no host lists.
    pub(crate) fn quiet(handler: Arc<PyHandler>) -> Self {
        Self { handler, warnings: Vec::new() }
    }
}

#[pymethods]
impl Registered {
    /// From now on this async function runs in the handler's place. The first wrapper stays.
    fn wrap(&self, invoke: Py<PyAny>) {
        self.handler.wrap(invoke);
    }
}
