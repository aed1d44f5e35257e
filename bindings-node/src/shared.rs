//! The state shared between a served stream or endpoint and the event loop: the server, and the work for JavaScript.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use gudgeon::{
    bindings::upstreams::UpstreamServing,
    driver::{EndpointServer, SessionTable, Watchdog, Work},
    engine::{HostReply, RunId},
    router::Components,
    session::server::ListKind,
};
use napi::{
    Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};

use crate::{
    batch::{Batches, Origin},
    handler::index,
    large_text::LargeText,
    large_texts::LargeTexts,
    reply,
    served_components::ServedComponents,
};

/// The maximum size of the batches that wait for the event loop, in bytes, before a stream pauses reading.
const MAX_QUEUED: usize = 4 * 1024 * 1024;

/// Wakes the event loop; holding it keeps the process alive, unless it is weak.
pub(crate) type Wake<const WEAK: bool = false> =
    ThreadsafeFunction<(), (), (), Status, false, WEAK>;

/// The IO side of a server. None of its methods block.
pub(crate) trait ServerIo: Send + Sync {
    fn endpoint(&self) -> &Arc<EndpointServer>;
    /// Returns `true` if several clients call, which don't wait for each other's large inputs.
    fn has_several_clients(&self) -> bool;
    /// Called when there may be something to write.
    fn flush(&self);
    /// Called when the event loop has taken a batch and the queue is short again.
    fn queue_shortened(&self) {}
    /// Called when the upstream servers have been reached, or were tried for long enough.
    fn upstreams_were_tried(&self) {}
    /// Called with the latest time at which the server must be ticked.
    fn wake_at(&self, deadline: Instant);
    /// Returns `true` if a handler may send more.
    fn has_room(&self) -> bool;
    /// Returns the number of unwritten bytes.
    fn unwritten(&self) -> usize;
    /// Stops reading the input.
    fn pause(&self) -> Work;
    fn stop(&self);
}

/// Shared by the reading threads and the event loop.
pub(crate) struct Shared {
    pub(crate) components: ServedComponents,
    /// Runs native handlers, while there are upstream servers.
    pub(crate) upstream_serving: Mutex<Option<UpstreamServing>>,
    io: Mutex<Option<Arc<dyn ServerIo>>>,
    pub(crate) batches: Mutex<Batches>,
    /// The numbers of sessions.
    pub(crate) sessions: Mutex<SessionTable<u32>>,
    last_session: AtomicU32,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    /// The watchdog of the process, if the server owns it.
    watchdog: OnceLock<Watchdog>,
    has_ended: AtomicBool,
}

