//! A connection of an endpoint that carries whole messages, for any transport.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use crate::{
    driver::{EndpointServer, Outbox, Shell, Work},
    framing::Frame,
    http::{ConnectionId, Part},
};

/// With more unwritten bytes than this, reading pauses: a peer that does not read can't send either.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;
/// With more unwritten bytes than this, the connection is closed.
const MAX_QUEUED: usize = 64 * 1024 * 1024;

/// A message connection; dropping it closes it.
pub(crate) struct Connected {
    server: Arc<EndpointServer>,
    shell: Arc<dyn Shell>,
    id: ConnectionId,
    send_queue: Arc<SendQueue>,
}

/// The queue of frames to send to the peer.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    queue: Mutex<Queue>,
    to_write: Notify,
    written: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: Vec<Vec<u8>>,
    /// The total size of the queued frames.
    queued: usize,
    /// The total size of frames that are queued, or taken and not written yet.
    bytes: usize,
    is_over: bool,
}

impl Connected {
    pub(crate) fn open(server: Arc<EndpointServer>, shell: Arc<dyn Shell>) -> Self {
        let send_queue = Arc::new(SendQueue::default());
        let id = server.connect(None, Box::new(Arc::clone(&send_queue)));
        Self { server, shell, id, send_queue }
    }

    pub(crate) fn send_queue(&self) -> Arc<SendQueue> {
        Arc::clone(&self.send_queue)
    }

    /// Handles a frame and returns the resulting work. The work of frames that arrived together is run together, so
    /// that a call that the next frame cancels is not started.
    pub(crate) fn take(&self, frame: &Frame<'_>) -> Work {
        match frame {
            Frame::Line(line) => self.server.message(self.id, line),
            Frame::TooLong { limit } => self.server.too_long(self.id, *limit),
        }
    }

    pub(crate) fn run(&self, work: Work) {
        self.shell.run(work);
    }

    /// Handles a message and runs the resulting work.
    pub(crate) fn message(&self, message: &[u8]) {
        self.run(self.take(&Frame::Line(message)));
    }

    /// Waits while too many bytes are unanswered or unwritten; this applies back pressure to the reader.
    pub(crate) async fn has_room(&self) {
        self.send_queue.has_room().await;
        self.server.has_room(self.id).await;
    }

    /// Marks the end of input and waits up to `grace` for pending calls to be answered.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.run(self.server.end_of_input(self.id));
        let _ = timeout(grace, self.server.has_answered(self.id)).await;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.shell.run(self.server.hang_up(self.id));
        self.send_queue.end();
    }
}

impl SendQueue {
    /// Moves the queued frames into `frames`, which must be empty; returns `false` at the end.
    pub(crate) async fn take(&self, frames: &mut Vec<Vec<u8>>) -> bool {
        loop {
            {
                let mut queue = self.lock();
                if !queue.frames.is_empty() {
                    std::mem::swap(&mut queue.frames, frames);
                    queue.queued = 0;
                    return true;
                }
                if queue.is_over {
                    return false;
                }
            }
            self.to_write.notified().await;
        }
    }

    /// Records that so many bytes of frames were written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.lock().bytes -= bytes;
        self.written.notify_waiters();
    }

    /// Closes the queue for new frames.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.to_write.notify_one();
        self.written.notify_waiters();
    }

    async fn has_room(&self) {
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            {
                let queue = self.lock();
                if queue.bytes <= MAX_UNWRITTEN || queue.is_over {
                    return;
                }
            }
            written.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outbox for Arc<SendQueue> {
    fn unread(&self) -> usize {
        self.lock().queued
    }

    fn deliver(&mut self, part: Part) {
        match part {
            Part::Bytes(frame) => {
                let mut queue = self.lock();
                if queue.is_over {
                    return;
                }
                queue.bytes += frame.len();
                queue.queued += frame.len();
                queue.frames.push(frame);
                if queue.bytes > MAX_QUEUED {
                    tracing::warn!(
                        "closing a connection whose client left {MAX_QUEUED} bytes unread"
                    );
                    queue.queued = 0;
                    queue.bytes -= queue.frames.drain(..).map(|it| it.len()).sum::<usize>();
                    queue.is_over = true;
                }
                drop(queue);
                self.to_write.notify_one();
            }
            Part::End => self.end(),
            // Responses on a message connection have no head.
            Part::Head { .. } => (),
        }
    }
}
