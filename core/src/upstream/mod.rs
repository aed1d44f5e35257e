//! Other servers as parts of one: what they offer is offered under a prefix, and calls are passed on to them.

mod calls;
mod catalogue;
mod connections;
mod questions;
mod watched;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::connections::MakeClient;
use self::{
    catalogue::{AllRegistered, Following, Listed},
    connections::Connections,
};
use crate::{
    client::{Client, ClientBuilder, ClientOptions, Target},
    error::Error,
    router::{self, Registrar},
    server::Server,
};

/// The longest time for which a server that starts waits for an upstream server. What that one offers then comes later.
const START_TIME: Duration = Duration::from_secs(10);

/// A server that [`Server::mount_upstream`] adds to another one, and the options of the client that reaches it.
///
/// Every [`Target`] of a client can be converted into an upstream server with `into()`.
///
/// ```
/// use std::time::Duration;
///
/// use gudgeon::{Server, Upstream};
///
/// let clock = Upstream::new(["uvx", "mcp-server-time"])
///     .options(|options| options.timeout = Some(Duration::from_secs(10)));
/// let server = Server::new("desk").mount_upstream("clock", clock);
/// ```
#[derive(Debug)]
pub struct Upstream {
    target: Target,
    options: ClientOptions,
}

impl Upstream {
    /// Names a server by a target that a client can connect to: a URL, a command, or a [`Server`] in this process.
    pub fn new(target: impl Into<Target>) -> Self {
        Self { target: target.into(), options: ClientOptions::default() }
    }

    /// Changes the options of the client.
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Returns the client of the first connection, and the way to further ones.
    fn clients(self) -> (ClientBuilder, Option<MakeClient>) {
        let Self { target, options } = self;
        let more = target.again(true).map(|target| -> MakeClient {
            let options = options.clone();
            Box::new(move || {
                let builder = Client::builder(Target::from(target.clone()));
                Ok(builder.options(|given| *given = options.clone()))
            })
        });
        (Client::builder(target).options(|given| *given = options), more)
    }
}

impl<T: Into<Target>> From<T> for Upstream {
    fn from(target: T) -> Self {
        Self::new(target)
    }
}

impl Server {
    /// Adds everything that another server offers, which a client reaches: tools and prompts as `prefix_name`, resources and
    /// templates with their URIs. Changes of its lists and updates of its resources are passed on.
    ///
    /// Calls are passed on with their progress, log messages, `_meta` and cancellation, and results as they came. Questions of the
    /// other server (elicitation, sampling, roots) reach the client that made the call, whatever revisions the two speak.
    ///
    /// While the other server can't be reached, what it offered before stays in the lists, calls of it fail and name the
    /// reason, and it is tried again in the background, after 1 s at first and after growing delays of up to 60 s. A command that
    /// ended is started again. A start of this server waits for it for up to 10 s.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// use gudgeon::{Client, Server};
    ///
    /// let shelf = Server::new("shelf").tool("count", || async { 2 });
    /// let house = Server::new("house").mount_upstream("shelf", &shelf);
    /// let client = Client::connect(&house).await?;
    /// assert_eq!(client.call_tool("shelf_count", ()).await?.data::<u32>()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Panics if the prefix contains characters other than letters, digits, `_`, `-` and `.`, or the options of the client
    /// are invalid.
    #[track_caller]
    pub fn mount_upstream(self, prefix: &str, upstream: impl Into<Upstream>) -> Self {
        let (first, more) = upstream.into().clients();
        let mounted = match Mounted::new(prefix, first, more) {
            Ok(mounted) => Arc::new(mounted),
            Err(error) => panic!("{error}"),
        };
        let registrar = self.registrar();
        registrar.expect_growth();
        let started = Arc::clone(&mounted);
        let start = move || async move {
            started.start(&registrar).await;
            Ok(())
        };
        self.on_start(start).on_shutdown(move || async move { mounted.stop().await })
    }
}

/// An upstream server that is mounted into a server.
pub struct Mounted {
    prefix: String,
    connections: Arc<Connections>,
    registered: AllRegistered,
    following: Mutex<Option<Following>>,
}

impl Mounted {
    /// `more` makes the clients of connections besides the first one; `None` if there can't be any. Errors if the prefix or the
    /// options of the client are invalid.
    pub fn new(
        prefix: &str,
        first: ClientBuilder,
        more: Option<MakeClient>,
    ) -> Result<Self, Error> {
        router::check_prefix(prefix)?;
        let connections = Connections::new(prefix, first, more)?;
        let (registered, following) = (AllRegistered::default(), Mutex::default());
        Ok(Self { prefix: prefix.to_owned(), connections, registered, following })
    }

    /// Connects, and keeps what the server offers registered. Returns once that is so, or after [`START_TIME`].
    ///
    /// Must be called inside a tokio runtime.
    pub async fn start(&self, registrar: &Arc<dyn Registrar>) {
        let listed = self.follow(registrar, None);
        self.wait(listed).await;
    }

    /// Starts several servers at the same time, but for those that are started already. What they offer is listed in their order.
    #[cfg(feature = "bindings")]
    pub async fn start_all(all: &[Arc<Self>], registrar: &Arc<dyn Registrar>) {
        let mut before = None;
        let mut starts = Vec::new();
        for mounted in all.iter().filter(|mounted| lock(&mounted.following).is_none()) {
            let listed = mounted.follow(registrar, before.take());
            before = Some(listed.clone());
            starts.push(mounted.wait(listed));
        }
        futures_util::future::join_all(starts).await;
    }

    /// Begins to keep what the server offers registered, for the first time after another one did so.
    fn follow(&self, registrar: &Arc<dyn Registrar>, before: Option<Listed>) -> Listed {
        let connections = Arc::clone(&self.connections);
        let prefix = self.prefix.clone();
        let following = Following::start(prefix, connections, registrar, &self.registered, before);
        let listed = following.listed.clone();
        *lock(&self.following) = Some(following);
        listed
    }

    async fn wait(&self, listed: Listed) {
        if !listed.within(START_TIME).await {
            tracing::warn!(
                server = ?self.prefix,
                "an upstream server has not answered yet; what it offers will be added when it does"
            );
        }
    }

    /// Closes the connections, if they can be opened again. What the server offers stays registered. A start that follows does
    /// not wait for the end of this.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<> {
        drop(lock(&self.following).take());
        self.connections.close()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
