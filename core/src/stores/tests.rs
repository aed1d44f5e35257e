//! The parts that the tests of stores have in common.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{
    env, fs,
    path::PathBuf,
    sync::{Arc, mpsc},
    time::Duration,
};

use crate::{
    replier::Replier,
    store::{Expect, StoreEngine, StoreEvent, StoreOperation, StoreReply, StoreSubscription},
};

/// The time for what happens at once on a machine that is not busy.
pub(super) const ENOUGH: Duration = Duration::from_secs(60);

pub(super) const TTL: Duration = Duration::from_secs(600);

/// A folder that is removed with the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        // Short, because it has sockets.
        let folder = env::temp_dir().join(format!("gs{:016x}", u64::from_be_bytes(random)));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Begins an operation, whose reply arrives in the channel.
pub(super) fn begin(
    store: &dyn StoreEngine,
    operation: StoreOperation,
) -> mpsc::Receiver<StoreReply> {
    let (sender, reply) = mpsc::channel();
    store.run(operation, Replier::new(move |done| drop(sender.send(done))));
    reply
}

pub(super) fn run(store: &dyn StoreEngine, operation: StoreOperation) -> StoreReply {
    begin(store, operation).recv_timeout(ENOUGH).unwrap()
}

/// Returns the reason for which an operation fails.
pub(super) fn failure(store: &dyn StoreEngine, operation: StoreOperation) -> String {
    match run(store, operation) {
        StoreReply::Failed(reason) => reason,
        reply => panic!("{reply:?}"),
    }
}

pub(super) fn put(key: &str) -> StoreOperation {
    StoreOperation::Put { key: key.into(), value: b"1".into(), ttl: TTL, expect: Expect::Any }
}

pub(super) fn get(key: &str) -> StoreOperation {
    StoreOperation::Get { key: key.into() }
}

pub(super) fn lease(owner: &str) -> StoreOperation {
    StoreOperation::Lease { key: "lease".into(), owner: owner.into(), ttl: TTL }
}

pub(super) fn renew(owner: &str) -> StoreOperation {
    StoreOperation::Renew { key: "lease".into(), owner: owner.into(), ttl: TTL }
}

pub(super) fn release(owner: &str) -> StoreOperation {
    StoreOperation::Release { key: "lease".into(), owner: owner.into() }
}

pub(super) fn publish(message: &[u8]) -> StoreOperation {
    StoreOperation::Publish { topic: "topic".into(), message: message.into() }
}

/// Subscribes to the topic of [`publish`].
pub(super) fn subscribe(
    store: &dyn StoreEngine,
) -> (StoreSubscription, mpsc::Receiver<StoreEvent>) {
    let (sender, events) = mpsc::channel();
    let listener = Arc::new(move |event| drop(sender.send(event)));
    (store.subscribe(vec!["topic".into()], listener).unwrap(), events)
}

pub(super) fn next(events: &mpsc::Receiver<StoreEvent>) -> StoreEvent {
    events.recv_timeout(ENOUGH).unwrap()
}

pub(super) fn message(message: &[u8]) -> StoreEvent {
    StoreEvent::Message { topic: "topic".into(), message: message.into() }
}
