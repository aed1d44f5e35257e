//! The start of handlers: whether one may start yet, and which of two hosts runs it.

use std::sync::Arc;

use super::{EndpointServer, NativeHost, Work};
use crate::{
    clock,
    engine::{Run, RunId},
    session::server::CallContext,
};

impl EndpointServer {
    /// Has another host run the handlers that it owns, from now on or until `None` is set.
    pub(crate) fn run_natively(&self, host: Option<Arc<dyn NativeHost>>) {
        self.lock().native.set_host(host);
    }

    /// Has both hosts get the work for a run, while a native handler runs within it.
    pub(crate) fn share_run(&self, run: RunId, is_shared: bool) {
        self.lock().native.share(run, is_shared);
    }

    /// Returns whether some client leaves so much unread that its handlers have to wait.
    pub fn has_backlog(&self) -> bool {
        self.backlog.exists()
    }

    /// Returns whether the handler of a call may start. It may not while its client leaves much unread, because its answer would
    /// only take memory.
    #[inline]
    pub fn may_start(&self, run: RunId, context: &CallContext) -> bool {
        !self.has_backlog() || self.lock().may_start(run, context)
    }

    /// Takes back a handler that may not start yet. It comes again in later work, unless its call is cancelled before.
    pub fn postpone(&self, run: Run) -> Work {
        let mut state = self.lock();
        state.keep(run);
        let mut step = state.drain(clock::now());
        drop(state);
        self.announce(&mut step);
        self.finish(step)
    }
}
