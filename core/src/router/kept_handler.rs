//! Handlers of the host, which the core only keeps and hands back.

use std::{any::Any, fmt, sync::Arc};

/// A handler of the host: a function of Python, TypeScript or Rust. Clones are the same handler.
#[derive(Clone)]
pub struct Handler(Arc<dyn Any + Send + Sync>);

impl Handler {
    /// Wraps a handler of the host's own type.
    pub fn new<T: Any + Send + Sync>(handler: Arc<T>) -> Self {
        Self(handler)
    }

    /// Returns the host's handler, or `None` if it has another type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }

    /// Returns the host's handler as it was given, or `None` if it has another type.
    pub fn shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.0).downcast().ok()
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}
