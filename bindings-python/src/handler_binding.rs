//! The binding of a running handler to its request. A later request replaces the first when it brings the answers to
//! the handler's questions.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use gudgeon::{engine::RunId, session::server::CallContext};

use crate::stream::lock;

/// The request that a handler runs for.
#[derive(Debug)]
pub(crate) struct HandlerBinding {
    run: RunId,
    /// The request that began it.
    first: CallContext,
    later: Mutex<Option<Arc<CallContext>>>,
    /// The number of later requests.
    turn: AtomicU32,
    is_cancelled: AtomicBool,
    has_asked: AtomicBool,
}

impl HandlerBinding {
    pub(crate) fn new(run: RunId, first: CallContext) -> Arc<Self> {
        Arc::new(Self {
            run,
            first,
            later: Mutex::default(),
            turn: AtomicU32::new(0),
            is_cancelled: AtomicBool::new(false),
            has_asked: AtomicBool::new(false),
        })
    }

    pub(crate) fn handler(&self) -> RunId {
        self.run
    }

    /// Calls `at` with the context of the current request. No lock is held during the call.
    pub(crate) fn look<R>(&self, at: impl FnOnce(&CallContext) -> R) -> R {
        if self.turn() == 0 {
            return at(&self.first);
        }
        let later = lock(&self.later).clone();
        at(later.as_deref().unwrap_or(&self.first))
    }

    /// Resumes a suspended handler on behalf of a new request.
    pub(crate) fn resume(&self, context: CallContext) {
        *lock(&self.later) = Some(Arc::new(context));
        self.turn.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns a number that changes with the request; values derived from the request are valid while it is the same.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Acquire)
    }

    /// Marks the handler as one that asks its client; its waiters are released when it ends.
    pub(crate) fn begin_asking(&self) {
        self.has_asked.store(true, Ordering::Release);
    }

    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Acquire)
    }

    /// Marks the handler as cancelled: its request was cancelled or its connection closed.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }
}
