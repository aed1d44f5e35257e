//! The interface between a connection and the runner of its handlers.

use std::{sync::Arc, time::Instant};

use super::handler::Erased;
use crate::driver::{Backend, EndpointServer, StreamServer};

/// The backend of a connection. No method blocks.
pub(super) trait Connection: Backend<Arc<Erased>> {
    /// Starts writing what is queued.
    fn flush(&self) {}

    /// Returns the next deadline for the runner's timer, `None` if the connection keeps its own timer.
    fn alarm(&self) -> Option<Instant> {
        None
    }
}

impl Connection for StreamServer<Arc<Erased>> {
    fn flush(&self) {
        self.try_flush();
    }

    fn alarm(&self) -> Option<Instant> {
        self.deadline()
    }
}

impl Connection for EndpointServer<Arc<Erased>> {}
