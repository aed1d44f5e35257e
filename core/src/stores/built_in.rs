//! The engines of this crate as stores of a program.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Store;
use crate::{
    error::Error,
    replier::Replier,
    store::{
        BoxFuture, Expect, StoreEngine, StoreListener, StoreOperation, StoreReply,
        StoreSubscription,
    },
};

/// Runs an operation, which begins at once. Errors with the reason of a failure.
fn ask<T: Send + 'static>(
    engine: &dyn StoreEngine,
    operation: StoreOperation,
    read: impl FnOnce(StoreReply) -> T + Send + 'static,
) -> BoxFuture<T> {
    let (sender, reply) = oneshot::channel();
    engine.run(operation, Replier::new(move |done| drop(sender.send(done))));
    Box::pin(async move {
        match reply.await {
            Ok(StoreReply::Failed(reason)) => Err(Error::misuse(reason)),
            Ok(done) => Ok(read(done)),
            Err(_) => Err(Error::misuse("the operation was given up")),
        }
    })
}

/// Every engine of this crate has all operations.
impl<E: StoreEngine> Store for E {
    fn get(&self, key: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
        ask(self, StoreOperation::Get { key }, |done| match done {
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
        let operation = StoreOperation::Put { key, value, ttl, expect };
        ask(self, operation, |done| match done {
            StoreReply::Stored(version) => Some(version),
            _ => None,
        })
    }

    fn take(&self, key: String) -> BoxFuture<Option<Vec<u8>>> {
        ask(self, StoreOperation::Take { key }, |done| match done {
            StoreReply::Taken(taken) => taken,
            _ => None,
        })
    }

    fn delete(&self, key: String) -> Option<BoxFuture<()>> {
        Some(ask(self, StoreOperation::Delete { key }, |_| ()))
    }

    fn append(
        &self,
        log: String,
        event: Vec<u8>,
        max_events: u64,
        max_bytes: u64,
        ttl: Duration,
    ) -> Option<BoxFuture<u64>> {
        let operation = StoreOperation::Append { log, event, max_events, max_bytes, ttl };
        Some(ask(self, operation, |done| match done {
            StoreReply::Appended(number) => number,
            _ => 0,
        }))
    }

    fn read(&self, log: String, after: u64) -> Option<BoxFuture<Option<Vec<(u64, Vec<u8>)>>>> {
        Some(ask(self, StoreOperation::Read { log, after }, |done| match done {
            StoreReply::Events(events) => Some(events),
            _ => None,
        }))
    }

    fn publish(&self, topic: String, message: Vec<u8>) -> Option<BoxFuture<()>> {
        Some(ask(self, StoreOperation::Publish { topic, message }, |_| ()))
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        StoreEngine::subscribe(self, topics, listener)
    }

    fn lease(&self, key: String, owner: String, ttl: Duration) -> Option<BoxFuture<Option<u64>>> {
        Some(ask(self, StoreOperation::Lease { key, owner, ttl }, |done| match done {
            StoreReply::Leased(token) => Some(token),
            _ => None,
        }))
    }

    fn renew(&self, key: String, owner: String, ttl: Duration) -> Option<BoxFuture<Option<u64>>> {
        Some(ask(self, StoreOperation::Renew { key, owner, ttl }, |done| match done {
            StoreReply::Leased(token) => Some(token),
            _ => None,
        }))
    }

    fn release(&self, key: String, owner: String) -> Option<BoxFuture<()>> {
        Some(ask(self, StoreOperation::Release { key, owner }, |_| ()))
    }
}
