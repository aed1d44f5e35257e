//! What a runner of handlers needs of the server that it works for.

use std::time::Instant;

use crate::driver::{Backend, EndpointServer, StreamServer};

/// A backend, and what has to be done for it. Nothing here blocks.
pub(super) trait Connection: Backend {
    /// Sees to it that what is queued gets written.
    fn flush(&self) {}

    /// When the runner is to tick, where nobody else does.
    fn alarm(&self) -> Option<Instant> {
        None
    }
}

impl Connection for StreamServer {
    fn flush(&self) {
        self.try_flush();
    }

    fn alarm(&self) -> Option<Instant> {
        self.deadline()
    }
}

impl Connection for EndpointServer {}
