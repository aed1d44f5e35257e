//! Runs the handlers of a connection: fast ones in place, waiting ones on tasks, slow ones on threads.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;
use tokio::{runtime::Handle, sync::Notify};
use tracing::{Instrument as _, Span};

#[cfg(feature = "bindings")]
use super::nested::Nested;
use super::{
    Context,
    connection::Connection,
    handler::{BoxFuture, Erased, Outcome},
    middleware,
    session::Sessions,
    spans,
    visible::VisibilityFilter,
    workers::Workers,
};
use crate::{
    clock,
    driver::{Host, Work, stderr},
    engine::{Effect, HostReply, HostRequest, Run, RunId},
    log_limit::LeftOut,
    router::Failure,
    session::{asking::AskId, server::CallContext},
};

pub(super) struct Runner {
    connection: Arc<Connection>,
    visibility_filter: Arc<VisibilityFilter>,
    runtime: Handle,
    workers: Workers,
    sessions: Sessions,
    under_way: Mutex<FxHashMap<RunId, Context>>,
    #[cfg(feature = "bindings")]
    nested: Nested,
    /// The deadline that the timer waits for.
    next_deadline: Mutex<Option<Instant>>,
    rescheduled: Notify,
    answered: Notify,
    /// The number of handlers that were started.
    started: AtomicU64,
}

/// The number of handlers that are being polled on threads of tokio runtimes.
static ON_RUNTIMES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// `true` if the thread belongs to a server and not to a runtime.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Marks the current thread as one that no runtime waits for.
pub(super) fn mark_own_thread() {
    IS_OURS.set(true);
}

/// Returns whether a handler occupies a thread of a runtime at this moment.
pub(super) fn blocks_runtime() -> bool {
    ON_RUNTIMES.load(Ordering::Relaxed) > 0
}

impl Runner {
    /// Creates a runner on the current tokio runtime.
    pub(super) fn new(
        connection: Arc<Connection>,
        visibility_filter: Arc<VisibilityFilter>,
    ) -> Arc<Self> {
        Arc::new(Self {
            connection,
            visibility_filter,
            runtime: Handle::current(),
            workers: Workers::default(),
            sessions: Sessions::default(),
            under_way: Mutex::default(),
            #[cfg(feature = "bindings")]
            nested: Nested::default(),
            next_deadline: Mutex::default(),
            rescheduled: Notify::new(),
            answered: Notify::new(),
            started: AtomicU64::new(0),
        })
    }

