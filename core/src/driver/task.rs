//! Futures that tokio runs as tasks.

use std::pin::Pin;

/// The future of a task.
pub type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Boxes the future of a task. Tokio compiles the code that runs a task, 2 KB, for each type of future, so tasks share one.
pub fn boxed<T>(future: impl Future<Output = T> + Send + 'static) -> Boxed<T> {
    Box::pin(future)
}
