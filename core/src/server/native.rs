//! Native handlers of servers whose host is another language: a runner of their own runs them.

use std::{fmt, sync::Arc};

use tokio::{runtime::Handle, sync::mpsc, task::AbortHandle};

use super::{
    connection::Connection,
    handler::{Erased, NativeSubject, Outcome},
    run::Runner,
};
use crate::{
    driver::{EndpointServer, Host, NativeHost, Work},
    engine::{Effect, RunId},
    router::Handler,
    session::server::CallContext,
};

/// The orders that are taken at once.
const MAX_TOGETHER: usize = 64;

/// A server whose native handlers are run. Dropping it ends that.
pub struct NativeServing {
    server: Arc<EndpointServer>,
    orders: mpsc::UnboundedSender<Order>,
    task: AbortHandle,
}

/// Returns whether the host runs the middleware of the program around handlers of this registration.
pub(super) type IsWrapped = Arc<dyn Fn(&NativeSubject) -> bool + Send + Sync>;

/// Called with the outcome of a native handler.
pub(super) type OnOutcome = Box<dyn FnOnce(Outcome) + Send>;

/// An order to the runner.
enum Order {
    Effect(Effect),
    PassOn {
        run: RunId,
        context: Box<CallContext>,
        handler: Arc<Erased>,
        input: String,
        done: OnOutcome,
    },
}

/// Passes the work for native handlers on to their runner.
struct Feed {
    orders: mpsc::UnboundedSender<Order>,
    is_wrapped: IsWrapped,
}

/// Returns the registration of a native handler; `None` for others.
pub fn native_subject(handler: &Handler) -> Option<&NativeSubject> {
    handler.downcast_ref::<Erased>()?.native.as_deref()
}

impl NativeServing {
    /// Runs the native handlers of this endpoint on a runtime. Whatever comes of them for other handlers is done by its `host`,
    /// which is also asked, without work, to write what is queued. Those that are wrapped are run by the host, which passes them
    /// on with [`Self::pass_on`].
    pub fn start(
        server: &Arc<EndpointServer>,
        host: Arc<dyn Host>,
        runtime: &Handle,
        is_wrapped: IsWrapped,
    ) -> Self {
        let (orders, mut waiting) = mpsc::unbounded_channel();
        let connection = Arc::new(Connection::native(Arc::clone(server), host));
        let running = async move {
            let runner = Runner::new(connection, Arc::default());
            let mut together = Vec::with_capacity(MAX_TOGETHER);
            while waiting.recv_many(&mut together, MAX_TOGETHER).await > 0 {
                for order in together.drain(..) {
                    match order {
                        Order::Effect(effect) => runner.perform(Work::from_iter([effect])),
                        Order::PassOn { run, context, handler, input, done } => {
                            runner.pass_on(run, *context, &handler, input, done);
                        }
                    }
                }
                runner.settle();
            }
        };
        let task = runtime.spawn(running).abort_handle();
        let feed = Feed { orders: orders.clone(), is_wrapped };
        server.run_natively(Some(Arc::new(feed)));
        Self { server: Arc::clone(server), orders, task }
    }

    /// Runs a native handler within a run of the host's, with its context. Its questions reach the client as those of that run.
    ///
    /// # Panics
    /// Panics if the handler is not a native one.
    pub fn pass_on(
        &self,
        run: RunId,
        context: CallContext,
        handler: &Handler,
        input: String,
        done: OnOutcome,
    ) {
        let (context, handler) = (Box::new(context), Erased::from_kept(handler));
        // Without a runner the server has ended, and nobody waits for an answer.
        let _ = self.orders.send(Order::PassOn { run, context, handler, input, done });
    }
}

impl NativeHost for Feed {
    fn owns(&self, handler: &Handler) -> bool {
        native_subject(handler).is_some_and(|subject| !(self.is_wrapped)(subject))
    }

    fn take(&self, effect: Effect) {
        let _ = self.orders.send(Order::Effect(effect));
    }
}

impl Drop for NativeServing {
    fn drop(&mut self) {
        self.server.run_natively(None);
        self.task.abort();
    }
}

impl fmt::Debug for NativeServing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeServing").finish_non_exhaustive()
    }
}
