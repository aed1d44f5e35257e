//! The store in memory.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::topics::Topics;
use crate::{
    clock,
    replier::Replier,
    store::{
        StoreEngine, StoreListener, StoreOperation, StoreReply, StoreSubscription, memory::Memory,
    },
};

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
pub struct MemoryStore {
    memory: Mutex<Memory>,
    topics: Arc<Topics>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self { memory: Mutex::default(), topics: Topics::new(|| ()) }
    }
}

impl StoreEngine for MemoryStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        if let StoreOperation::Publish { topic, message } = operation {
            self.topics.publish(topic, message);
            return reply.send(StoreReply::Published);
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let done = memory.handle(clock::now(), operation);
        drop(memory);
        reply.send(done);
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        let subscription = self.topics.subscribe(topics, listener);
        self.topics.connected(&self.topics.unconnected());
        Some(subscription)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}
