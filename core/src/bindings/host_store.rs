//! The store of a server, as a host gives it: an address, or an object of its program.

use std::{fmt, sync::Arc};

use crate::{
    clock,
    error::Error,
    replier::Replier,
    store::{
        SharedStore, StoreEngine, StoreListener, StoreOperation, StoreReply, StoreSubscription,
        derived,
    },
    stores::address,
};

/// The methods that an object may have beside `get`, `put` and `take`; those of a group belong together.
pub const GROUPS: [&[&str]; 3] = [&["delete"], &["append", "read"], &["lease", "renew", "release"]];

/// The store of a server.
#[derive(Clone)]
pub struct HostStore(Arc<dyn StoreEngine>);

impl HostStore {
    /// Opens the store at an address. No error shows it.
    pub fn at(address: &str) -> Result<Self, Error> {
        address::open(address).map(Self)
    }

    /// Makes the store of an object. `methods` are the names of those that it has; what it lacks is made of `get`, `put` and
    /// `take`, which every object has.
    pub fn from_object(object: Arc<dyn StoreEngine>, methods: Vec<String>) -> Self {
        Self(Arc::new(Object { engine: object, methods }))
    }

    /// Returns the store for the configuration of an endpoint.
    pub fn shared(&self) -> SharedStore {
        SharedStore(self.engine())
    }

    /// Returns the store as servers use it.
    pub fn engine(&self) -> Arc<dyn StoreEngine> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for HostStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostStore")
    }
}

struct Object {
    engine: Arc<dyn StoreEngine>,
    methods: Vec<String>,
}

impl StoreEngine for Object {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        if self.methods.iter().any(|method| method == operation.name()) {
            self.engine.run(operation, reply);
        } else {
            derived::run(&self.engine, clock::unix_ms(), operation, reply);
        }
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        self.engine.subscribe(topics, listener)
    }
}
