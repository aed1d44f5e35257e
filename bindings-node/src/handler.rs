//! A JavaScript handler, as registered with the router.

use std::sync::{Arc, Mutex, OnceLock};

use crate::shared::lock;

/// A handler as the core stores it.
pub(crate) type Handler = Arc<JsHandler>;

/// The server's visibility filter, set once.
pub(crate) type VisibilityFilter = Arc<OnceLock<Handler>>;

/// The index of a handler in JavaScript's table.
#[derive(Debug)]
pub(crate) struct JsHandler {
    pub(crate) id: u32,
    dropped: Dropped,
}

/// Handlers that are no longer referenced, so that JavaScript can drop them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dropped(Arc<Mutex<Vec<u32>>>);

impl Dropped {
    pub(crate) fn handler(&self, id: u32) -> Handler {
        Arc::new(JsHandler { id, dropped: self.clone() })
    }

    pub(crate) fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl Drop for JsHandler {
    fn drop(&mut self) {
        lock(&self.dropped.0).push(self.id);
    }
}