    /// Returns the values that handlers keep for the lifetime of a session.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the number of handlers that were started so far.
    #[cfg(unix)]
    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// Returns a function that returns the names of the components whose handlers run.
    pub(super) fn running(self: &Arc<Self>) -> impl Fn() -> Vec<String> + Send + use<> {
        let runner = Arc::downgrade(self);
        move || runner.upgrade().map(|runner| runner.connection.running()).unwrap_or_default()
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Does the work, and the work that results from it. Must be called inside the runtime.
    pub(super) fn perform(self: &Arc<Self>, mut work: Work) {
        let mut has_flushed = false;
        while let Some(effect) = work.pop() {
            match effect {
                Effect::Run(run) => {
                    let begun = self.start(*run);
                    match self.connection.host() {
                        None => work.extend(begun),
                        Some(host) => host.perform(begun),
                    }
                }
                Effect::Cancel(run) => self.cancel(run),
                Effect::Resume { run, context } => self.resume(run, *context),
                Effect::Answered { run, ask, outcome } => {
                    if let Some(context) = self.asker(run, ask) {
                        context.answered(ask, *outcome);
                    }
                }
                Effect::Subscribed { handler, uri } => {
                    if let Some(on_subscribed) = &Erased::from_kept(&handler).on_subscribed {
                        on_subscribed(uri);
                    }
                }
                Effect::Host(ticket, request) => {
                    work.extend(self.connection.host_reply(ticket, self.decide(&request)));
                }
                // It was answered at once.
                Effect::CancelHost(_) => (),
                Effect::Span(request) => spans::record(&request),
                Effect::Log(event) => {
                    // The reply of the call is not delayed by the program's subscriber.
                    if !std::mem::replace(&mut has_flushed, true) {
                        self.connection.flush();
                    }
                    event.write(LeftOut::default());
                    stderr::write(&event.to_string());
                }
            }
        }
    }

    /// Does the work that comes of the report of a handler.
    pub(super) fn hand_on(self: &Arc<Self>, work: Work) {
        match self.connection.host() {
            None => self.perform(work),
            Some(host) => host.perform(work),
        }
    }

    fn context_of(&self, run: RunId) -> Option<Context> {
        lock(&self.under_way).get(&run).cloned()
    }

    /// Returns the context of the handler that asked a question.
    fn asker(&self, run: RunId, ask: AskId) -> Option<Context> {
        let own = self.context_of(run);
        #[cfg(feature = "bindings")]
        let own = own.or_else(|| self.nested.asker(run, ask));
        #[cfg(not(feature = "bindings"))]
        let _ = ask;
        own
    }

    fn resume(&self, run: RunId, context: CallContext) {
        #[cfg(feature = "bindings")]
        for suspended in self.nested.of_run(run) {
            suspended.resumed(context.clone());
        }
        if let Some(suspended) = self.context_of(run) {
            suspended.resumed(context);
        }
    }

    /// Flushes the connection and updates the timer after a batch.
    pub(super) fn settle(&self) {
        self.connection.flush();
        self.schedule();
    }

    pub(super) fn schedule(&self) {
        if let Some(deadline) = self.connection.alarm() {
            let mut next = lock(&self.next_deadline);
            if next.is_none_or(|current| deadline < current) {
                *next = Some(deadline);
                self.rescheduled.notify_one();
            }
        }
    }

    /// Sends a tick at each deadline; never returns.
    pub(super) async fn keep_time(self: Arc<Self>) {
        loop {
            let deadline = self.connection.alarm();
            *lock(&self.next_deadline) = deadline;
            let Some(deadline) = deadline else {
                self.rescheduled.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(deadline.into()) => {
                    let work = self.connection.tick();
                    self.perform(work);
                    self.settle();
                    self.answered.notify_waiters();
                }
                () = self.rescheduled.notified() => (),
            }
        }
    }

    /// Lets pending calls finish within the grace period and cancels the rest.
    pub(super) async fn wind_down(self: &Arc<Self>, grace: Duration) {
        let all_answered = async {
            loop {
                let mut answered = std::pin::pin!(self.answered.notified());
                answered.as_mut().enable();
                if self.connection.in_flight() == 0 {
                    return;
                }
                answered.await;
            }
        };
        let _ = tokio::time::timeout(grace, all_answered).await;
        self.stop();
    }

    /// Cancels all calls.
    pub(super) fn stop(&self) {
        drop(self.connection.close());
        for context in lock(&self.under_way).drain().map(|(_, context)| context) {
            context.cancel();
        }
        #[cfg(feature = "bindings")]
        self.nested.take(None).iter().for_each(Context::cancel);
    }

    fn decide(&self, request: &HostRequest) -> HostReply {
        match request {
            HostRequest::FilterVisible { context, components } => {
                let principal = context.principal.as_deref();
                HostReply::Visible(self.visibility_filter.answer(principal, components))
            }
        }
    }

    fn start(self: &Arc<Self>, run: Run) -> Work {
        let handler = Erased::from_kept(&run.handler);
        if !handler.pace.is_quick() {
            self.start_on_thread(handler, run);
            return Work::default();
        }
        if !self.connection.may_start(run.id, &run.context) {
            return self.connection.postpone(run);
        }
        let Run { id, input, context, is_notification, middleware_frame, subject, .. } = run;
        let span = subject.map(|subject| spans::of_handler(&subject, &context));
        let context = self.begin(id, context);
        let future = middleware::around(&handler, middleware_frame, input, context.clone());
        let future = within(span, future);
        let mut running = Running { future, handler };
        let mut unheard = std::task::Context::from_waker(Waker::noop());
        // The task polls the future again, which registers the task's own waker.
        if let Poll::Ready(outcome) = Pin::new(&mut running).poll(&mut unheard) {
            return self.finish(id, is_notification, outcome);
        }
        let runner = Arc::clone(self);
        drop(self.runtime.spawn(runner.run(id, is_notification, context, running)));
        Work::default()
    }

    /// Starts a slow handler on a thread of its own. It may have to wait by then, for the answers of those before it.
    fn start_on_thread(self: &Arc<Self>, handler: Arc<Erased>, run: Run) {
        let context = self.begin(run.id, run.context.clone());
        let runner = Arc::clone(self);
        let task = async move {
            if context.is_cancelled() {
                return;
            }
            if !runner.connection.may_start(run.id, &run.context) {
                lock(&runner.under_way).remove(&run.id);
                let work = runner.connection.postpone(run);
                runner.hand_on(work);
                runner.settle();
                return;
            }
            let span = run.subject.map(|subject| spans::of_handler(&subject, &run.context));
            let Run { id, input, is_notification, middleware_frame, .. } = run;
            let future = middleware::around(&handler, middleware_frame, input, context.clone());
            let future = within(span, future);
            runner.run(id, is_notification, context, Running { future, handler }).await;
        };
        self.workers.spawn(self.runtime.clone(), task);
    }

    /// Counts a handler as under way, and returns the context of its call.
    fn begin(self: &Arc<Self>, run: RunId, context: CallContext) -> Context {
        self.started.fetch_add(1, Ordering::Relaxed);
        let context =
            Context::new(run, context, Arc::clone(&self.connection), Arc::downgrade(self));
        lock(&self.under_way).insert(run, context.clone());
        context
    }

    /// Runs a handler to its end, unless its call is cancelled.
    async fn run(
        self: Arc<Self>,
        run: RunId,
        is_notification: bool,
        context: Context,
        running: Running,
    ) {
        let outcome = tokio::select! {
            biased;
            () = context.cancelled() => return,
            outcome = running => outcome,
        };
        let work = self.finish(run, is_notification, outcome);
        self.hand_on(work);
        self.settle();
        self.answered.notify_waiters();
    }

    /// Runs a native handler within a run of another host, with this context, and calls `done` with its outcome. Several may run
    /// within one.
    #[cfg(feature = "bindings")]
    pub(super) fn pass_on(
        self: &Arc<Self>,
        run: RunId,
        context: CallContext,
        handler: &Arc<Erased>,
        input: String,
        done: impl FnOnce(Outcome) + Send + 'static,
    ) {
        self.started.fetch_add(1, Ordering::Relaxed);
        let context =
            Context::new(run, context, Arc::clone(&self.connection), Arc::downgrade(self));
        self.nested.add(run, &context, || self.connection.share_run(run, true));
        let (runner, calling) = (Arc::clone(self), handler.call(input, context.clone()));
        self.runtime.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = context.cancelled() => Err(Failure::Cancelled),
                outcome = super::context::asking::within("upstream", calling) => outcome,
            };
            context.end();
            runner.nested.remove(run, &context, || runner.connection.share_run(run, false));
            done(outcome);
        });
    }

    fn finish(&self, run: RunId, is_notification: bool, outcome: Outcome) -> Work {
        if is_notification && let Err(failure) = &outcome {
            report(&format!("a notification's handler failed: {failure:?}"));
        }
        let context = lock(&self.under_way).remove(&run);
        if let Some(context) = context {
            context.end();
            if let Some(left) = context.left_values(&self.sessions) {
                self.connection.left_values(run, left);
            }
        }
        self.connection.done(run, outcome)
    }

    fn cancel(&self, run: RunId) {
        let context = lock(&self.under_way).remove(&run);
        if let Some(context) = context {
            context.cancel();
        }
        #[cfg(feature = "bindings")]
        self.nested.take(Some(run)).iter().for_each(Context::cancel);
        self.answered.notify_waiters();
    }
}

