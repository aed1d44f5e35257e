//! The store of a server, as a host gives it: an address, or an object of its program.

use std::{fmt, path::Path, sync::Arc};

use super::store_object::{ObjectStore, StoreObject};
use crate::{
    error::Error,
    store::{SharedStore, StoreEngine},
    stores::address,
};

/// The store of a server.
#[derive(Clone)]
pub struct HostStore(Arc<dyn StoreEngine>);

impl HostStore {
    /// Opens the store at an address. No error shows it.
    pub fn at(address: &str) -> Result<Self, Error> {
        address::open(address).map(Self)
    }

    /// Opens the store in a file.
    pub fn at_file(path: &Path) -> Result<Self, Error> {
        #[cfg(feature = "sqlite")]
        {
            Ok(Self(Arc::new(crate::stores::SqliteStore::open(path)?)))
        }
        #[cfg(not(feature = "sqlite"))]
        Err(Error::misuse(format!("{}: this build has no SQLite", path.display())))
    }

    /// Makes the store of an object. `methods` are the names of those that it has; what it lacks is made of `get`, `put` and
    /// `take`, which every object has.
    pub fn from_object(object: Arc<dyn StoreObject>, methods: Vec<String>) -> Self {
        Self(Arc::new(ObjectStore::new(object, methods)))
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
