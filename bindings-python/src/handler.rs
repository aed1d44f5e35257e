//! Registered Python functions, the way they are run, and their measured duration.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use pyo3::{PyTraverseError, PyVisit, prelude::*};

/// The duration below which a handler is considered quick.
const QUICK: Duration = Duration::from_micros(500);
/// The duration from which on a handler is considered slow and moved to a worker.
const SLOW: Duration = Duration::from_millis(5);
/// The number of quick calls in a row after which a slow handler is considered quick again.
const QUICK_CALLS_TO_RECOVER: u32 = 64;

/// A handler as the core stores it.
pub(crate) type Handler = Arc<PyHandler>;

/// The server's visibility filter: `invoke(raw)` → a list of booleans as JSON.
pub(crate) type VisibilityFilter = Arc<Mutex<Option<Handler>>>;

/// A handler and its measured pace.
pub(crate) struct PyHandler {
    /// `invoke(raw, call)` → a reply, or a coroutine of one.
    invoke: Py<PyAny>,
    is_async: bool,
    /// An async function that replaces it: middleware around the handler.
    wrapper: OnceLock<Py<PyAny>>,
    /// Exceptions whose message callers may see.
    pub(crate) expose: Py<PyAny>,
    /// `Some(true)`: always on a worker; `Some(false)`: never.
    pub(crate) thread: Option<bool>,
    is_wrapped: AtomicBool,
    quick: AtomicBool,
    slow: AtomicBool,
    quick_in_a_row: AtomicU32,
    /// Calls that blocked the leader and have not returned.
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

    /// Returns the function to call, and whether it returns a coroutine.
    pub(crate) fn target(&self) -> (&Py<PyAny>, bool) {
        self.wrapper.get().map_or((&self.invoke, self.is_async), |wrapper| (wrapper, true))
    }

    /// Returns the handler itself, without its wrapper.
    pub(crate) fn inner(&self) -> &Py<PyAny> {
        &self.invoke
    }

    /// Visits the held Python objects, for the garbage collector.
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

    /// Returns `true` if the lead may be passed on while the handler runs on the leader.
    pub(crate) fn is_preemptible(&self) -> bool {
        self.thread != Some(false)
    }

    pub(crate) fn stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_return(&self) {
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
            self.slow.store(row < QUICK_CALLS_TO_RECOVER, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for PyHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PyHandler").field("is_async", &self.is_async()).finish_non_exhaustive()
    }
}

/// The handler of one registration, as returned to the registering code.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) handler: Handler,
    /// Warnings about properties that known hosts reject.
    #[pyo3(get)]
    pub(crate) warnings: Vec<String>,
}

impl Registered {
    /// Creates one for a registration that hosts do not list.
    pub(crate) fn quiet(handler: Handler) -> Self {
        Self { handler, warnings: Vec::new() }
    }
}

#[pymethods]
impl Registered {
    /// Replaces the handler by this async function. Only the first call has an effect.
    fn wrap(&self, invoke: Py<PyAny>) {
        self.handler.wrap(invoke);
    }
}
