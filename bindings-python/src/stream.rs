//! One source of calls being served: what is under way, and where each handler runs.

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use gudgeon::{
    driver::{Backend, Shell, Work},
    engine::Run,
    framing::DEFAULT_LINE_LIMIT,
    router::{Failure, Reply},
    session::CallId,
};
use pyo3::prelude::*;

use crate::{
    asking::Waiting, asyncio_queue::AsyncioQueue, forks, handler::PyHandler,
    handler_binding::HandlerBinding, hooks, listening::Listener, session_values::SessionValues,
    source::Source, waker::Waker,
};

/// Workers for slow `def` handlers, unless the user says otherwise.
const THREADS: usize = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) line: usize,
    pub(crate) threads: usize,
    pub(crate) io_threads: usize,
}

/// Shared by the pool's threads, the event loop's queue and whatever handlers hold.
pub(crate) struct Stream {
    pub(crate) server: Arc<Source>,
    /// The Python server whose handlers these are.
    pub(crate) app: Py<PyAny>,
    /// The `contextvars.Context` that every call gets a copy of.
    pub(crate) context: Py<PyAny>,
    pub(crate) limits: Limits,
    /// Threads share it beyond the stream, to say last of all that they have let go of that.
    pub(crate) pool: Arc<Mutex<Pool>>,
    /// Followers wait here, and who waits for threads to end.
    pub(crate) pool_changed: Arc<Condvar>,
    pub(crate) monitor: Condvar,
    /// Wakes the leader out of its poll, where it reads.
    pub(crate) leader: Waker,
    /// What the leader does, where it reads.
    pub(crate) leader_sleeps: Mutex<Sleep>,
    /// Wakes the leader where there is nothing to read.
    pub(crate) job_came: Condvar,
    /// The leader was not woken yet for what came.
    is_unannounced: AtomicBool,
    /// Wakes who waits for this stream to end, or for its wish of an event loop.
    pub(crate) status: Waker,
    pub(crate) asyncio_queue: AsyncioQueue,
    pub(crate) ended: AtomicBool,
    active_calls: Mutex<HashMap<CallId, ActiveCall>>,
    /// Handlers that wait for answers of the client.
    pub(crate) waiting: Waiting,
    pub(crate) sessions: SessionValues,
    /// What brings the calls, where that is ours.
    pub(crate) listener: Mutex<Option<Listener>>,
    /// The process that serves it.
    process: u32,
}

/// Threads and the jobs they share.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of another thread's")]
pub(crate) struct Pool {
    /// To be run by the leader, in place.
    pub(crate) inline: VecDeque<Job>,
    /// To be run by workers.
    pub(crate) handed: VecDeque<Job>,
    /// Counts leaders: one that no longer has the current number has lost the lead.
    pub(crate) epoch: u64,
    pub(crate) lead_is_vacant: bool,
    /// What the leader runs at this moment.
    pub(crate) running: Option<Arc<PyHandler>>,
    /// Counts what leaders ran.
    pub(crate) serial: u64,
    pub(crate) threads: usize,
    /// Those among them that wait for clients.
    pub(crate) blocked: usize,
    pub(crate) idle: usize,
    pub(crate) has_monitor: bool,
    pub(crate) monitor_sleeps: bool,
    /// The leader waits for a job.
    pub(crate) leader_sleeps: bool,
    pub(crate) stopped: bool,
}

impl Pool {
    /// Threads that have something to do, or wait for it.
    pub(crate) fn working(&self) -> usize {
        self.threads.saturating_sub(self.blocked)
    }
}

/// When the leader is to look at what was brought.
#[derive(Clone, Copy, Debug)]
enum Wake {
    /// It brought it itself.
    Never,
    Now,
    /// When all that came together is there.
    Soon,
}

/// What the thread that keeps the time does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Sleep {
    #[default]
    Awake,
    /// `None`: until somebody wakes it.
    Until(Option<Instant>),
}

/// A handler to be run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) handler: Arc<PyHandler>,
    pub(crate) input: String,
    pub(crate) binding: Arc<HandlerBinding>,
    pub(crate) is_notification: bool,
    pub(crate) deferred: Option<DeferredCall>,
}

