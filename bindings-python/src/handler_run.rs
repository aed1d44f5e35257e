//! One run of a handler, and the request that it runs for. A later request replaces the first when it brings the answers
//! to the handler's questions.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use gudgeon::{
    bindings::upstreams::Upstreams,
    engine::{Run, RunId, SpanSubject},
    router,
    server::native_subject,
    session::server::CallContext,
};
use pyo3::{prelude::*, types::PyDict};

use crate::{handler::Handler, stream::lock};

/// A handler that is queued, runs, or waits for its client.
#[derive(Debug)]
pub(crate) struct HandlerRun {
    pub(crate) id: RunId,
    pub(crate) handler: Handler,
    /// The handler around which the middleware runs, if that is a native one.
    pub(crate) native: Option<router::Handler>,
    /// It handles a notification, which has no answer.
    pub(crate) is_notification: bool,
    /// The subject of its span, if the program traces.
    pub(crate) subject: Option<Box<SpanSubject>>,
    /// Empty once the handler has been called.
    input: Mutex<String>,
    /// The request that began it.
    first: CallContext,
    later: Mutex<Option<Arc<CallContext>>>,
    /// The number of later requests.
    turn: AtomicU32,
    is_cancelled: AtomicBool,
    has_asked: AtomicBool,
    /// The values of its session, if the handler has used them and a store has them.
    pub(crate) session: OnceLock<Py<PyDict>>,
}

impl HandlerRun {
    /// Makes a run of a handler of Python, or of the middleware around a native one; `None` for another host's.
    pub(crate) fn new(run: Run, upstreams: &Upstreams) -> Option<Arc<Self>> {
        let Run { id, handler, input, context, is_notification, subject, .. } = run;
        let (handler, native) = match Arc::downcast(handler) {
            Ok(own) => (own, None),
            Err(native) => {
                let around = upstreams.around(native_subject(&native)?)?;
                (Arc::downcast(around).ok()?, Some(native))
            }
        };
        Some(Arc::new(Self {
            id,
            handler,
            native,
            is_notification,
            subject,
            input: Mutex::new(input),
            first: context,
            later: Mutex::default(),
            turn: AtomicU32::new(0),
            is_cancelled: AtomicBool::new(false),
            has_asked: AtomicBool::new(false),
            session: OnceLock::new(),
        }))
    }

    /// Takes the handler's input, a JSON object, so that it is not kept while the handler runs.
    pub(crate) fn take_input(&self) -> String {
        std::mem::take(&mut *lock(&self.input))
    }

    /// Returns the run as it was handed out, for a handler that has not begun.
    pub(crate) fn take_back(&self) -> Run {
        Run {
            id: self.id,
            handler: self.native.clone().unwrap_or_else(|| Arc::clone(&self.handler) as _),
            input: self.take_input(),
            context: self.first.clone(),
            is_notification: self.is_notification,
            middleware_frame: None,
            subject: self.subject.clone(),
        }
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
