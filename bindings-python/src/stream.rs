//! A served source of calls: the calls in flight, and the thread or loop that each handler runs on.

use std::{
    collections::VecDeque,
    fmt, io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use gudgeon::{
    bindings::upstreams::{UpstreamServing, Upstreams},
    driver::{SessionTable, Watchdog, Work},
    engine::{Effect, RunId, Ticket},
    log_events::LogEvent,
    router::Failure,
};
use pyo3::{prelude::*, types::PyDict};
use rustc_hash::FxHashMap;

use crate::{
    asking::Waiting,
    asyncio_queue::AsyncioQueue,
    calling,
    convert::{self, Outcome, Thrown},
    forks,
    handler::{Handler, VisibilityFilter},
    handler_run::HandlerRun,
    hooks,
    host_requests::HostJob,
    listening::Listener,
    server::NativeServer,
    serving_limits::Limits,
    source::Source,
    spans,
    waker::Waker,
};

/// Shared by the threads of the pool, the asyncio queue and the call objects of handlers.
pub(crate) struct Stream {
    pub(crate) server: Arc<Source>,
    /// The Python server that owns the handlers.
    pub(crate) app: Py<PyAny>,
    /// The `contextvars.Context` that is copied for every call.
    pub(crate) context: Py<PyAny>,
    pub(crate) limits: Limits,
    pub(crate) visibility_filter: VisibilityFilter,
    pub(crate) upstreams: Arc<Upstreams>,
    /// Runs native handlers, while there are upstream servers.
    pub(crate) upstream_serving: Mutex<Option<UpstreamServing>>,
    /// Threads keep it longer than the stream, to report that they have released the stream.
    pub(crate) pool: Arc<Mutex<Pool>>,
    /// Notified when threads wait for work, and when threads end.
    pub(crate) pool_changed: Arc<Condvar>,
    pub(crate) monitor: Condvar,
    /// Wakes the leader from its poll, if it reads the input.
    pub(crate) leader: Waker,
    /// The state of a leader that reads the input.
    pub(crate) leader_sleeps: Mutex<Sleep>,
    /// Notified when a job arrives, if the leader does not read the input.
    pub(crate) job_came: Condvar,
    /// `true` if jobs have arrived that the leader has not been woken for.
    is_unannounced: AtomicBool,
    /// Readable when the stream has ended or needs an event loop.
    pub(crate) status: Waker,
    pub(crate) asyncio_queue: AsyncioQueue,
    pub(crate) ended: AtomicBool,
    /// The handlers of requests that have not ended.
    active_runs: Mutex<FxHashMap<RunId, Arc<HandlerRun>>>,
    /// Handlers that wait for answers of the client.
    pub(crate) waiting: Waiting,
    pub(crate) sessions: Mutex<SessionTable<Py<PyDict>>>,
    /// The listener that brings the calls, if the stream has one.
    pub(crate) listener: Mutex<Option<Listener>>,
    /// The watchdog of the process, if the stream owns it.
    pub(crate) watchdog: OnceLock<Watchdog>,
    /// The id of the process that serves the stream.
    process: u32,
}

/// The threads and their job queues.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of another thread's")]
pub(crate) struct Pool {
    /// Tasks that the leader runs itself.
    pub(crate) inline: VecDeque<Task>,
    /// Tasks for worker threads.
    pub(crate) handed: VecDeque<Task>,
    /// The number of the current leadership; a leader with an older number has lost the lead.
    pub(crate) epoch: u64,
    pub(crate) lead_is_vacant: bool,
    /// The handler that the leader is running.
    pub(crate) running: Option<Handler>,
    /// The number of handlers that leaders have run.
    pub(crate) serial: u64,
    pub(crate) threads: usize,
    /// The number of threads that take no more tasks. They may have to wait for the interpreter before they are gone.
    pub(crate) ending: usize,
    /// The number of threads that wait for clients.
    pub(crate) blocked: usize,
    pub(crate) idle: usize,
    pub(crate) has_monitor: bool,
    pub(crate) monitor_sleeps: bool,
    /// `true` while the leader waits for a job.
    pub(crate) leader_sleeps: bool,
    pub(crate) stopped: bool,
}

impl Pool {
    /// Returns the number of threads that are working or waiting for work.
    pub(crate) fn working(&self) -> usize {
        self.threads.saturating_sub(self.blocked + self.ending)
    }

    /// Returns whether the leader sleeps and has jobs. Marks it as awake then, so that it is woken once.
    fn wakes_leader(&mut self) -> bool {
        let wakes = self.leader_sleeps && !self.inline.is_empty();
        self.leader_sleeps &= !wakes;
        wakes
    }
}

/// The way in which the leader is woken for new jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    /// The leader brought the jobs itself.
    Never,
    Now,
    /// After all jobs of one batch have been queued.
    Soon,
}

