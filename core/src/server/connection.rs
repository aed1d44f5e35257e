//! The endpoint of a runner's handlers, and the stream that carries its output if no task does.

use std::{ops::Deref, sync::Arc, time::Instant};

use crate::driver::{EndpointServer, Host, StreamConnection, Work};

/// The endpoint that serves the clients of a runner's handlers. No method blocks.
pub(super) struct Connection {
    server: Arc<EndpointServer>,
    /// `None` if the connections have tasks, which also keep the time.
    stream: Option<Arc<StreamConnection>>,
    /// The host of the endpoint, where the runner runs native handlers only. It keeps the time.
    host: Option<Arc<dyn Host>>,
}

impl Connection {
    pub(super) fn endpoint(server: Arc<EndpointServer>) -> Self {
        Self { server, stream: None, host: None }
    }

    /// Returns the endpoint of another host, whose native handlers the runner runs.
    #[cfg(feature = "bindings")]
    pub(super) fn native(server: Arc<EndpointServer>, host: Arc<dyn Host>) -> Self {
        Self { server, stream: None, host: Some(host) }
    }

    pub(super) fn stream(stream: Arc<StreamConnection>) -> Self {
        Self { server: Arc::clone(stream.server()), stream: Some(stream), host: None }
    }

    /// Starts writing what is queued.
    pub(super) fn flush(&self) {
        if let Some(stream) = &self.stream {
            stream.try_flush();
        }
        if let Some(host) = &self.host {
            host.perform(Work::default());
        }
    }

    /// Returns the host that does the work which comes of the reports of handlers; `None` if the runner does it.
    pub(super) fn host(&self) -> Option<&Arc<dyn Host>> {
        self.host.as_ref()
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
