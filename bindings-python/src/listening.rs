//! A server at an address: IO threads of its own, which never enter the interpreter to run a handler.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    driver::EndpointServer,
    error::{Error, ErrorKind},
    transport::listen::{Address, ListenOptions, Listening, listen},
};
use pyo3::{PyErr, exceptions::PyOSError};
use tokio::runtime::{Builder, Runtime};

use crate::{error::raise, feed::Feed, forks, stream::Stream};

/// The time that the threads have to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(500);

/// The listener and its threads.
pub(crate) struct Listener {
    listening: Arc<Listening>,
    runtime: Option<Runtime>,
    is_ending: AtomicBool,
    /// The time from the beginning of the shutdown in which calls in flight may end.
    pub(crate) grace: Duration,
    process: u32,
}

impl Listener {
    pub(crate) fn start(
        at: &Address,
        server: Arc<EndpointServer>,
        stream: &Arc<Stream>,
        options: ListenOptions,
        threads: usize,
    ) -> Result<Self, Error> {
        let mut builder = Builder::new_multi_thread();
        // Wakes the leader once for all calls of a batch.
        let announcing = Arc::downgrade(stream);
        builder.on_thread_park(move || {
            if let Some(stream) = announcing.upgrade() {
                stream.announce();
            }
        });
        let runtime =
            builder.worker_threads(threads).thread_name("gudgeon-io").enable_all().build();
        let runtime = runtime.map_err(|cause| {
            Error::new(ErrorKind::Connect, "the threads that listen can't be started")
                .with(|details| details.source = Some(cause.into()))
        })?;
        let grace = options.drain_delay.saturating_add(options.shutdown_grace);
        let listening = runtime.block_on(async {
            let host = Arc::new(Feed::new(stream));
            listen(at, server, host, options).await
        });
        let listening = Arc::new(listening?);
        Ok(Self {
            listening,
            runtime: Some(runtime),
            is_ending: AtomicBool::new(false),
            grace,
            process: forks::generation(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        self.listening.url()
    }

    pub(crate) fn warning(&self) -> Option<&str> {
        self.listening.warning()
    }

    /// Ends gracefully; afterwards the stream has ended.
    pub(crate) fn end(&self, stream: &Arc<Stream>) {
        if let Some(runtime) = &self.runtime
            && !self.is_ending.swap(true, Ordering::AcqRel)
        {
            let (listening, stream) = (Arc::clone(&self.listening), Arc::clone(stream));
            runtime.spawn(async move {
                listening.shut_down().await;
                stream.end();
            });
        }
    }

    /// Releases the threads. Must not be called while holding the interpreter.
    pub(crate) fn stop(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(SHUTDOWN_LIMIT);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if self.process == forks::generation() {
            runtime.shutdown_background();
        } else {
            // Its threads did not survive the fork, so waiting for them would never end.
            std::mem::forget(runtime);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.url()).finish()
    }
}

/// Converts an error; failures of the operating system become `OSError`.
pub(crate) fn refused(error: &Error) -> PyErr {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
    match source.and_then(std::io::Error::raw_os_error) {
        Some(number) => PyOSError::new_err((number, error.to_string())),
        None if error.kind == ErrorKind::Connect => PyOSError::new_err(error.to_string()),
        None => raise(error),
    }
}