impl Host for Arc<Runner> {
    fn perform(&self, work: Work) {
        Runner::perform(self, work);
    }
}

/// Runs a handler within a span, if there is one.
fn within(span: Option<Span>, future: BoxFuture<Outcome>) -> BoxFuture<Outcome> {
    match span {
        Some(span) => Box::pin(async move {
            let outcome = future.instrument(span.clone()).await;
            spans::record_outcome(&span, &outcome);
            outcome
        }),
        None => future,
    }
}

/// The future of a handler that catches panics and measures the time that it occupies the thread.
struct Running {
    future: BoxFuture<Outcome>,
    handler: Arc<Erased>,
}

impl Future for Running {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Outcome> {
        let begun = clock::now();
        let _occupied = Occupied::enter();
        let polled = catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(context)));
        self.handler.pace.record(clock::since(begun));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(&*panic))))
    }
}

/// Counts a handler that occupies a thread of a runtime.
struct Occupied(bool);

impl Occupied {
    fn enter() -> Self {
        let counts = !IS_OURS.get();
        if counts {
            ON_RUNTIMES.fetch_add(1, Ordering::Relaxed);
        }
        Self(counts)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if self.0 {
            ON_RUNTIMES.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let message = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Failure::Exception { kind: "panic".into(), message: message.into(), traceback: String::new() }
}

/// Writes a message to standard error and to `tracing`.
pub(super) fn report(text: &str) {
    tracing::error!("{text}");
    stderr::write(text);
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while the lock was held affects one call only, so the poison flag is ignored.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