impl Shared {
    pub(crate) fn new<const WEAK: bool>(
        io: Arc<dyn ServerIo>,
        components: ServedComponents,
        wake: Wake<WEAK>,
    ) -> Self {
        let wake = move || {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        };
        let filter = Arc::clone(components.visibility_filter());
        let batches = Batches::new(filter, io.has_several_clients())
            .with_upstreams(Arc::clone(components.upstreams()));
        Self {
            components,
            upstream_serving: Mutex::default(),
            io: Mutex::new(Some(io)),
            batches: Mutex::new(batches),
            sessions: Mutex::default(),
            last_session: AtomicU32::new(0),
            wake: Mutex::new(Some(Box::new(wake))),
            watchdog: OnceLock::new(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// `None` after it is closed.
    pub(crate) fn io(&self) -> Option<Arc<dyn ServerIo>> {
        lock(&self.io).clone()
    }

    /// Returns the number of a new session.
    pub(crate) fn number_session(&self) -> u32 {
        self.last_session.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Calls the server and processes the resulting work.
    pub(crate) fn call(&self, call: impl FnOnce(&EndpointServer) -> Work) {
        if let Some(io) = self.io() {
            self.push(call(io.endpoint()));
            io.flush();
        }
    }

    pub(crate) fn set_components(&self, components: Arc<Components>, changed: Option<ListKind>) {
        self.call(|endpoint| {
            endpoint.set_components(components, changed.into_iter().collect());
            Work::default()
        });
    }

    /// Processes the replies of handlers.
    pub(crate) fn reply(&self, lines: &str, mut texts: Vec<String>) {
        let Some(io) = self.io() else { return };
        let mut work = Work::default();
        for (slot, outcome) in reply::read(lines, &mut texts) {
            let origin = lock(&self.batches).finish(slot);
            match origin {
                None => (),
                Some(Origin::Run(run)) => work.extend(io.endpoint().done(run, outcome)),
                Some(Origin::Host(ticket)) => {
                    let reply = HostReply::visible(outcome);
                    work.extend(io.endpoint().host_reply(ticket, reply));
                }
            }
        }
        self.push(work);
        io.flush();
    }

    /// Processes the handlers that have asked all their current questions.
    pub(crate) fn waits(&self, slots: impl Iterator<Item = u64>) {
        let Some(io) = self.io() else { return };
        let runs: Vec<RunId> = {
            let batches = lock(&self.batches);
            slots.filter(|slot| batches.context(*slot).is_some()).map(RunId).collect()
        };
        let mut work = Work::default();
        for run in runs {
            work.extend(io.endpoint().waits(run, false));
        }
        self.push(work);
        io.flush();
    }

    pub(crate) fn push(&self, work: Work) {
        if self.queue(work) {
            self.wake();
        }
    }

    /// Queues work. Returns whether the event loop is to be woken for it.
    #[must_use = "otherwise nothing wakes the event loop"]
    pub(crate) fn queue(&self, mut work: Work) -> bool {
        if let Some(deadline) = work.wake
            && let Some(io) = self.io()
        {
            io.wake_at(deadline);
        }
        if work.is_empty() {
            return false;
        }
        // The middleware around a native handler passes its whole input on.
        let large_texts = work
            .runs_mut()
            .filter(|run| index(&run.handler).is_some())
            .filter_map(|run| LargeTexts::take_out_of(&mut run.input).map(|texts| (run.id, texts)));
        // Ahead of the lock, which the event loop waits for.
        let large_texts: Vec<_> = large_texts.collect();
        self.fill(|batches| {
            batches.keep(large_texts);
            batches.push(work);
        })
    }

    pub(crate) fn push_end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        if let Some(watchdog) = self.watchdog.get() {
            watchdog.end_of_input();
        }
        if self.fill(Batches::push_end) {
            self.wake();
        }
    }

    /// Reports the end of the input to the watchdog, also one that has come before.
    pub(crate) fn end_with(&self, watchdog: Watchdog) {
        let watchdog = self.watchdog.get_or_init(|| watchdog);
        if self.has_ended.load(Ordering::SeqCst) {
            watchdog.end_of_input();
        }
    }

    /// Returns `true` if so much waits for the event loop that no more should be read.
    pub(crate) fn has_long_queue(&self) -> bool {
        lock(&self.batches).queued_bytes() > MAX_QUEUED
    }

    /// Returns the next batch; wakes the event loop again if there are more.
    pub(crate) fn take_batch(&self) -> Option<String> {
        self.shorten(|batches| {
            let batch = batches.take();
            (batch, !batches.is_empty())
        })
    }

    /// Returns a large string of an input.
    pub(crate) fn take_text(&self, slot: u64, index: usize) -> Option<LargeText> {
        self.shorten(|batches| (batches.take_text(slot, index), false))
    }

    /// Takes something out of the queue. `take` returns it, and whether the event loop is to be woken for more.
    fn shorten<T>(&self, take: impl FnOnce(&mut Batches) -> (T, bool)) -> T {
        let mut batches = lock(&self.batches);
        let was_long = batches.queued_bytes() > MAX_QUEUED;
        let (taken, more) = take(&mut batches);
        let is_shortened = was_long && batches.queued_bytes() <= MAX_QUEUED;
        drop(batches);
        if is_shortened && let Some(io) = self.io() {
            io.queue_shortened();
        }
        if more {
            self.wake();
        }
        taken
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = &*lock(&self.wake) {
            wake();
        }
    }

    pub(crate) fn close(&self) {
        lock(&self.wake).take();
        drop(lock(&self.upstream_serving).take());
        let io = lock(&self.io).take();
        if let Some(io) = io {
            io.stop();
        }
    }

    /// Returns whether the event loop is to be woken: only for the first entry, so that many cost one wake-up.
    fn fill(&self, fill: impl FnOnce(&mut Batches)) -> bool {
        let mut batches = lock(&self.batches);
        let was_empty = batches.is_empty();
        fill(&mut batches);
        was_empty && !batches.is_empty()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Returns the milliseconds until a time, rounded up, so that the time has come when they have passed.
pub(crate) fn milliseconds_until(deadline: Instant) -> f64 {
    let left: Duration = deadline.saturating_duration_since(Instant::now());
    (left.as_secs_f64() * 1000.0).ceil()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
