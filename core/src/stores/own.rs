//! A store of the program's own.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, time::timeout};

use crate::{
    clock,
    driver::boxed,
    error::Error,
    replier::Replier,
    store::{
        BoxFuture, Expect, StoreEngine, StoreListener, StoreOperation, StoreReply,
        StoreSubscription, derived,
    },
};

/// The time for an operation of a store of the program.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Events of a log with their numbers.
type Events = Vec<(u64, Vec<u8>)>;

/// A store that servers share, such as a database. Servers that have the same [`ServerOptions::store`](crate::ServerOptions::store)
/// remember used `DPoP` proofs together.
///
/// A store needs `get`, `put` and `take`; what else the server needs is made of them. The other methods return `None` unless a
/// store does better: `append` and `read`, `publish` and `subscribe`, and `lease`, `renew` and `release` belong together. Without
/// `subscribe`, what needs messages stays within the process.
///
/// Keys, logs, topics and owners are visible ASCII. One name may be that of a value, a log, a topic and a lease, which do not know
/// each other. An operation that fails, or has no result within 15 s, refuses the requests that need it with 503.
/// [`check_store`](crate::testing::check_store) checks an implementation.
pub trait Store: Send + Sync {
    /// Returns a value and its version.
    fn get(&self, key: String) -> BoxFuture<Option<(Vec<u8>, u64)>>;

    /// Stores a value for the time `ttl`, if the key is as expected. Returns the version of the value, a number from 0 on that is
    /// greater than the version of each value that the key had before, also of one that was taken or has ended; `None` if the key
    /// is not as expected. At most one of several concurrent calls that expect the same succeeds.
    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        ttl: Duration,
        expect: Expect,
    ) -> BoxFuture<Option<u64>>;

    /// Removes a value and returns it. At most one of several concurrent calls gets it.
    fn take(&self, key: String) -> BoxFuture<Option<Vec<u8>>>;

    /// Removes a value, if there is one.
    fn delete(&self, key: String) -> Option<BoxFuture<()>> {
        drop(key);
        None
    }

    /// Adds an event at the end of a log. Returns its number, from 1 on, which is greater than each earlier one of the log, also of
    /// one that has ended. The oldest events are removed while there are more than `max_events` of them, or more than `max_bytes`
    /// bytes; an event that is longer is an error. The log ends when nothing was added for the time `ttl`.
    fn append(
        &self,
        log: String,
        event: Vec<u8>,
        max_events: u64,
        max_bytes: u64,
        ttl: Duration,
    ) -> Option<BoxFuture<u64>> {
        drop((log, event, max_events, max_bytes, ttl));
        None
    }

    /// Returns all events of a log with a greater number than `after`, in their order, with their numbers; 0 reads the whole log.
    /// `None` if one of them is not stored any more, or if the log has no event with the number `after`, and had none.
    fn read(&self, log: String, after: u64) -> Option<BoxFuture<Option<Events>>> {
        drop((log, after));
        None
    }

    /// Sends a message to all who have subscribed to a topic, in all processes.
    fn publish(&self, topic: String, message: Vec<u8>) -> Option<BoxFuture<()>> {
        drop((topic, message));
        None
    }

    /// Calls `listener` with each message of the topics, those of a topic in their order, until what it returns is dropped. Returns
    /// at once, connects for ever, and reports [`StoreEvent::Lost`](super::StoreEvent::Lost) each time that it is connected.
    /// `None` if the store carries no messages.
    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        drop((topics, listener));
        None
    }

    /// Takes a lease for the time `ttl`. Returns its fencing token, which is greater than each earlier one of the key; `None` if
    /// another owner has the lease. An owner who has it already gets a new token.
    fn lease(&self, key: String, owner: String, ttl: Duration) -> Option<BoxFuture<Option<u64>>> {
        drop((key, owner, ttl));
        None
    }

    /// Lets a lease last for the time `ttl` from now. Returns its token; `None` if the owner does not have it any more.
    fn renew(&self, key: String, owner: String, ttl: Duration) -> Option<BoxFuture<Option<u64>>> {
        drop((key, owner, ttl));
        None
    }

    /// Ends a lease, if the owner has it.
    fn release(&self, key: String, owner: String) -> Option<BoxFuture<()>> {
        drop((key, owner));
        None
    }
}

/// A store of a program as the layers below use it.
pub(crate) struct OwnStore(pub(crate) Arc<dyn Store>);

impl StoreEngine for OwnStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        // Without a runtime the reply is dropped, which reports a failure.
        let Ok(runtime) = Handle::try_current() else { return };
        let Some(run) = begin(&self.0, operation.clone()) else {
            let basic: Arc<dyn StoreEngine> = Arc::new(Self(Arc::clone(&self.0)));
            return derived::run(&basic, clock::unix_ms(), operation, reply);
        };
        // A panic drops the reply as well.
        runtime.spawn(boxed(async move {
            reply.send(match timeout(TIMEOUT, run).await {
                Ok(Ok(done)) => done,
                Ok(Err(error)) => StoreReply::Failed(error.to_string()),
                Err(_) => StoreReply::Failed(format!("no reply within {} s", TIMEOUT.as_secs())),
            });
        }));
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        self.0.subscribe(topics, listener)
    }
}

/// Calls the method of an operation; `None` if the store does not have it.
fn begin(store: &Arc<dyn Store>, operation: StoreOperation) -> Option<BoxFuture<StoreReply>> {
    let owner_of = |token: Option<u64>| token.map_or(StoreReply::Held, StoreReply::Leased);
    Some(match operation {
        // Within the future, so that a method that panics or blocks is nothing to the caller.
        StoreOperation::Get { key } => {
            let store = Arc::clone(store);
            Box::pin(async move { store.get(key).await.map(StoreReply::Found) })
        }
        StoreOperation::Put { key, value, ttl, expect } => {
            let store = Arc::clone(store);
            Box::pin(async move {
                let version = store.put(key, value, ttl, expect).await?;
                Ok(version.map_or(StoreReply::Conflict, StoreReply::Stored))
            })
        }
        StoreOperation::Take { key } => {
            let store = Arc::clone(store);
            Box::pin(async move { store.take(key).await.map(StoreReply::Taken) })
        }
        StoreOperation::Delete { key } => then(store.delete(key)?, |()| StoreReply::Deleted),
        StoreOperation::Append { log, event, max_events, max_bytes, ttl } => {
            let appended = store.append(log, event, max_events, max_bytes, ttl)?;
            then(appended, StoreReply::Appended)
        }
        StoreOperation::Read { log, after } => then(store.read(log, after)?, |events| {
            events.map_or(StoreReply::Gone, StoreReply::Events)
        }),
        StoreOperation::Publish { topic, message } => {
            then(store.publish(topic, message)?, |()| StoreReply::Published)
        }
        StoreOperation::Lease { key, owner, ttl } => then(store.lease(key, owner, ttl)?, owner_of),
        StoreOperation::Renew { key, owner, ttl } => then(store.renew(key, owner, ttl)?, owner_of),
        StoreOperation::Release { key, owner } => {
            then(store.release(key, owner)?, |()| StoreReply::Released)
        }
    })
}

fn then<T: 'static>(
    future: BoxFuture<T>,
    reply: impl FnOnce(T) -> StoreReply + Send + 'static,
) -> BoxFuture<StoreReply> {
    Box::pin(async move { Ok::<_, Error>(reply(future.await?)) })
}
