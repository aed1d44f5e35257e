//! The endpoint of a runner's handlers, and the stream that carries its output if no task does.

use std::{ops::Deref, sync::Arc, time::Instant};

use crate::driver::{EndpointServer, StreamConnection};

/// The endpoint that serves the clients of a runner's handlers. No method blocks.
pub(super) struct Connection {
    server: Arc<EndpointServer>,
    /// `None` if the connections have tasks, which also keep the time.
    stream: Option<Arc<StreamConnection>>,
}

impl Connection {
    pub(super) fn endpoint(server: Arc<EndpointServer>) -> Self {
        Self { server, stream: None }
    }

    pub(super) fn stream(stream: Arc<StreamConnection>) -> Self {
        Self { server: Arc::clone(stream.server()), stream: Some(stream) }
    }

    /// Starts writing what is queued.
    pub(super) fn flush(&self) {
        if let Some(stream) = &self.stream {
            stream.try_flush();
        }
    }

    /// Returns the next deadline for the runner's timer, `None` if the connections keep the time themselves.
    pub(super) fn alarm(&self) -> Option<Instant> {
        self.stream.as_ref().and_then(|stream| stream.server().deadline())
    }
}

impl Deref for Connection {
    type Target = EndpointServer;

    fn deref(&self) -> &Self::Target {
        &self.server
    }
}
