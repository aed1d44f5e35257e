//! The interface between a connection and the runner of its handlers.

use std::time::Instant;

use crate::driver::{Backend, EndpointServer, StreamServer};

/// The backend of a connection. No method blocks.
pub(super) trait Connection: Backend {
    /// Starts writing what is queued.
    fn flush(&self) {}

    /// Returns the next deadline for the runner's timer, `None` if the connection keeps its own timer.
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
