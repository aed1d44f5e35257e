//! A queue of outgoing frames with a writing task, so that reading continues while the peer is slow to read.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
};

use crate::{clock, driver::boxed};

/// With more unwritten bytes than this, reading pauses: a peer that does not read can't send either.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;
/// The time in which messages and the end of a peer that no longer reads may still arrive.
const LAST_MESSAGES: Duration = Duration::from_millis(200);

/// The sending end of the queue.
#[derive(Debug)]
pub(crate) struct Writer {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    unwritten: Arc<AtomicUsize>,
    drained: Arc<Notify>,
    task: JoinHandle<()>,
    /// The time at which a failure was noticed.
    failed_at: Option<Instant>,
}

/// The receiving end of the queue, held by the writing task. Dropping it tells the [`Writer`] that the peer is gone.
#[derive(Debug)]
pub(crate) struct Unwritten {
    frames: mpsc::UnboundedReceiver<Vec<u8>>,
    bytes: Arc<AtomicUsize>,
    drained: Arc<Notify>,
}

impl Writer {
    /// Starts the writing task; `write` runs until the queue ends, or drops it after a failure.
    pub(crate) fn start<F>(write: impl FnOnce(Unwritten) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (frames, queue) = mpsc::unbounded_channel();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let drained = Arc::new(Notify::new());
        let queue = Unwritten {
            frames: queue,
            bytes: Arc::clone(&unwritten),
            drained: Arc::clone(&drained),
        };
        Self {
            frames,
            unwritten,
            drained,
            task: tokio::spawn(boxed(write(queue))),
            failed_at: None,
        }
    }

    /// Queues a frame.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let bytes = frame.len();
        self.unwritten.fetch_add(bytes, Ordering::AcqRel);
        if self.frames.send(frame).is_err() {
            self.unwritten.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Returns whether frames are queued, or could not be written.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.unwritten.load(Ordering::Acquire) > 0
    }

    /// Waits until the queue has room, or writing has failed.
    pub(crate) async fn room(&self) {
        while self.unwritten.load(Ordering::Acquire) > MAX_UNWRITTEN && !self.frames.is_closed() {
            self.drained.notified().await;
        }
    }

    /// Waits until writing has failed, and for the last messages of the peer. Cancel safe.
    pub(crate) async fn failed(&mut self) {
        self.frames.closed().await;
        let failed_at = *self.failed_at.get_or_insert_with(clock::now);
        tokio::time::sleep_until((failed_at + LAST_MESSAGES).into()).await;
    }

    /// Writes queued frames for up to `grace` and closes the connection.
    pub(crate) async fn close(self, grace: Duration) {
        drop(self.frames);
        let mut task = self.task;
        if tokio::time::timeout(grace, &mut task).await.is_err() {
            task.abort();
        }
    }
}

impl Unwritten {
    /// Moves the queued frames into `frames`; returns `false` at the end.
    pub(crate) async fn take(&mut self, frames: &mut Vec<Vec<u8>>) -> bool {
        self.frames.recv_many(frames, 256).await > 0
    }

    /// Records that so many bytes of frames were written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.drained.notify_one();
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.frames.close();
        self.drained.notify_one();
    }
}
