//! The hooks that run before a server is served and after it has been.

use std::sync::{Arc, Mutex};

use tokio::{runtime::Handle, sync::Mutex as AsyncMutex};

use super::{Server, ToolError, handler::BoxFuture, run::lock, state::States};
use crate::error::{Error, ErrorKind};

/// A function that runs at each start or shutdown.
type Hook<Done> = Box<dyn Fn() -> BoxFuture<Done> + Send>;

/// The hooks of a server, and the number of those that serve it.
#[derive(Default)]
pub(super) struct Lifecycle {
    hooks: Mutex<Hooks>,
    /// Locked while hooks run, so that the next one to serve waits for them.
    servings: AsyncMutex<usize>,
}

#[derive(Default)]
struct Hooks {
    at_start: Vec<Hook<Result<(), ToolError>>>,
    at_shutdown: Vec<Hook<()>>,
    /// The states of the server and of those that are mounted into it.
    states: Vec<Arc<States>>,
}

/// Shows that a server is served: on a stream, at an address, or in a service. Dropping it ends that on the runtime where
/// it began; [`Serving::end`] waits for the hooks as well.
pub(super) struct Serving {
    lifecycle: Option<Arc<Lifecycle>>,
    runtime: Handle,
}

impl Server {
    /// Adds a hook that runs before the first call, however the server is served. Hooks run in the order of their
    /// registration. If one fails, nothing is served: [`Server::run`], [`Server::listen`] and clients in memory return its
    /// error, [`Server::into_service`] answers with 503, and [`Server::serve`] logs it.
    ///
    /// The value that a hook returns becomes a [`State`](super::State) of the server until its shutdown, unless it is `()`.
    ///
    /// Hooks run once while the server is served in several ways at a time. They run again, as clones, if it is served again
    /// after its shutdown.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// let server = Server::new("shelf").on_start(|| async {
    ///     std::fs::create_dir_all(std::env::temp_dir().join("shelf"))?;
    ///     Ok(())
    /// });
    /// ```
    ///
    /// ```
    /// # use gudgeon::{Server, State};
    /// struct Shelf {
    ///     titles: Vec<String>,
    /// }
    ///
    /// let server = Server::new("shelf")
    ///     .on_start(|| async { Ok(Shelf { titles: vec!["Dune".into()] }) })
    ///     .tool("count", |shelf: State<Shelf>| async move { shelf.titles.len() });
    /// ```
    pub fn on_start<F, Done, S>(self, hook: F) -> Self
    where
        F: FnOnce() -> Done + Clone + Send + 'static,
        Done: Future<Output = Result<S, ToolError>> + Send + 'static,
        S: Send + Sync + 'static,
    {
        let states = Arc::clone(self.hub.states());
        let hook = move || -> BoxFuture<_> {
            let (started, states) = (hook.clone()(), Arc::clone(&states));
            Box::pin(async move { Ok(states.start(started.await?)?) })
        };
        lock(&self.lifecycle.hooks).at_start.push(Box::new(hook));
        self
    }

    /// Adds a hook that runs after the last call, once the server is not served any more: at the end of [`Server::run`], in
    /// [`Listening::shut_down`](super::Listening::shut_down) and [`HttpService::shut_down`](super::HttpService::shut_down),
    /// and at the end of the last stream. Hooks run in the order of their registration.
    pub fn on_shutdown<F, Done>(self, hook: F) -> Self
    where
        F: FnOnce() -> Done + Clone + Send + 'static,
        Done: Future<Output = ()> + Send + 'static,
    {
        lock(&self.lifecycle.hooks).at_shutdown.push(Box::new(move || Box::pin(hook.clone()())));
        self
    }
}

impl Lifecycle {
    pub(super) fn new(states: &Arc<States>) -> Self {
        let hooks = Hooks { states: vec![Arc::clone(states)], ..Hooks::default() };
        Self { hooks: Mutex::new(hooks), servings: AsyncMutex::default() }
    }

    /// Adds the hooks of a mounted server, which are taken from it.
    pub(super) fn mount(&self, mounted: &Self) {
        let Hooks { at_start, at_shutdown, states } = std::mem::take(&mut *lock(&mounted.hooks));
        let mut hooks = lock(&self.hooks);
        hooks.at_start.extend(at_start);
        hooks.at_shutdown.extend(at_shutdown);
        hooks.states.extend(states);
    }

    /// Begins to serve: runs the hooks at start, unless the server is served already. Errors if one of them fails, or if a
    /// handler takes a state that the server does not have.
    pub(super) async fn serve(self: &Arc<Self>) -> Result<Serving, Error> {
        let mut servings = self.servings.lock().await;
        if *servings == 0
            && let Err(error) = self.start().await
        {
            self.shut_down().await;
            return Err(error);
        }
        *servings += 1;
        Ok(Serving { lifecycle: Some(Arc::clone(self)), runtime: Handle::current() })
    }

    async fn start(&self) -> Result<(), Error> {
        let mut next = 0;
        while let Some(started) = self.run(next, |hooks| &hooks.at_start) {
            started.await.map_err(|error| {
                Error::new(ErrorKind::Connect, format!("on_start failed: {error}"))
            })?;
            next += 1;
        }
        lock(&self.hooks).states.iter().try_for_each(|states| states.check())
    }

    async fn shut_down(&self) {
        let mut next = 0;
        while let Some(done) = self.run(next, |hooks| &hooks.at_shutdown) {
            done.await;
            next += 1;
        }
        let states = lock(&self.hooks).states.clone();
        for states in states {
            states.shut_down();
        }
    }

    /// Calls the hook with this number.
    fn run<Done>(
        &self,
        number: usize,
        list: impl Fn(&Hooks) -> &[Hook<Done>],
    ) -> Option<BoxFuture<Done>> {
        list(&lock(&self.hooks)).get(number).map(|hook| hook())
    }

    /// Counts one less that serves it. Runs the hooks at shutdown after the last one.
    async fn end(self: Arc<Self>) {
        let mut servings = self.servings.lock().await;
        *servings -= 1;
        if *servings == 0 {
            self.shut_down().await;
        }
    }
}

impl Serving {
    /// Ends the serving, and waits for the hooks at shutdown if it was the last one.
    pub(super) async fn end(mut self) {
        if let Some(lifecycle) = self.lifecycle.take() {
            // In a task of its own, because a caller that stops waiting does not stop the hooks.
            let _ = self.runtime.spawn(lifecycle.end()).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(lifecycle) = self.lifecycle.take() {
            drop(self.runtime.spawn(lifecycle.end()));
        }
    }
}