/// The state of the thread that keeps the deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Sleep {
    #[default]
    Awake,
    /// Sleeping until this time; `None`: until woken.
    Until(Option<Instant>),
}

/// A Python function that a thread of the pool calls.
#[derive(Debug)]
pub(crate) enum Task {
    Handler(Arc<HandlerRun>),
    Deferred(Box<DeferredCall>),
    Host(HostJob),
}

/// A `def` handler behind middleware whose caller waits on the event loop.
#[derive(Debug)]
pub(crate) struct DeferredCall {
    pub(crate) handler: Handler,
    pub(crate) input: String,
    /// The run of the middleware.
    pub(crate) run: Arc<HandlerRun>,
    /// The `contextvars.Context` to run the handler in.
    pub(crate) context: Py<PyAny>,
    pub(crate) call: Py<PyAny>,
    /// `resolve(reply, error)`; may be called from any thread.
    pub(crate) resolve: Py<PyAny>,
}

impl Task {
    pub(crate) fn handler(&self) -> &Handler {
        match self {
            Self::Handler(run) => &run.handler,
            Self::Deferred(deferred) => &deferred.handler,
            Self::Host(job) => &job.handler,
        }
    }

    fn is_request(&self, ticket: Ticket) -> bool {
        matches!(self, Self::Host(job) if job.ticket == ticket)
    }
}

impl Stream {
    pub(crate) fn open(
        server: Arc<Source>,
        app: Py<PyAny>,
        context: Py<PyAny>,
        of: &NativeServer,
    ) -> io::Result<Arc<Self>> {
        if Python::attach(spans::are_wanted) {
            of.components.snapshot().server.traces.turn_on();
        }
        Ok(Arc::new(Self {
            server,
            app,
            context,
            limits: of.limits(),
            visibility_filter: of.visibility_filter(),
            upstreams: of.upstreams(),
            upstream_serving: Mutex::default(),
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
            active_runs: Mutex::default(),
            waiting: Waiting::default(),
            sessions: Mutex::default(),
            listener: Mutex::default(),
            watchdog: OnceLock::new(),
            process: forks::generation(),
        }))
    }

