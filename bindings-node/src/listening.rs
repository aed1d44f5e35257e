//! An endpoint that listens: its own threads do the IO and the protocol, and JavaScript runs the handlers.

use std::{
    fmt, io,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Instant,
};

use gudgeon::{
    auth::server::config::AuthConfig,
    bindings::http_options::HttpOptions,
    driver::{EndpointServer, Host, Work, boxed},
    store::SharedStore,
    transport::listen::{Address, ListenOptions, Listening, listen},
};
use napi::{Env, JsDeferred, bindgen_prelude::Object};
use napi_derive::napi;
use tokio::{runtime::Runtime, sync::Notify};

use crate::{
    error::{self, misuse},
    served_components::ServedComponents,
    shared::{ServerIo, Shared, Wake, lock},
    work_queue::NativeWorkQueue,
};

/// The value that a promise is settled with, on the event loop.
type Settle<T> = Box<dyn FnOnce(Env) -> napi::Result<T> + Send>;

#[napi]
pub struct NativeListening {
    shared: Arc<Shared>,
    listens: Arc<Listens>,
    address: Address,
    options: ListenOptions,
}

#[napi]
impl NativeListening {
    /// Returns the work queue of its handlers; call it once, because the endpoint ends with it.
    #[napi(catch_unwind)]
    pub fn work_queue(&self) -> NativeWorkQueue {
        NativeWorkQueue::new(Arc::clone(&self.shared), None)
    }

    /// Starts listening; `shares_port` lets other processes listen at the same port, which find each other in the folder
    /// `group`. Resolves with the URL, and with a warning if there is one.
    #[napi(catch_unwind, ts_return_type = "Promise<Array<string>>")]
    pub fn start<'env>(
        &self,
        env: &'env Env,
        shares_port: bool,
        group: Option<String>,
    ) -> napi::Result<Object<'env>> {
        let (deferred, promise) = env.create_deferred::<Vec<String>, Settle<Vec<String>>>()?;
        let address = self.address.clone();
        let group = group.map(Into::into);
        let options = ListenOptions { shares_port, group, ..self.options.clone() };
        let listens = Arc::clone(&self.listens);
        let (host, shared) = (Arc::new(Feed::new(&self.shared)), Arc::downgrade(&self.shared));
        self.spawn(wake_event_loop(shared, Arc::clone(&host.queued)));
        self.spawn(async move {
            match listen(&address, Arc::clone(&listens.server), host, options).await {
                Ok(listening) => {
                    let texts = [Some(listening.url()), listening.warning()];
                    let texts: Vec<_> = texts.into_iter().flatten().map(str::to_owned).collect();
                    // Set once, because JavaScript begins only once.
                    let _ = listens.listening.set(listening);
                    deferred.resolve(Box::new(|_| Ok(texts)));
                }
                Err(error) => deferred.reject(error::failure(error)),
            }
        });
        Ok(promise)
    }

    /// Stops accepting, lets calls in flight finish within the grace period, and closes. Resolves afterwards.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn stop<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        let (deferred, promise): (JsDeferred<(), Settle<()>>, _) = env.create_deferred()?;
        let listens = Arc::clone(&self.listens);
        self.spawn(async move {
            if let Some(listening) = listens.listening.get() {
                listening.shut_down().await;
            }
            deferred.resolve(Box::new(|_| Ok(())));
        });
        Ok(promise)
    }
}

impl NativeListening {
    pub(crate) fn open(
        served: &ServedComponents,
        url: &str,
        options: &str,
        (auth, store): (Option<Arc<AuthConfig>>, Option<SharedStore>),
        max_message: usize,
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        let address: Address = url.parse().map_err(misuse)?;
        let given = HttpOptions::parse(options.as_bytes()).map_err(misuse)?;
        let mut config = given.endpoint(address.endpoint_config());
        (config.auth, config.store) = (auth, store);
        let options = ListenOptions { max_message, ..given.listen() };
        let runtime = runtime(given.io_threads.unwrap_or(1))
            .map_err(|error| error::io("no thread could be started to listen with", error))?;
        let (shared, listens) = served.open(|components| {
            let listens = Arc::new(Listens {
                server: EndpointServer::new(components, config),
                listening: OnceLock::new(),
                runtime: Mutex::new(Some(runtime)),
            });
            let io = Arc::clone(&listens) as Arc<dyn ServerIo>;
            (Arc::new(Shared::new(io, served.clone(), wake)), listens)
        });
        Ok(Self { shared, listens, address, options })
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &*lock(&self.listens.runtime) {
            runtime.spawn(boxed(task));
        }
    }
}

impl fmt::Debug for NativeListening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeListening").field("address", &self.address).finish_non_exhaustive()
    }
}

/// An endpoint with a runtime of its own, which also keeps the deadlines.
#[derive(Debug)]
struct Listens {
    server: Arc<EndpointServer>,
    listening: OnceLock<Listening>,
    runtime: Mutex<Option<Runtime>>,
}

/// Receives calls from the IO threads for the event loop.
struct Feed {
    shared: Arc<Shared>,
    /// Notified when work was queued that the event loop is not woken for.
    queued: Arc<Notify>,
}

impl Feed {
    fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), queued: Arc::default() }
    }
}

impl Host for Feed {
    fn perform(&self, work: Work) {
        if self.shared.queue(work) {
            self.queued.notify_one();
        }
    }
}

/// Wakes the event loop once for all calls that an IO thread queues in one go.
async fn wake_event_loop(shared: Weak<Shared>, queued: Arc<Notify>) {
    loop {
        queued.notified().await;
        // Until the thread has nothing else to do, or for as many tasks as it runs between two looks for input.
        tokio::task::yield_now().await;
        let Some(shared) = shared.upgrade() else { return };
        shared.wake();
    }
}

impl ServerIo for Listens {
    fn endpoint(&self) -> &Arc<EndpointServer> {
        &self.server
    }

    fn has_several_clients(&self) -> bool {
        true
    }

    /// The server notifies connections when there is something to write.
    fn flush(&self) {}

    /// The listener watches the deadline itself.
    fn wake_at(&self, _: Instant) {}

    /// Unread bytes are bounded, because clients that do not read are disconnected.
    fn has_room(&self) -> bool {
        true
    }

    /// Slow readers were awaited when the listener stopped.
    fn unwritten(&self) -> usize {
        0
    }

    fn pause(&self) -> Work {
        self.server.shut_down()
    }

    fn stop(&self) {
        if let Some(runtime) = lock(&self.runtime).take() {
            runtime.shutdown_background();
        }
    }
}

fn runtime(threads: usize) -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("gudgeon-io")
        .enable_all()
        .build()
}
