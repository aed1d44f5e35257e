//! A store of the program's own, and the one in memory.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, time::timeout};

pub use crate::store::Expect;
use crate::{
    auth::server::authenticator::TIMEOUT,
    clock,
    driver::boxed,
    error::Error,
    replier::Replier,
    store::{BoxFuture, StoreEngine, StoreOperation, StoreReply, memory::Memory},
};

/// A store that servers share, such as a database. Servers that have the same [`ServerOptions::store`](super::ServerOptions::store)
/// remember used `DPoP` proofs together.
///
/// Keys are visible ASCII. An operation that fails, or has no result within 15 s, refuses the requests that need it with 503.
/// [`check_store`](crate::testing::check_store) checks an implementation.
pub trait Store: Send + Sync {
    /// Returns a value and its version.
    fn get(&self, key: String) -> BoxFuture<Option<(Vec<u8>, u64)>>;

    /// Stores a value for the time `ttl`, if the key is as expected. Returns the version of the value, a number that no other
    /// value of the key has; `None` if the key is not as expected. At most one of several concurrent calls that expect the same
    /// succeeds.
    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        ttl: Duration,
        expect: Expect,
    ) -> BoxFuture<Option<u64>>;

    /// Removes a value and returns it. At most one of several concurrent calls gets it.
    fn take(&self, key: String) -> BoxFuture<Option<Vec<u8>>>;
}

/// A store in memory, for servers of one process, and for tests. It has 100,000 values and 64 MiB at most, and refuses more.
///
/// ```
/// use std::sync::Arc;
///
/// use gudgeon::{Server, server::{MemoryStore, Store}};
///
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
/// let servers = ["one", "two"].map(|name| {
///     Server::new(name).options(|options| options.store = Some(Arc::clone(&store)))
/// });
/// ```
#[derive(Default)]
pub struct MemoryStore(Mutex<Memory>);

impl MemoryStore {
    fn run<T>(
        &self,
        operation: StoreOperation,
        read: impl FnOnce(StoreReply) -> Option<T>,
    ) -> BoxFuture<Option<T>>
    where
        T: Send + 'static,
    {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match memory.handle(clock::now(), operation) {
            StoreReply::Failed(reason) => Err(Error::misuse(reason)),
            reply => Ok(read(reply)),
        };
        Box::pin(std::future::ready(result))
    }
}

impl Store for MemoryStore {
    fn get(&self, key: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
        self.run(StoreOperation::Get { key }, |reply| match reply {
            StoreReply::Found(found) => found,
            _ => None,
        })
    }

    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        ttl: Duration,
        expect: Expect,
    ) -> BoxFuture<Option<u64>> {
        self.run(StoreOperation::Put { key, value, ttl, expect }, |reply| match reply {
            StoreReply::Stored(version) => Some(version),
            _ => None,
        })
    }

    fn take(&self, key: String) -> BoxFuture<Option<Vec<u8>>> {
        self.run(StoreOperation::Take { key }, |reply| match reply {
            StoreReply::Taken(taken) => taken,
            _ => None,
        })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

/// A store of a program as the layers below use it.
pub(crate) struct OwnStore(pub(crate) Arc<dyn Store>);

impl StoreEngine for OwnStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        // Without a runtime the reply is dropped, which reports a failure.
        let Ok(runtime) = Handle::try_current() else { return };
        let store = Arc::clone(&self.0);
        // A panic drops the reply as well.
        runtime.spawn(boxed(async move {
            reply.send(match timeout(TIMEOUT, carry_out(&*store, operation)).await {
                Ok(Ok(done)) => done,
                Ok(Err(error)) => StoreReply::Failed(error.to_string()),
                Err(_) => StoreReply::Failed(format!("no reply within {} s", TIMEOUT.as_secs())),
            });
        }));
    }
}

async fn carry_out(store: &dyn Store, operation: StoreOperation) -> Result<StoreReply, Error> {
    Ok(match operation {
        StoreOperation::Get { key } => StoreReply::Found(store.get(key).await?),
        StoreOperation::Put { key, value, ttl, expect } => {
            let version = store.put(key, value, ttl, expect).await?;
            version.map_or(StoreReply::Conflict, StoreReply::Stored)
        }
        StoreOperation::Take { key } => StoreReply::Taken(store.take(key).await?),
        StoreOperation::Delete { key } => store.take(key).await.map(|_| StoreReply::Deleted)?,
        other => StoreReply::Failed(format!("the store has no {}", other.name())),
    })
}
