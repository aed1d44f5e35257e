//! The thread of all clients in a process.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// The number of polls of tasks after which the thread checks which sockets and pipes can be read. A server that sends
/// without end keeps a task busy. With tokio's default, 61, the replies of other servers would wait for that many polls.
const EVENT_INTERVAL: u32 = 8;

/// Starts the runtime of all clients in this process, with one thread.
pub fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("gudgeon-client")
        .event_interval(EVENT_INTERVAL)
        .enable_all()
        .build()
}
