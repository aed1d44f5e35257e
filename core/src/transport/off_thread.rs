//! Work that may take long, off the threads that all connections share.

use std::{future::pending, panic::resume_unwind, sync::Arc};

#[cfg(feature = "client")]
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{driver::HostedEndpoint, engine::MAX_UNDER_LOCK};

/// The size of a message or value, in bytes, above which parsing and checking it may take long.
pub(crate) const LARGE: usize = MAX_UNDER_LOCK;

/// The size of a message in bytes from which moving the other tasks of a thread costs little in comparison.
#[cfg(feature = "client")]
const LONG: usize = 1024 * 1024;

/// Runs a function on a thread of its own.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime shuts down, and this task with it.
        Err(_) => pending().await,
    }
}

/// Runs a function that reads this many bytes, above 64 KiB on a thread of its own.
#[cfg(feature = "client")]
pub(crate) async fn off_thread_if_large<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match bytes > LARGE {
        true => off_thread(work).await,
        false => work(),
    }
}

/// Runs `work` on the current thread. For a message above 1 MiB, a multi-threaded runtime moves the other tasks of the thread
/// away first. Not for futures of users, which may be bound to their thread.
#[cfg(feature = "client")]
pub(crate) fn beside_other_tasks<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let can_move = || {
        let runtime = Handle::try_current();
        runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    match bytes > LONG && can_move() {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

/// Runs a function on a thread of its own, when fewer than one per processor run for this endpoint: small messages are
/// served meanwhile.
pub(crate) async fn off_connection_thread<T: Send + 'static>(
    endpoint: &Arc<HostedEndpoint>,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    // The semaphore is never closed.
    let permit = Arc::clone(endpoint.large_messages()).acquire_owned().await.ok();
    off_thread(move || {
        let result = work();
        drop(permit);
        result
    })
    .await
}
