//! Handlers of the host, which the core only keeps and hands back.

use std::{any::Any, sync::Arc};

/// A handler of the host: a function of Python, TypeScript or Rust, as a value of the host's own type. Clones are the same
/// handler.
pub type Handler = Arc<dyn Any + Send + Sync>;
