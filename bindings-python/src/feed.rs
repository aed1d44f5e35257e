//! Calls that come from the IO threads of a server at an address.

use std::sync::{Arc, Weak};

use gudgeon::driver::{Host, Work};
use tokio::sync::Notify;

use crate::stream::{Stream, Wake};

/// Receives calls from the IO threads.
#[derive(Debug)]
pub(crate) struct Feed {
    stream: Arc<Stream>,
    /// Notified when `async def` handlers were queued and the event loop was not woken for them.
    queued: Arc<Notify>,
}

impl Feed {
    /// Creates a feed. Has to be called in the runtime of the IO threads.
    pub(crate) fn new(stream: &Arc<Stream>) -> Self {
        let queued = Arc::new(Notify::new());
        tokio::spawn(announce_to_loop(Arc::downgrade(stream), Arc::clone(&queued)));
        Self { stream: Arc::clone(stream), queued }
    }
}

impl Host for Feed {
    fn perform(&self, work: Work) {
        self.stream.sort(work, Wake::Soon);
        if self.stream.asyncio_queue.is_unannounced() {
            self.queued.notify_one();
        }
    }
}

/// Wakes the event loop once for all handlers that an IO thread queues in one go.
async fn announce_to_loop(stream: Weak<Stream>, queued: Arc<Notify>) {
    loop {
        queued.notified().await;
        // Until the thread has nothing else to do, or for as many tasks as it runs between two looks for input.
        tokio::task::yield_now().await;
        let Some(stream) = stream.upgrade() else { return };
        stream.asyncio_queue.announce(&stream);
    }
}
