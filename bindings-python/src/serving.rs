//! The handle of a stream that is being served, for the Python code that waits for it, ends it and cleans up.

use std::{
    os::fd::{AsRawFd, BorrowedFd, IntoRawFd},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;

use crate::{
    error::raise,
    source::Source,
    stream::{Stream, lock},
    watchdog::NativeWatchdog,
};

/// Streams whose threads must end before the interpreter.
static OPEN: Mutex<Vec<Weak<Stream>>> = Mutex::new(Vec::new());

/// One stream of frames being served.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Serving {
    stream: Arc<Stream>,
}

impl Serving {
    pub(crate) fn start(stream: Arc<Stream>) -> PyResult<Self> {
        {
            let mut open = lock(&OPEN);
            open.retain(|stream| stream.strong_count() > 0);
            open.push(Arc::downgrade(&stream));
        }
        stream.start_threads()?;
        Ok(Self { stream })
    }
}

#[pymethods]
impl Serving {
    /// Returns `true` if nothing more is read: the input has ended, the peer disconnected, or `end` was called.
    #[getter]
    fn ended(&self) -> bool {
        self.stream.has_ended()
    }

    /// Returns `true` if a handler waits for an event loop and none is attached.
    #[getter]
    fn wants_loop(&self) -> bool {
        self.stream.asyncio_queue.is_wanted()
    }

    /// The number of unanswered requests.
    #[getter]
    fn in_flight(&self) -> usize {
        self.stream.server.in_flight()
    }

    /// The address that it listens at.
    #[getter]
    fn url(&self) -> Option<String> {
        lock(&self.stream.listener).as_ref().map(|listener| listener.url().to_owned())
    }

    /// A warning about the address, for the operator of the server.
    #[getter]
    fn warning(&self) -> Option<String> {
        lock(&self.stream.listener)
            .as_ref()
            .and_then(|listener| listener.warning().map(ToOwned::to_owned))
    }

    /// The maximum length of a message, in bytes.
    #[getter]
    fn max_message(&self) -> usize {
        self.stream.limits.line
    }

    /// Ends the process if handlers keep it from ending by itself, from the end of the input or the first signal on.
    /// `grace`: seconds for calls in flight; a server at an address has its own.
    fn watch(&self, watchdog: &NativeWatchdog, grace: f64) {
        let watchdog = watchdog.watchdog();
        let given = lock(&self.stream.listener).as_ref().map(|listener| listener.grace);
        let server = Arc::downgrade(&self.stream.server);
        watchdog.watch(given.unwrap_or_else(|| seconds(grace)), move || {
            server.upgrade().map(|server| server.running()).unwrap_or_default()
        });
        // Set only once, because a stream is served once.
        let _ = self.stream.watchdog.set(watchdog.clone());
        if self.stream.has_ended() {
            watchdog.end_of_input();
        }
    }

    /// Readable when one of the three above may have changed; call `clear` before checking.
    fn fileno(&self) -> i32 {
        self.stream.status.as_fd().as_raw_fd()
    }

    fn clear(&self) {
        self.stream.status.clear();
    }

    /// Readable when `drain` has something to do.
    fn queue_fileno(&self) -> i32 {
        self.stream.asyncio_queue.waker.as_fd().as_raw_fd()
    }

