//! Work that may take long, off the threads that all connections share: the bindings have one for all clients.

use std::{future::pending, panic::resume_unwind};

/// The size of a value, in bytes, above which its check may take long.
pub(super) const LARGE: usize = 64 * 1024;

/// Runs a function on a thread of its own.
pub(super) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime shuts down, and this task with it.
        Err(_) => pending().await,
    }
}
