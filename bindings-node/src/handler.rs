//! A JavaScript handler, as registered with the router.

use std::sync::{Arc, Mutex, OnceLock};

use gudgeon::router::Handler;

use crate::shared::lock;

/// The server's visibility filter, set once.
pub(crate) type VisibilityFilter = Arc<OnceLock<Handler>>;

/// The index of a handler in JavaScript's table.
#[derive(Debug)]
struct JsHandler {
    id: u32,
    dropped: Dropped,
}

/// Returns the index of a handler; `None` if it is not one of JavaScript.
pub(crate) fn index(handler: &Handler) -> Option<u32> {
    handler.downcast_ref::<JsHandler>().map(|handler| handler.id)
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
