//! The store in the configuration of a server.

use std::{fmt, sync::Arc};

use super::StoreEngine;

/// A store that other processes have as well, or that outlives this one.
#[derive(Clone)]
pub struct SharedStore(pub Arc<dyn StoreEngine>);

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedStore")
    }
}