    /// Blocks until `fileno()` or `other` is readable, or a signal has arrived.
    #[pyo3(signature = (timeout = None, other = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>, other: Option<i32>) -> PyResult<()> {
        let timeout = match timeout {
            None => None,
            Some(seconds) => {
                let wanted = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
                let seconds = i64::try_from(wanted.as_secs()).unwrap_or(i64::MAX);
                Some(Timespec { tv_sec: seconds, tv_nsec: wanted.subsec_nanos().into() })
            }
        };
        py.detach(|| {
            // SAFETY: the caller keeps it open while it waits on it.
            #[expect(unsafe_code, reason = "the descriptor comes from Python as a number")]
            let other = other
                .filter(|descriptor| *descriptor >= 0)
                .map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) });
            let mut fds = vec![PollFd::new(&self.stream.status, PollFlags::IN)];
            fds.extend(other.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
            // An interruption is a signal, which is handled below.
            let _ = poll(&mut fds, timeout.as_ref());
        });
        self.stream.status.clear();
        py.check_signals()
    }

    /// Attaches an event loop for `async def` handlers: `spawn(coroutine)` starts one, `flush_soon()` and
    /// `settle_soon()` schedule `flush` and `settle` for the end of the loop's iteration, `watch()` wakes the thread that
    /// notices handlers which block the loop.
    fn attach(
        &self,
        spawn: Py<PyAny>,
        flush_soon: Py<PyAny>,
        settle_soon: Py<PyAny>,
        watch: Py<PyAny>,
    ) {
        self.stream.asyncio_queue.attach(spawn, flush_soon, settle_soon, watch);
    }

    /// Returns whether `async def` handlers run, so that the watching thread must go on; otherwise `watch()` wakes it.
    fn is_to_be_watched(&self) -> bool {
        !self.stream.is_forked_copy() && self.stream.asyncio_queue.is_to_be_watched()
    }

    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        if self.stream.is_forked_copy() {
            return Ok(());
        }
        self.stream.asyncio_queue.settle(py, &self.stream)
    }

    fn detach(&self) {
        self.stream.asyncio_queue.detach();
    }

    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        if self.stream.is_forked_copy() {
            return Ok(());
        }
        self.stream.asyncio_queue.drain(py, &self.stream)
    }

    fn flush(&self) {
        if !self.stream.is_forked_copy() {
            self.stream.asyncio_queue.flush(&self.stream);
        }
    }

    /// The tasks of running handlers, and those of cancelled ones that have not ended.
    fn tasks(&self, py: Python<'_>) -> (Vec<Py<PyAny>>, Vec<Py<PyAny>>) {
        self.stream.asyncio_queue.tasks(py)
    }

    /// Reads nothing more; calls in flight continue.
    fn end(&self) {
        if !self.stream.is_forked_copy() {
            self.stream.wind_down();
        }
    }

    /// Cancels everything in flight: handlers are cancelled, and nothing more is answered.
    fn cancel(&self, py: Python<'_>) {
        if self.stream.is_forked_copy() {
            return;
        }
        py.detach(|| {
            self.stream.end();
            // Peers of an event loop may continue with the next one.
            if !matches!(&*self.stream.server, Source::Peers { notifier: Some(_), .. }) {
                let work = self.stream.server.close();
                self.stream.distribute(work, false);
            }
        });
    }

    /// Writes queued frames and releases the threads. Returns `true` if all have ended within this many seconds.
    fn stop(&self, py: Python<'_>, timeout: f64) -> bool {
        if self.stream.is_forked_copy() {
            return true;
        }
        py.detach(|| {
            self.stream.end();
            let deadline = Instant::now() + seconds(timeout);
            let listener = lock(&self.stream.listener).take();
            if let Some(listener) = listener {
                listener.stop();
            }
            self.stream.server.try_flush();
            while self.stream.server.unwritten() > 0 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            let upstreams = lock(&self.stream.upstream_serving).take();
            drop(upstreams);
            self.stream.waiting.forget_all();
            self.stream.stop_threads();
            self.stream.join_threads(deadline.saturating_duration_since(Instant::now()))
        })
    }
}

/// Reserves standard input and output for the protocol: prints go to standard error from now on. Returns the
/// descriptors.
#[pyfunction]
pub(crate) fn take_stdio() -> PyResult<(i32, i32)> {
    let (input, output) = gudgeon::transport::stdio::take().map_err(|error| {
        raise(&gudgeon::error::Error::misuse(format!(
            "standard input and output can't be taken: {error}"
        )))
    })?;
    Ok((input.into_raw_fd(), output.into_raw_fd()))
}

/// Stops every stream, before the interpreter is finalized. Returns `true` if all threads have ended within this many
/// seconds.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>, timeout: f64) -> bool {
    py.detach(|| {
        let open: Vec<Arc<Stream>> =
            lock(&OPEN).drain(..).filter_map(|stream| stream.upgrade()).collect();
        // Streams of a parent process can't be waited for after a fork.
        let (open, others): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|stream| !stream.is_forked_copy());
        std::mem::forget(others);
        let deadline = Instant::now() + seconds(timeout);
        for stream in &open {
            stream.end();
            let work = stream.server.close();
            stream.distribute(work, false);
            let listener = lock(&stream.listener).take();
            if let Some(listener) = listener {
                listener.stop();
            }
            stream.stop_threads();
        }
        open.iter()
            .all(|stream| stream.join_threads(deadline.saturating_duration_since(Instant::now())))
    })
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::from_secs(u32::MAX.into()))
}