/// Who waits on the event loop for a `def` handler behind middleware.
#[derive(Debug)]
pub(crate) struct DeferredCall {
    /// The `contextvars.Context` to run it in.
    pub(crate) context: Py<PyAny>,
    pub(crate) call: Py<PyAny>,
    /// `resolve(reply, error)`, called from any thread.
    pub(crate) resolve: Py<PyAny>,
}

/// A call that was handed out.
#[derive(Debug)]
struct ActiveCall {
    binding: Arc<HandlerBinding>,
    is_async: bool,
}

impl Limits {
    pub(crate) fn new(
        line: Option<usize>,
        threads: Option<usize>,
        io_threads: Option<usize>,
    ) -> Self {
        Self {
            line: line.unwrap_or(DEFAULT_LINE_LIMIT),
            threads: threads.unwrap_or(THREADS).max(1),
            io_threads: io_threads.unwrap_or(1).max(1),
        }
    }
}

impl Stream {
    pub(crate) fn open(
        server: Arc<Source>,
        app: Py<PyAny>,
        context: Py<PyAny>,
        limits: Limits,
    ) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            server,
            app,
            context,
            limits,
            pool: Arc::new(Mutex::new(Pool { lead_is_vacant: true, ..Pool::default() })),
            pool_changed: Arc::default(),
            monitor: Condvar::new(),
            leader: Waker::new()?,
            leader_sleeps: Mutex::default(),
            job_came: Condvar::new(),
            is_unannounced: AtomicBool::new(false),
            status: Waker::new()?,
            asyncio_queue: AsyncioQueue::new()?,
            ended: AtomicBool::new(false),
            active_calls: Mutex::default(),
            waiting: Waiting::default(),
            sessions: SessionValues::default(),
            listener: Mutex::default(),
            process: forks::generation(),
        }))
    }

    pub(crate) fn pool(&self) -> MutexGuard<'_, Pool> {
        lock(&self.pool)
    }

    /// Asks for the end in good order, which may take a while where others bring the calls.
    pub(crate) fn wind_down(self: &Arc<Self>) {
        if let Some(listener) = &*lock(&self.listener) {
            listener.end(self);
            return;
        }
        if let Source::Frames(frames) = &*self.server {
            self.distribute(frames.server.shut_down(), false);
        }
        self.end();
    }

    /// Nothing more is read.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake_leader();
        self.status.wake();
    }

    /// There is something to do for the leader that it does not know of.
    pub(crate) fn wake_leader(&self) {
        match &*self.server {
            Source::Frames(_) => self.leader.wake(),
            Source::Peers { .. } => self.job_came.notify_all(),
        }
    }

    /// Others than the leader may have brought the next deadline nearer: a leader that sleeps beyond it is woken.
    pub(crate) fn update_timer(&self) {
        if let Source::Frames(frames) = &*self.server
            && let Some(deadline) = frames.server.deadline()
            && let Sleep::Until(end) = *lock(&self.leader_sleeps)
            && end.is_none_or(|it| deadline < it)
        {
            self.leader.wake();
        }
    }

    /// Whether this process is a copy of the one that serves it.
    pub(crate) fn is_another_processes(&self) -> bool {
        self.process != forks::generation()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Sends every handler to where it is to run. Others than the leader wake it for what is its to do.
    pub(crate) fn distribute(self: &Arc<Self>, work: Work, from_leader: bool) {
        self.sort(work, if from_leader { Wake::Never } else { Wake::Now });
    }

    /// The threads that move bytes have nothing more to bring for now.
    pub(crate) fn announce(&self) {
        if self.is_unannounced.swap(false, Ordering::AcqRel) {
            self.wake_sleeping_leader(&mut self.pool());
        }
    }

    /// Whoever else comes before it is awake need not wake it again.
    pub(crate) fn wake_sleeping_leader(&self, pool: &mut Pool) {
        if pool.leader_sleeps && !pool.inline.is_empty() {
            pool.leader_sleeps = false;
            self.job_came.notify_one();
        }
    }

    fn sort(self: &Arc<Self>, work: Work, wake: Wake) {
        let Work { mut runs, cancels, resumes, answers, reports, details, wake: alarm } = work;
        for (call, context) in resumes {
            if let Some(active) = lock(&self.active_calls).get(&call) {
                active.binding.resume(context);
            }
        }
        self.waiting.settle(answers);
        // Asked for and given up within one batch: nobody waits for it.
        runs.retain(|it| it.is_notification || !cancels.contains(&it.context.call));
        for call in cancels {
            let active = lock(&self.active_calls).remove(&call);
            // Before its questions are forgotten: one that it asks after that is seen to be too late.
            if let Some(active) = &active {
                active.binding.cancel();
            }
            self.waiting.forget(call);
            if active.is_some_and(|it| it.is_async) {
                self.asyncio_queue.cancel(self, call);
            }
        }
        if !runs.is_empty() {
            self.start(runs, wake);
        }
        if !reports.is_empty() {
            Python::attach(|py| hooks::report(py, &reports));
        }
        if !details.is_empty() {
            Python::attach(|py| hooks::detail(py, &details));
        }
        if alarm.is_some()
            && let Source::Peers { notifier: Some(notifier), .. } = &*self.server
        {
            notifier.sound_alarm();
        }
    }

    fn start(self: &Arc<Self>, runs: Vec<Run>, wake: Wake) {
        let mut pool = self.pool();
        let mut active_calls = lock(&self.active_calls);
        for run in runs {
            let Ok(handler) = run.handler.downcast::<PyHandler>() else { continue };
            let Run { input, context, is_notification, .. } = run;
            let binding = HandlerBinding::new(context);
            let is_async = handler.is_async();
            if !is_notification {
                let active = ActiveCall { binding: Arc::clone(&binding), is_async };
                active_calls.insert(binding.handler(), active);
            }
            let job = Job { handler, input, binding, is_notification, deferred: None };
            if is_async {
                self.asyncio_queue.start(self, job);
            } else {
                self.queue(&mut pool, job);
            }
        }
        self.wake(&mut pool, wake);
    }

    /// Runs a `def` handler on a thread of the pool, for who waits on the event loop.
    pub(crate) fn start_behind(self: &Arc<Self>, job: Job) {
        let mut pool = self.pool();
        self.queue(&mut pool, job);
        self.wake(&mut pool, Wake::Now);
    }

    fn queue(self: &Arc<Self>, pool: &mut Pool, job: Job) {
        if job.handler.wants_worker() {
            pool.handed.push_back(job);
            self.call_worker(pool);
        } else {
            pool.inline.push_back(job);
        }
    }

    fn wake(&self, pool: &mut Pool, wake: Wake) {
        match (&*self.server, wake) {
            (_, Wake::Never) => (),
            (Source::Frames(_), _) => self.leader.wake(),
            // If the bringer is too busy to say so, the monitor sees it.
            (Source::Peers { .. }, Wake::Soon) if !pool.monitor_sleeps => {
                self.is_unannounced.store(true, Ordering::Release);
            }
            (Source::Peers { .. }, _) => self.wake_sleeping_leader(pool),
        }
    }

    /// Reports what a handler came to. The reply is queued, not yet written.
    pub(crate) fn done(
        self: &Arc<Self>,
        call: CallId,
        is_notification: bool,
        outcome: Result<Reply, Failure>,
    ) {
        if is_notification && let Err(Failure::Exception { kind, message, traceback }) = &outcome {
            let text =
                format!("the listener to a notification failed: {kind}: {message}\n{traceback}");
            Python::attach(|py| hooks::report(py, &[text]));
        }
        lock(&self.active_calls).remove(&call);
        self.waiting.forget(call);
        let work = self.server.done(call, outcome);
        if !work.is_empty() {
            self.distribute(work, false);
        }
        if self.has_ended() {
            self.status.wake();
        }
    }
}

/// What moves the bytes of peers, on threads of its own, hands calls to a stream.
#[derive(Debug)]
pub(crate) struct Feed(pub(crate) Arc<Stream>);

impl Shell for Feed {
    fn run(&self, work: Work) {
        self.0.sort(work, Wake::Soon);
    }
}

/// A panic while it was held is a bug of ours; one call's loss must not become everybody's.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("ended", &self.ended).finish_non_exhaustive()
    }
}
