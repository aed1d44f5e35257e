//! The thread of an endpoint's store, where a host does the IO of the endpoint.

use std::{fmt, io, sync::Arc};

use tokio::runtime::{Builder, Runtime};

use crate::driver::{EndpointServer, Work, boxed};

/// The runtime of an endpoint's store. Dropping it does not wait for its thread.
pub struct StoreRuntime(Option<Runtime>);

impl StoreRuntime {
    /// Starts the runtime, which carries operations and messages; `None` without a store. `perform` does the work that results from
    /// an input, and is called on the thread.
    pub fn start(
        server: &Arc<EndpointServer>,
        perform: impl Fn(Work) + Send + Sync + 'static,
    ) -> io::Result<Option<Self>> {
        if !server.has_store() {
            return Ok(None);
        }
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(1).thread_name("gudgeon-store").enable_all().build()?;
        runtime.spawn(boxed(Arc::clone(server).carry_store(false, perform)));
        Ok(Some(Self(Some(runtime))))
    }
}

impl Drop for StoreRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for StoreRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreRuntime")
    }
}