    pub(crate) fn pool(&self) -> MutexGuard<'_, Pool> {
        lock(&self.pool)
    }

    /// Requests a graceful end; with a listener it may take a while.
    pub(crate) fn wind_down(self: &Arc<Self>) {
        if let Some(listener) = &*lock(&self.listener) {
            listener.end(self);
            return;
        }
        if let Source::Frames(_) = &*self.server {
            self.distribute(self.server.shut_down(), false);
        }
        self.end();
    }

    /// Stops reading the input.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        if let Some(watchdog) = self.watchdog.get() {
            watchdog.end_of_input();
        }
        self.wake_leader();
        self.status.wake();
    }

    /// Wakes the leader for new jobs.
    pub(crate) fn wake_leader(&self) {
        match &*self.server {
            Source::Frames(_) => self.leader.wake(),
            Source::Peers { .. } => self.job_came.notify_all(),
        }
    }

    /// Wakes a sleeping leader if the next deadline is earlier than the time it sleeps until.
    pub(crate) fn update_timer(&self) {
        if let Source::Frames(_) = &*self.server
            && let Some(deadline) = self.server.deadline()
            && let Sleep::Until(end) = *lock(&self.leader_sleeps)
            && end.is_none_or(|end| deadline < end)
        {
            self.leader.wake();
        }
    }

    /// Returns `true` in a fork of the process that serves the stream.
    pub(crate) fn is_forked_copy(&self) -> bool {
        self.process != forks::generation()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Queues every handler run where it belongs. If the caller is not the leader, the leader is woken for its jobs.
    pub(crate) fn distribute(self: &Arc<Self>, work: Work, from_leader: bool) {
        self.sort(work, if from_leader { Wake::Never } else { Wake::Now });
    }

    /// Wakes the leader after the IO threads have queued a batch.
    pub(crate) fn announce(&self) {
        if self.is_unannounced.swap(false, Ordering::AcqRel) {
            let is_to_be_woken = self.pool().wakes_leader();
            // Without the lock, for which the leader would wait at once.
            if is_to_be_woken {
                self.job_came.notify_one();
            }
        }
    }

    /// Wakes a sleeping leader if it has jobs.
    pub(crate) fn wake_sleeping_leader(&self, pool: &mut Pool) {
        if pool.wakes_leader() {
            self.job_came.notify_one();
        }
    }

    pub(crate) fn sort(self: &Arc<Self>, work: Work, wake: Wake) {
        let alarm = work.wake;
        // Handlers that begin together take the locks once.
        let mut runs = Vec::new();
        for effect in work {
            match effect {
                Effect::Run(run) => runs.extend(HandlerRun::new(*run, &self.upstreams)),
                other => {
                    self.start(std::mem::take(&mut runs), wake);
                    self.go_on(other, wake);
                }
            }
        }
        self.start(runs, wake);
        if alarm.is_some()
            && let Source::Peers { notifier: Some(notifier), .. } = &*self.server
        {
            notifier.sound_alarm();
        }
    }

    /// Continues or cancels a handler, or takes a request to the host.
    fn go_on(self: &Arc<Self>, effect: Effect, wake: Wake) {
        match effect {
            Effect::Resume { run, context } => {
                if let Some(run) = lock(&self.active_runs).get(&run) {
                    run.resume(*context);
                }
            }
            Effect::Answered { run, ask, outcome } => self.waiting.settle(run, ask, *outcome),
            Effect::Cancel(id) => {
                let run = lock(&self.active_runs).remove(&id);
                // Set before its questions are dropped, so that a later question fails.
                if let Some(run) = &run {
                    run.cancel();
                }
                self.waiting.forget(id);
                if run.is_some_and(|run| run.handler.is_async()) {
                    self.asyncio_queue.cancel(self, id);
                }
            }
            Effect::Host(ticket, request) => self.answer(ticket, *request, wake),
            Effect::CancelHost(ticket) => {
                let mut pool = self.pool();
                pool.inline.retain(|effect| !effect.is_request(ticket));
                pool.handed.retain(|effect| !effect.is_request(ticket));
            }
            Effect::Log(event) => Python::attach(|py| hooks::report(py, &event)),
            Effect::Span(request) => Python::attach(|py| spans::record(py, &request)),
            // Done by the caller, or by the native host, which looks after resources of other servers.
            Effect::Run(_) | Effect::Subscribed { .. } => {}
        }
    }

    fn start(self: &Arc<Self>, runs: Vec<Arc<HandlerRun>>, wake: Wake) {
        if runs.is_empty() {
            return;
        }
        let mut has_async = false;
        let mut pool = self.pool();
        let mut active_runs = lock(&self.active_runs);
        for run in runs {
            if !run.is_notification {
                active_runs.insert(run.id, Arc::clone(&run));
            }
            if run.handler.is_async() {
                has_async = true;
                self.asyncio_queue.start(run);
            } else {
                self.queue(&mut pool, Task::Handler(run));
            }
        }
        self.wake(&mut pool, wake);
        drop(active_runs);
        drop(pool);
        // Without the locks, for which the event loop would wait at once.
        if has_async {
            match wake {
                Wake::Soon => self.asyncio_queue.wake_soon(),
                Wake::Never | Wake::Now => self.asyncio_queue.wake(self),
            }
        }
    }

    /// Hands a handler back to the core if its client leaves too much unread. Returns whether it did.
    pub(crate) fn postpones(self: &Arc<Self>, run: &HandlerRun) -> bool {
        if !self.server.has_backlog() || run.look(|first| self.server.may_start(run.id, first)) {
            return false;
        }
        lock(&self.active_runs).remove(&run.id);
        self.distribute(self.server.postpone(run.take_back()), false);
        true
    }

    /// Runs a `def` handler on a thread of the pool, for a caller on the event loop.
    pub(crate) fn start_deferred(self: &Arc<Self>, deferred: DeferredCall) {
        let mut pool = self.pool();
        self.queue(&mut pool, Task::Deferred(Box::new(deferred)));
        self.wake(&mut pool, Wake::Now);
    }

    pub(crate) fn queue(self: &Arc<Self>, pool: &mut Pool, task: Task) {
        if task.handler().wants_worker() {
            pool.handed.push_back(task);
            self.call_worker(pool);
        } else {
            pool.inline.push_back(task);
        }
    }

    pub(crate) fn wake(&self, pool: &mut Pool, wake: Wake) {
        match (&*self.server, wake) {
            (_, Wake::Never) => (),
            (Source::Frames(_), _) => self.leader.wake(),
            // If the IO threads are too busy to wake the leader, the monitor does.
            (Source::Peers { .. }, Wake::Soon) if !pool.monitor_sleeps => {
                self.is_unannounced.store(true, Ordering::Release);
            }
            (Source::Peers { .. }, _) => self.wake_sleeping_leader(pool),
        }
    }

    /// Reports the outcome of a handler that has returned. Other threads run Python while a long reply is converted.
    pub(crate) fn returned(self: &Arc<Self>, py: Python<'_>, run: &HandlerRun, outcome: Outcome) {
        let outcome = match run.session.get() {
            None => outcome,
            Some(values) => self.leave_session(py, run, values, outcome),
        };
        match outcome.is_long() {
            true => py.detach(|| self.done(run, outcome)),
            false => self.done(run, outcome),
        }
    }

    /// Notes the values of the session as a handler leaves them, for the store. Returns the failure if they are not JSON.
    fn leave_session(
        &self,
        py: Python<'_>,
        run: &HandlerRun,
        values: &Py<PyDict>,
        outcome: Outcome,
    ) -> Outcome {
        let json = || {
            let json = calling::call(hooks::hooks(py)?.session_json.bind(py), (values,))?;
            json.extract::<String>()
        };
        let client = run.look(|context| Arc::clone(&context.client));
        let json = json();
        let left = {
            let mut sessions = lock(&self.sessions);
            if let Ok(values) = &json {
                Some(sessions.changes_of(&client, values))
            } else {
                sessions.spoil(&client);
                None
            }
        };
        if let Some(left) = left {
            self.server.left_values(run.id, left);
        }
        match json {
            Ok(_) => (),
            Err(error) if outcome.result.is_ok() => {
                return convert::outcome(py, Err(error), &run.handler.expose);
            }
            Err(error) => {
                let text = "the values of ctx.session are not stored";
                hooks::report_exception(py, text, &error.into_value(py).into_any());
            }
        }
        outcome
    }

    /// Reports a handler's outcome. The reply is queued, not yet written.
    pub(crate) fn done(self: &Arc<Self>, run: &HandlerRun, outcome: Outcome) {
        let Outcome { result, thrown } = outcome;
        if run.is_notification
            && let Err(Failure::Exception { kind, message, .. }) = &result
        {
            let text = format!("the handler of a notification failed: {kind}: {message}");
            Python::attach(|py| match &thrown {
                Some(thrown) => hooks::report_exception(py, &text, &thrown.error),
                None => hooks::report(py, &LogEvent::problem(text)),
            });
        }
        lock(&self.active_runs).remove(&run.id);
        if run.has_asked() {
            self.waiting.forget(run.id);
        }
        self.hand_out(self.server.done(run.id, result), thrown);
    }

    /// Distributes what comes of a function's outcome. `thrown`: what it raised.
    pub(crate) fn hand_out(self: &Arc<Self>, mut work: Work, thrown: Option<Thrown>) {
        if let Some(thrown) = thrown {
            report_thrown(&mut work, &thrown);
        }
        if !work.is_empty() {
            self.distribute(work, false);
        }
        if self.has_ended() {
            self.status.wake();
        }
    }
}

/// Logs the report of a handler's exception with the exception itself; programs that collect errors want the object.
fn report_thrown(work: &mut Work, thrown: &Thrown) {
    let traceback = thrown.traceback.trim_end();
    if traceback.is_empty() {
        return;
    }
    work.retain_reports(|event| {
        let Some(place) = event.detail().trim_end().strip_suffix(traceback) else { return true };
        Python::attach(|py| hooks::report_raised(py, place.trim_end(), &thrown.error, event));
        false
    });
}

/// A poisoned lock is a bug of ours; the loss of one call must not stop the others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("ended", &self.ended).finish_non_exhaustive()
    }
}
