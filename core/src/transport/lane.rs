//! One message connection of an endpoint, whatever carries its messages.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use crate::{
    driver::{EndpointServer, Outbox, Shell, Work},
    framing::Frame,
    service::{ConnectionId, Part},
};

/// With more than this unwritten, nothing more is read: a peer that only talks is not listened to.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;
/// With more than this unwritten, the peer is given up.
const MAX_QUEUED: usize = 64 * 1024 * 1024;

/// A message connection. It is hung up when this is dropped.
pub(crate) struct Connected {
    server: Arc<EndpointServer>,
    shell: Arc<dyn Shell>,
    id: ConnectionId,
    lane: Arc<Lane>,
}

/// Frames on their way to the peer.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    queue: Mutex<Queue>,
    to_write: Notify,
    written: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: Vec<Vec<u8>>,
    /// Bytes of these.
    queued: usize,
    /// Queued, or taken and not written yet.
    bytes: usize,
    is_over: bool,
}

impl Connected {
    pub(crate) fn open(server: Arc<EndpointServer>, shell: Arc<dyn Shell>) -> Self {
        let lane = Arc::new(Lane::default());
        let id = server.connect(None, Box::new(Arc::clone(&lane)));
        Self { server, shell, id, lane }
    }

    pub(crate) fn lane(&self) -> Arc<Lane> {
        Arc::clone(&self.lane)
    }

    /// Takes one frame. What comes of frames that came together is run together: a call that the next frame cancels
    /// does not even start.
    pub(crate) fn take(&self, frame: &Frame<'_>) -> Work {
        match frame {
            Frame::Line(line) => self.server.message(self.id, line),
            Frame::TooLong { limit } => self.server.too_long(self.id, *limit),
        }
    }

    pub(crate) fn run(&self, work: Work) {
        self.shell.run(work);
    }

    /// Takes one message, and does what comes of it.
    pub(crate) fn message(&self, message: &[u8]) {
        self.run(self.take(&Frame::Line(message)));
    }

    /// Waits while too much is unanswered or unwritten: the reader's back pressure.
    pub(crate) async fn has_room(&self) {
        self.lane.has_room().await;
        self.server.has_room(self.id).await;
    }

    /// The peer says nothing more: what is in flight has so long to be answered.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.run(self.server.end_of_input(self.id));
        let _ = timeout(grace, self.server.has_answered(self.id)).await;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.shell.run(self.server.hang_up(self.id));
        self.lane.end();
    }
}

impl Lane {
    /// Moves what waits into `frames`, which is empty; `false` at the end.
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

    /// So many bytes of frames need no memory any more.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.lock().bytes -= bytes;
        self.written.notify_waiters();
    }

    /// Nothing more will be queued.
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

impl Outbox for Arc<Lane> {
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
                    tracing::warn!("a client that leaves {MAX_QUEUED} bytes unread is given up");
                    queue.queued = 0;
                    queue.bytes -= queue.frames.drain(..).map(|it| it.len()).sum::<usize>();
                    queue.is_over = true;
                }
                drop(queue);
                self.to_write.notify_one();
            }
            Part::End => self.end(),
            // A message connection's answers have no head.
            Part::Head { .. } => (),
        }
    }
}
