//! The store in a file, for the processes of one machine.

mod file;
mod messages;
mod operations;
#[cfg(all(test, feature = "auth", feature = "client"))]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, Instant},
};

use self::{file::Failure, messages::Messages};
use super::{per_process::PerProcess, topics::Topics};
use crate::{
    clock,
    error::Error,
    replier::Replier,
    store::{StoreEngine, StoreListener, StoreOperation, StoreReply, StoreSubscription},
};

/// The time for which an operation waits for others before it, in this process and in others.
const DEADLINE: Duration = Duration::from_secs(5);
/// The maximum number of operations that wait.
const MAX_WAITING: usize = 1_024;
/// The time between two looks for messages of other processes.
const POLL: Duration = Duration::from_millis(25);

/// A store in a file of `SQLite`, for processes on one machine, and for one that is restarted.
///
/// The file is created for its owner only; beside it are two more while it is used. What was stored survives the end of the
/// process; the end of the machine may undo the last moments. Messages to other processes take up to 25 ms, and the last 10,000 of
/// the last minute are kept. An operation waits 5 s at most, and 1,024 may wait.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use gudgeon::{Server, server::SqliteStore};
///
/// # fn main() -> Result<(), gudgeon::Error> {
/// let store = Arc::new(SqliteStore::open("/var/lib/shelf/store.db")?);
/// let server = Server::new("shelf").options(|options| options.store = Some(store));
/// # Ok(())
/// # }
/// ```
pub struct SqliteStore {
    path: Arc<PathBuf>,
    deadline: Duration,
    topics: Arc<Topics>,
    jobs: Arc<PerProcess<SyncSender<Job>>>,
}

enum Job {
    Run {
        operation: StoreOperation,
        reply: Replier<StoreReply>,
        begun: Instant,
    },
    /// The subscriptions changed.
    Look,
}

impl SqliteStore {
    /// Opens or creates the file. Errors if its folder does not exist, or if it can't be written, is locked, or belongs to another
    /// program.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::with_deadline(path.as_ref(), DEADLINE)
    }

    fn with_deadline(path: &Path, deadline: Duration) -> Result<Self, Error> {
        // The thread opens it again at first use, because a process may be forked before.
        drop(file::open(path, deadline).map_err(Error::misuse)?);
        let jobs: Arc<PerProcess<SyncSender<Job>>> = Arc::default();
        let wake = Arc::downgrade(&jobs);
        let changed = move || {
            if let Some(jobs) = wake.upgrade().and_then(|jobs| jobs.get()) {
                // A full queue has jobs that wake the thread as well.
                let _ = jobs.try_send(Job::Look);
            }
        };
        Ok(Self { path: Arc::new(path.into()), deadline, topics: Topics::new(changed), jobs })
    }

    fn jobs(&self) -> Option<SyncSender<Job>> {
        let start = || {
            let (sender, jobs) = mpsc::sync_channel(MAX_WAITING);
            let (path, topics) = (Arc::clone(&self.path), Arc::clone(&self.topics));
            let deadline = self.deadline;
            let run = move || run(&path, deadline, &topics, &jobs);
            thread::Builder::new().name("gudgeon-sqlite".into()).spawn(run).ok()?;
            Some(sender)
        };
        self.jobs.get_or_start(start)
    }

    fn failed(&self, reason: &str) -> StoreReply {
        StoreReply::Failed(format!("{}: {reason}", self.path.display()))
    }
}

impl StoreEngine for SqliteStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        let Some(jobs) = self.jobs() else {
            return reply.send(self.failed("no thread can be started"));
        };
        if let Err(TrySendError::Full(Job::Run { reply, .. })) =
            jobs.try_send(Job::Run { operation, reply, begun: clock::now() })
        {
            reply.send(self.failed(&format!("{MAX_WAITING} operations wait, and no more may")));
        }
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        let jobs = self.jobs()?;
        let subscription = self.topics.subscribe(topics, listener);
        let _ = jobs.try_send(Job::Look);
        Some(subscription)
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.path).finish()
    }
}

/// Carries out operations until the store is dropped.
fn run(path: &Path, deadline: Duration, topics: &Topics, jobs: &Receiver<Job>) {
    let mut opened = None;
    let mut messages = Messages::default();
    loop {
        let job = if topics.names().is_empty() {
            messages = Messages::default();
            jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            jobs.recv_timeout(POLL)
        };
        let job = match job {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if opened.is_none() {
            // A file that was removed or locked may come back.
            opened = file::open(path, deadline)
                .inspect_err(|reason| tracing::debug!("{reason}"))
                .map_err(|reason| messages.failed(&reason, topics))
                .ok();
        }
        let failure = match job {
            Some(Job::Run { operation, reply, begun }) => {
                let done = match &mut opened {
                    _ if clock::since(begun) > deadline => Err(Failure::new("it waited too long")),
                    Some(file) => operations::run(file, clock::unix_ms(), operation),
                    None => Err(Failure::new("the file can't be opened")),
                };
                match done {
                    Ok(done) => {
                        reply.send(done);
                        None
                    }
                    Err(failure) => {
                        reply.send(StoreReply::Failed(format!("{}: {failure}", path.display())));
                        Some(failure)
                    }
                }
            }
            Some(Job::Look) | None => None,
        };
        let looked = match &opened {
            Some(file) => messages.look(file, topics),
            None => Ok(()),
        };
        let failure = failure.or(looked.err().map(|error| {
            let failure = Failure::from(error);
            messages.failed(&failure.to_string(), topics);
            failure
        }));
        if failure.is_some_and(|failure| failure.is_fatal()) {
            opened = None;
        }
    }
}
