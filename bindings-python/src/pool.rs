//! The threads of a stream. One thread leads: it reads the input (or waits for calls) and runs quick handlers itself;
//! the others run slow handlers. A monitor passes the lead on when a handler blocks the leader.
//!
//! No lock of ours is held while a thread waits for the interpreter.

use std::{
    cell::Cell,
    io,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use gudgeon::{
    driver::{ReadBuffer, Work},
    framing::LineDecoder,
};
use pyo3::{prelude::*, types::PyBytes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    call::Call,
    calling, convert, forks,
    handler_run::HandlerRun,
    hooks,
    monitor::MONITOR_TICK,
    pin::Pin,
    source::{Frames, Source},
    stream::{DeferredCall, Pool, Sleep, Stream, Task, lock},
};

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);
/// The maximum delay, and size in bytes, of replies that wait for the rest of their batch.
const FLUSH_AFTER: Duration = Duration::from_millis(1);
const FLUSH_BYTES: usize = 256 * 1024;
/// The maximum number of threads held by handlers that wait for their clients; further ones wait in the queue.
const MAX_ASIDE: usize = 1024;
/// The interval at which a leader checks whether it may read again.
const ROOM_TICK: Duration = Duration::from_millis(10);

thread_local! {
    /// The epoch in which this thread became the leader.
    pub(crate) static LEADS: Cell<Option<u64>> = const { Cell::new(None) };
    /// `true` if this thread belongs to a pool.
    pub(crate) static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// The leader's next step.
enum Next {
    Run(Task),
    Read,
    /// Another thread has become the leader.
    Lost,
}

/// An event of the stream.
#[derive(Clone, Copy)]
enum Event {
    Input,
    /// Nobody reads the output any more.
    PeerGone,
}

impl Stream {
    /// Starts the first thread and the monitor.
    pub(crate) fn start_threads(self: &Arc<Self>) -> io::Result<()> {
        let mut pool = self.pool();
        let (stream, left) = (Arc::clone(self), self.leaver());
        let monitor = std::thread::Builder::new().name("gudgeon-monitor".into()).spawn(move || {
            stream.watch();
            drop(stream);
            left(|pool| pool.has_monitor = false);
        });
        monitor?;
        pool.has_monitor = true;
        self.spawn(&mut pool)
    }

    /// Makes every thread end after its current handler.
    pub(crate) fn stop_threads(&self) {
        self.pool().stopped = true;
        self.pool_changed.notify_all();
        self.monitor.notify_all();
        self.wake_leader();
    }

    /// Waits until all threads have ended. Returns `false` after the timeout.
    pub(crate) fn join_threads(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut pool = self.pool();
        while pool.threads > 0 || pool.has_monitor {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            pool = self
                .pool_changed
                .wait_timeout(pool, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |waited| waited.0);
        }
        true
    }

    /// Gets a thread for the queued worker jobs.
    pub(crate) fn call_worker(self: &Arc<Self>, pool: &mut Pool) {
        // A thread that was woken and has not started yet still counts as idle, and its job as queued.
        if pool.idle >= pool.handed.len() + usize::from(pool.lead_is_vacant) {
            self.pool_changed.notify_one();
        } else if pool.working() <= self.limits.threads && pool.blocked < MAX_ASIDE {
            // Without another thread, the job waits for an existing one.
            drop(self.spawn(pool));
        }
    }

    pub(crate) fn spawn(self: &Arc<Self>, pool: &mut Pool) -> io::Result<()> {
        let (stream, left) = (Arc::clone(self), self.leaver());
        pool.threads += 1;
        let spawned = std::thread::Builder::new().name("gudgeon".into()).spawn(move || {
            IS_OURS.set(true);
            let pin = Pin::new();
            stream.serve();
            drop(pin);
            drop(stream);
            left(|pool| {
                pool.threads -= 1;
                pool.ending -= 1;
            });
            gudgeon_allocator::release();
        });
        if spawned.is_err() {
            pool.threads -= 1;
        }
        spawned.map(drop)
    }

    /// Reports the end of a thread after it released the stream: the last owner should hold the interpreter, because
    /// dropped Python objects are freed only when the interpreter is entered.
    fn leaver(&self) -> impl Fn(fn(&mut Pool)) + use<> {
        let (pool, changed) = (Arc::clone(&self.pool), Arc::clone(&self.pool_changed));
        move |leave| {
            leave(&mut lock(&pool));
            changed.notify_all();
        }
    }

    /// The main function of a thread.
    fn serve(self: &Arc<Self>) {
        let mut pool = self.pool();
        // The time at which this thread ends if it gets no work.
        let mut idle_until = None;
        while !pool.stopped {
            if pool.lead_is_vacant {
                pool.lead_is_vacant = false;
                let epoch = pool.epoch;
                drop(pool);
                self.lead(epoch);
            } else if let Some(task) = pool.handed.pop_front() {
                drop(pool);
                self.work(&task);
            } else {
                let now = Instant::now();
                let left = idle_until.get_or_insert(now + IDLE).saturating_duration_since(now);
                if left.is_zero() {
                    break;
                }
                pool.idle += 1;
                let waited = self.pool_changed.wait_timeout(pool, left);
                pool = waited.unwrap_or_else(PoisonError::into_inner).0;
                pool.idle -= 1;
                continue;
            }
            idle_until = None;
            pool = self.pool();
            if self.is_surplus(&pool) {
                break;
            }
        }
        pool.ending += 1;
    }

    /// Returns `true` if there are too many threads, because threads that waited for clients have resumed.
    fn is_surplus(&self, pool: &Pool) -> bool {
        !pool.lead_is_vacant && pool.working() > self.limits.threads + 1
    }

    fn work(self: &Arc<Self>, task: &Task) {
        Python::attach(|py| self.perform(py, task));
        self.flush();
    }

    /// Writes queued replies, and waits only while the peer leaves too much unread: waiting for every byte would
    /// deadlock with a peer that writes before it reads.
    fn flush(&self) {
        self.server.try_flush();
        self.update_timer();
        while self.server.is_backed_up() && !self.pool().stopped {
            std::thread::sleep(MONITOR_TICK);
        }
    }

    fn lead(self: &Arc<Self>, epoch: u64) {
        LEADS.set(Some(epoch));
        match &*self.server {
            Source::Frames(frames) => self.lead_reading(frames, epoch),
            Source::Peers { .. } => self.lead_waiting(epoch),
        }
        LEADS.set(None);
    }

    /// The leader's loop without input of its own, until it loses the lead.
    fn lead_waiting(self: &Arc<Self>, epoch: u64) {
        while self.run_inline(epoch) {
            let mut pool = self.pool();
            while pool.inline.is_empty() && !pool.stopped {
                pool.leader_sleeps = true;
                pool = self.job_came.wait(pool).unwrap_or_else(PoisonError::into_inner);
                pool.leader_sleeps = false;
            }
            if pool.stopped {
                return;
            }
        }
    }

    /// The leader's loop that reads the input, until it loses the lead.
    fn lead_reading(self: &Arc<Self>, frames: &Frames, epoch: u64) {
        let mut buffer = ReadBuffer::default();
        loop {
            if !self.run_inline(epoch) {
                self.server.try_flush();
                // The new leader may sleep for longer than the handler's question may wait.
                self.update_timer();
                return;
            }
            self.server.try_flush();
            if self.server.is_broken() && !self.has_ended() {
                self.end();
            }
            let reads = !self.has_ended() && !self.server.is_full();
            let event = self.wait(frames, reads);
            self.leader.clear();
            if self.pool().stopped {
                return;
            }
            if self.server.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                let work = self.server.tick();
                self.distribute(work, true);
            }
            match event {
                Some(Event::Input) if !self.has_ended() => {
                    if let Some(work) = self.read(frames, &mut buffer) {
                        self.distribute(work, true);
                    }
                }
                Some(Event::PeerGone) if !self.has_ended() => self.end(),
                _ => (),
            }
        }
    }

    /// Sleeps until there is input, the peer is gone, or there is a deadline or a job.
    fn wait(&self, frames: &Frames, reads: bool) -> Option<Event> {
        // Set before the deadline is read: a deadline that changes afterwards wakes the leader.
        *lock(&self.leader_sleeps) = Sleep::Until(None);
        let deadline = self.server.deadline();
        *lock(&self.leader_sleeps) = Sleep::Until(deadline);
        let mut left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if !reads && !self.has_ended() {
            // The peer leaves too much unread or unanswered, and there is no notification when that ends.
            left = Some(left.map_or(ROOM_TICK, |left| left.min(ROOM_TICK)));
        }
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let output = frames.connection.output();
        let mut fds = [
            PollFd::new(&self.leader, PollFlags::IN),
            // Ready only once nobody reads it any more.
            PollFd::new(&output, PollFlags::empty()),
            PollFd::new(&frames.input, PollFlags::IN),
        ];
        let watched = match (self.has_ended(), reads) {
            (true, _) => 1,
            (false, false) => 2,
            (false, true) => 3,
        };
        let fds = &mut fds[..watched];
        // An interrupted system call: signals are handled by the main thread.
        let is_ready = poll(fds, timeout.as_ref()).is_ok_and(|ready| ready > 0);
        *lock(&self.leader_sleeps) = Sleep::Awake;
        let happened =
            |at: usize| is_ready && fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        // Messages that the peer sent before it left are still read.
        match (happened(2), happened(1)) {
            (true, _) => Some(Event::Input),
            (false, true) => Some(Event::PeerGone),
            (false, false) => None,
        }
    }

    fn read(&self, frames: &Frames, buffer: &mut ReadBuffer) -> Option<Work> {
        let mut decoder = lock(&frames.decoder);
        match buffer.read(&frames.input) {
            Ok([]) => Some(self.read_end(frames, &mut decoder)),
            Ok(chunk) => Some(frames.connection.feed(&mut decoder, chunk)),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => None,
                _ => Some(self.read_end(frames, &mut decoder)),
            },
        }
    }

    fn read_end(&self, frames: &Frames, decoder: &mut LineDecoder) -> Work {
        let mut work = frames.connection.end_of_input(decoder);
        work.extend(self.server.shut_down());
        self.end();
        work
    }

    /// Runs the leader's own jobs. Returns `false` if the lead was lost in the meantime.
    fn run_inline(self: &Arc<Self>, epoch: u64) -> bool {
        let mut next = self.next_inline(epoch);
        if matches!(next, Next::Run(_)) {
            next = Python::attach(|py| {
                let mut since = Instant::now();
                while let Next::Run(task) = next {
                    let flushes = !task.handler().is_quick() || since.elapsed() > FLUSH_AFTER;
                    let unwritten = self.server.unwritten();
                    if unwritten > FLUSH_BYTES || (flushes && unwritten > 0) {
                        py.detach(|| self.server.try_flush());
                        since = Instant::now();
                    }
                    self.perform(py, &task);
                    if self.server.is_backed_up() {
                        self.pause(epoch);
                        py.detach(|| self.flush());
                    }
                    next = self.next_inline(epoch);
                    if matches!(next, Next::Lost) {
                        task.handler().record_return();
                    }
                }
                next
            });
        }
        matches!(next, Next::Read)
    }

    /// Marks that no handler is running; only the peer can block the leader now.
    fn pause(&self, epoch: u64) {
        let mut pool = self.pool();
        if pool.epoch == epoch {
            pool.running = None;
        }
    }

    fn next_inline(&self, epoch: u64) -> Next {
        let mut pool = self.pool();
        if pool.epoch != epoch {
            return Next::Lost;
        }
        pool.serial += 1;
        let task = if pool.stopped { None } else { pool.inline.pop_front() };
        pool.running = task.as_ref().map(|task| Arc::clone(task.handler()));
        match task {
            None => Next::Read,
            Some(task) => {
                if pool.monitor_sleeps {
                    pool.monitor_sleeps = false;
                    self.monitor.notify_one();
                }
                Next::Run(task)
            }
        }
    }

    fn perform(self: &Arc<Self>, py: Python<'_>, task: &Task) {
        match task {
            Task::Handler(run) => self.run(py, run),
            Task::Deferred(deferred) => self.run_deferred(py, deferred),
            Task::Host(job) => self.run_for_core(py, job),
        }
    }

    /// Calls a `def` handler and reports its outcome.
    fn run(self: &Arc<Self>, py: Python<'_>, run: &Arc<HandlerRun>) {
        // Cancelled while it was queued.
        if run.is_cancelled() || self.postpones(run) {
            return;
        }
        let start = Instant::now();
        let result = self.enter(py, run);
        if self.is_forked_copy() {
            forks::leave(py, &result);
        }
        run.handler.took(start.elapsed());
        let outcome = convert::outcome(py, result, &run.handler.expose);
        self.returned(py, run, outcome);
    }

    fn enter<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        run: &Arc<HandlerRun>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let raw = PyBytes::new(py, run.take_input().as_bytes());
        let call = Bound::new(py, Call::new(self, run))?;
        let context = self.copied_context(py)?;
        let hooks = hooks::hooks(py)?;
        let (invoke, _) = run.handler.target();
        let args = (context, &hooks.enter, invoke, raw, call);
        calling::call(hooks.run_in_context.bind(py), args)
    }

    pub(crate) fn copied_context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        calling::call(hooks::hooks(py)?.copy_context.bind(py), (&self.context,))
    }

    /// Calls a `def` handler behind middleware, and resolves its caller's future.
    fn run_deferred(&self, py: Python<'_>, deferred: &DeferredCall) {
        if deferred.run.is_cancelled() {
            return;
        }
        let raw = PyBytes::new(py, deferred.input.as_bytes());
        let start = Instant::now();
        let run = pyo3::intern!(py, "run");
        let context = deferred.context.bind(py);
        let result =
            calling::call_method(context, run, (deferred.handler.inner(), raw, &deferred.call));
        if self.is_forked_copy() {
            forks::leave(py, &result);
        }
        deferred.handler.took(start.elapsed());
        let resolve = deferred.resolve.bind(py);
        let delivered = match result {
            Ok(reply) => calling::call(resolve, (reply, py.None())),
            Err(error) => calling::call(resolve, (py.None(), error.into_value(py))),
        };
        if let Err(error) = delivered {
            error.write_unraisable(py, None);
        }
    }
}
