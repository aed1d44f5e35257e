//! The store in Redis or Valkey.

mod commands;
mod connection;
mod messages;
#[cfg(all(test, feature = "auth", feature = "client"))]
mod tests;

use std::{fmt, sync::Arc, thread, time::Duration};

use redis::{Client, ErrorKind, IntoConnectionInfo as _, ProtocolVersion, RedisError};
use tokio::{
    runtime::Builder,
    sync::{
        Notify, OwnedSemaphorePermit, Semaphore,
        mpsc::{self, UnboundedReceiver, UnboundedSender},
    },
};

use self::connection::Connection;
use super::{per_process::PerProcess, topics::Topics};
use crate::{
    error::Error,
    log_text,
    replier::Replier,
    store::{StoreEngine, StoreListener, StoreOperation, StoreReply, StoreSubscription},
};

/// The time for an operation.
const DEADLINE: Duration = Duration::from_secs(5);
/// The maximum number of operations that are under way.
const MAX_UNDER_WAY: usize = 1_024;

/// A store in Redis (from 6.2 on) or Valkey, for servers on several machines.
///
/// It connects with the first operation and again after an outage. While the server is away, operations fail, and with them the
/// requests that need them; an operation has 5 s, and 1,024 may be under way. All keys begin with `gudgeon:`. The store needs the
/// permission to run scripts, and to publish and subscribe on channels that begin with `gudgeon:`.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use gudgeon::{Server, server::RedisStore};
///
/// # fn main() -> Result<(), gudgeon::Error> {
/// let store = Arc::new(RedisStore::connect("redis://localhost:6379")?);
/// let server = Server::new("shelf").options(|options| options.store = Some(store));
/// # Ok(())
/// # }
/// ```
pub struct RedisStore {
    place: Arc<Place>,
    topics: Arc<Topics>,
    changed: Arc<Notify>,
    under_way: Arc<Semaphore>,
    jobs: PerProcess<UnboundedSender<Job>>,
}

/// The address of a server.
struct Place {
    client: Client,
    /// The address without user and password.
    name: String,
    deadline: Duration,
}

struct Job {
    operation: StoreOperation,
    reply: Replier<StoreReply>,
    permit: OwnedSemaphorePermit,
}

impl RedisStore {
    /// Creates the store at a URL: `redis://user:password@host:port/database`, with TLS `rediss://`, a Unix socket
    /// `redis+unix:///path`, or the same with `valkey`. Connects later. Errors if the URL is not one of these; no error shows it.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::with_deadline(url, DEADLINE)
    }

    fn with_deadline(url: &str, deadline: Duration) -> Result<Self, Error> {
        let wrong = |error: RedisError| {
            Error::misuse(format!(
                "the URL of the store is not like redis://user:password@host:6379/0: {}",
                error.to_string().replace(" - InvalidClientConfig", "")
            ))
        };
        let info = url.into_connection_info().map_err(wrong)?;
        let settings = info.redis_settings().clone();
        let settings = settings.set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
        let client = Client::open(info.set_redis_settings(settings)).map_err(wrong)?;
        let scheme = url.split(':').next().unwrap_or_default();
        let name = format!("{scheme}://{}", client.get_connection_info().addr());
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        Ok(Self {
            place: Arc::new(Place { client, name, deadline }),
            topics: Topics::new(move || notify.notify_one()),
            changed,
            under_way: Arc::new(Semaphore::new(MAX_UNDER_WAY)),
            jobs: PerProcess::default(),
        })
    }

    /// Returns where the thread takes its operations from. A process that was forked has
    /// another.
    fn jobs(&self) -> Option<UnboundedSender<Job>> {
        let start = || {
            let (sender, jobs) = mpsc::unbounded_channel();
            let (place, topics) = (Arc::clone(&self.place), Arc::clone(&self.topics));
            let changed = Arc::clone(&self.changed);
            let run = move || run(&place, &topics, &changed, jobs);
            thread::Builder::new().name("gudgeon-redis".into()).spawn(run).ok()?;
            Some(sender)
        };
        self.jobs.get_or_start(start)
    }
}

impl StoreEngine for RedisStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        let Ok(permit) = Arc::clone(&self.under_way).try_acquire_owned() else {
            return reply.send(
                self.place.failed(&format!(
                    "{MAX_UNDER_WAY} operations are under way, and no more may be"
                )),
            );
        };
        match self.jobs() {
            // Without the thread the reply is dropped, which reports a failure.
            Some(jobs) => drop(jobs.send(Job { operation, reply, permit })),
            None => reply.send(self.place.failed("no thread can be started")),
        }
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        let subscription = self.topics.subscribe(topics, listener);
        self.jobs()?;
        Some(subscription)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisStore").field(&self.place.name).finish()
    }
}

impl Place {
    fn failed(&self, reason: &str) -> StoreReply {
        StoreReply::Failed(format!("{}: {reason}", self.name))
    }
}

/// Carries out operations until the store is dropped.
fn run(
    place: &Arc<Place>,
    topics: &Arc<Topics>,
    changed: &Notify,
    mut jobs: UnboundedReceiver<Job>,
) {
    // Without a runtime the operations are dropped, which reports failures.
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    let connection = Arc::new(Connection::new(Arc::clone(place)));
    let carry_out = async {
        while let Some(Job { operation, reply, permit }) = jobs.recv().await {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move {
                reply.send(connection.run(operation).await);
                drop(permit);
            });
        }
    };
    runtime.block_on(async {
        tokio::select! {
            () = carry_out => (),
            () = messages::deliver(place, topics, changed) => (),
        }
    });
}

/// Returns the reason of an error, in the words of the server if they are its own.
fn reason(error: &RedisError) -> String {
    let text = match (error.kind(), error.code()) {
        (ErrorKind::Server(_) | ErrorKind::Extension, Some(code)) => {
            format!("{code} {}", error.detail().unwrap_or_default())
        }
        _ => error.to_string(),
    };
    log_text::single_line(log_text::beginning(&text, 300)).into_owned()
}
