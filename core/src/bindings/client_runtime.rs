//! The thread of all clients in a process.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// The number of task steps after which the thread looks for what has arrived. A server that sends without end keeps a
/// task busy, and with tokio's interval of 61 steps the replies of other servers would wait for that many.
const STEPS: u32 = 8;

/// Starts the runtime of all clients in this process, with one thread.
pub fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("gudgeon-client")
        .event_interval(STEPS)
        .enable_all()
        .build()
}
