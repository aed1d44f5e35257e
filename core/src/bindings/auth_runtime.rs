//! The thread of an endpoint's authentication, where a host does the IO of the endpoint.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use tokio::runtime::{Builder, Runtime};

use crate::{driver::EndpointServer, transport::fetch::serve_auth};

/// A future that has begun.
pub type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The runtime of an endpoint's authentication. Dropping it does not wait for its threads.
pub struct AuthRuntime(Option<Runtime>);

impl AuthRuntime {
    /// Starts the runtime, which sends the requests of the authentication; `None` if everybody may call.
    pub fn start(server: &EndpointServer) -> io::Result<Option<Self>> {
        if !server.has_auth() {
            return Ok(None);
        }
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("gudgeon-auth").enable_all().build()?;
        let context = runtime.enter();
        serve_auth(server);
        drop(context);
        Ok(Some(Self(Some(runtime))))
    }

    /// Begins a future. Returns its result if that is known at once, as for a token that was accepted before; otherwise
    /// [`Self::finish`] takes the rest.
    pub fn begin<T>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Running<T>> {
        let _context = self.0.as_ref().map(Runtime::enter);
        let mut running: Running<T> = Box::pin(future);
        match running.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => Err(running),
        }
    }

    /// Ends a future on the thread; `done` is called there with its result.
    pub fn finish<T: 'static>(&self, running: Running<T>, done: impl FnOnce(T) + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(async move { done(running.await) });
        }
    }
}

impl Drop for AuthRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for AuthRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthRuntime")
    }
}
