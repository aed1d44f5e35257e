//! What one served stream or endpoint is to the event loop: a server, and the work that waits for JavaScript.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gudgeon::{
    driver::{Backend, Work},
    router::{Components, Reply},
    session::{CallId, server::ListKind},
};
use napi::{
    Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};

use crate::{batch::Batches, conversations::Conversations, reply};

/// A bare wake of the event loop; holding it keeps the process alive, unless it is weak.
pub(crate) type Wake<const WEAK: bool = false> =
    ThreadsafeFunction<(), (), (), Status, false, WEAK>;

/// Who moves a server's bytes. Nothing here blocks.
pub(crate) trait Mover: fmt::Debug + Send + Sync {
    fn backend(&self) -> &dyn Backend;
    /// Something may wait to be written.
    fn flush(&self);
    /// Handlers have started or wait: the time of the next tick may have come nearer.
    fn rescheduled(&self);
    /// The server is to be ticked at this time at the latest.
    fn wake_at(&self, deadline: Instant);
    /// Whether a handler may send more at once.
    fn has_room(&self) -> bool;
    /// Bytes that have not left.
    fn unwritten(&self) -> usize;
    /// Nothing more is taken.
    fn pause(&self) -> Work;
    fn stop(&self);
}

/// What threads that read and the event loop share.
pub(crate) struct Shared {
    mover: Mutex<Option<Arc<dyn Mover>>>,
    pub(crate) batches: Mutex<Batches>,
    pub(crate) conversations: Mutex<Conversations>,
    wake: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
}

impl Shared {
    pub(crate) fn new<const WEAK: bool>(mover: Arc<dyn Mover>, wake: Wake<WEAK>) -> Self {
        let wake = move || {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        };
        Self {
            mover: Mutex::new(Some(mover)),
            batches: Mutex::default(),
            conversations: Mutex::default(),
            wake: Mutex::new(Some(Box::new(wake))),
        }
    }

    /// `None` when it is closed.
    pub(crate) fn mover(&self) -> Option<Arc<dyn Mover>> {
        lock(&self.mover).clone()
    }

    /// Does something with the server, and what comes of it.
    pub(crate) fn tell(&self, tell: impl FnOnce(&dyn Backend) -> Work) {
        if let Some(mover) = self.mover() {
            self.push(tell(mover.backend()));
            mover.flush();
        }
    }

    pub(crate) fn set_components(&self, components: Arc<Components>, changed: Option<ListKind>) {
        self.tell(|backend| {
            backend.set_components(components, changed.into_iter().collect());
            Work::default()
        });
    }

    /// Takes what handlers answered.
    pub(crate) fn reply(&self, lines: &str, mut texts: Vec<String>) {
        let Some(mover) = self.mover() else { return };
        let mut work = Work::default();
        let mut asks = false;
        for (slot, outcome) in reply::read(lines, &mut texts) {
            asks |= matches!(outcome, Ok(Reply::Questions(_)));
            let call = lock(&self.batches).finish(slot);
            if let Some(call) = call {
                work.extend(mover.backend().done(call, outcome));
            }
        }
        if asks || !work.runs.is_empty() {
            mover.rescheduled();
        }
        self.push(work);
        mover.flush();
    }

    /// Handlers have asked all that they want to ask now.
    pub(crate) fn waits(&self, slots: impl Iterator<Item = u64>) {
        let Some(mover) = self.mover() else { return };
        let calls: Vec<CallId> = {
            let batches = lock(&self.batches);
            slots.filter_map(|it| batches.context(it)).map(|it| it.call).collect()
        };
        let mut work = Work::default();
        for call in calls {
            work.extend(mover.backend().waits(call, false));
        }
        mover.rescheduled();
        self.push(work);
        mover.flush();
    }

    pub(crate) fn push(&self, work: Work) {
        if let Some(deadline) = work.wake
            && let Some(mover) = self.mover()
        {
            mover.wake_at(deadline);
        }
        if !work.is_empty() {
            self.fill(|batches| batches.push(work));
        }
    }

    pub(crate) fn push_end(&self) {
        self.fill(Batches::push_end);
    }

    /// The next batch; the event loop is woken again when it was not the last.
    pub(crate) fn take_batch(&self) -> Option<String> {
        let mut batches = lock(&self.batches);
        let batch = batches.take();
        let more = !batches.is_empty();
        drop(batches);
        if more {
            self.wake();
        }
        batch
    }

    pub(crate) fn wake(&self) {
        if let Some(wake) = &*lock(&self.wake) {
            wake();
        }
    }

    pub(crate) fn close(&self) {
        lock(&self.wake).take();
        let mover = lock(&self.mover).take();
        if let Some(mover) = mover {
            mover.stop();
        }
    }

    /// Wakes the event loop only when it had nothing to do, so that many entries cost one wake.
    fn fill(&self, fill: impl FnOnce(&mut Batches)) {
        let mut batches = lock(&self.batches);
        let was_empty = batches.is_empty();
        fill(&mut batches);
        let wakes = was_empty && !batches.is_empty();
        drop(batches);
        if wakes {
            self.wake();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("mover", &self.mover).finish_non_exhaustive()
    }
}

/// Milliseconds until then, rounded up so that the time has come when they are over.
pub(crate) fn milliseconds_until(deadline: Instant) -> f64 {
    let left: Duration = deadline.saturating_duration_since(Instant::now());
    (left.as_secs_f64() * 1000.0).ceil()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
