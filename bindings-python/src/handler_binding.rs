//! The request that a handler runs for. A later one may take its place, when that brings the answers to its questions.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use gudgeon::session::{CallId, server::CallContext};

use crate::stream::lock;

/// What a handler is bound to.
#[derive(Debug)]
pub(crate) struct HandlerBinding {
    /// The request that began it: by its number the core knows the handler, whatever it runs for now.
    first: CallContext,
    later: Mutex<Option<Arc<CallContext>>>,
    /// Counts the requests after the first.
    turn: AtomicU32,
    is_cancelled: AtomicBool,
}

impl HandlerBinding {
    pub(crate) fn new(first: CallContext) -> Arc<Self> {
        Arc::new(Self {
            first,
            later: Mutex::default(),
            turn: AtomicU32::new(0),
            is_cancelled: AtomicBool::new(false),
        })
    }

    pub(crate) fn handler(&self) -> CallId {
        self.first.call
    }

    /// Looks at the circumstances of the request. No lock is held meanwhile.
    pub(crate) fn look<R>(&self, at: impl FnOnce(&CallContext) -> R) -> R {
        if self.turn() == 0 {
            return at(&self.first);
        }
        let later = lock(&self.later).clone();
        at(later.as_deref().unwrap_or(&self.first))
    }

    /// The handler goes on for another request.
    pub(crate) fn resume(&self, context: CallContext) {
        *lock(&self.later) = Some(Arc::new(context));
        self.turn.fetch_add(1, Ordering::AcqRel);
    }

    /// What was found out of the request is true as long as this stays the same.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Acquire)
    }

    /// Nobody waits for the handler any more.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }
}
