//! A queue of frames to write, which a task of its own empties, so that reading goes on while the peer is slow to read.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
};

/// With more than this unwritten, nothing more is read: a peer that only talks is not listened to.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// What the owner of a wire holds.
#[derive(Debug)]
pub(crate) struct Writer {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    unwritten: Arc<AtomicUsize>,
    drained: Arc<Notify>,
    task: JoinHandle<()>,
}

/// What the task that writes holds.
#[derive(Debug)]
pub(crate) struct Unwritten {
    frames: mpsc::UnboundedReceiver<Vec<u8>>,
    bytes: Arc<AtomicUsize>,
    drained: Arc<Notify>,
}

impl Writer {
    /// `write` empties the queue until it ends, or until the peer is gone.
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
        Self { frames, unwritten, drained, task: tokio::spawn(write(queue)) }
    }

    /// Queues one frame.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let bytes = frame.len();
        self.unwritten.fetch_add(bytes, Ordering::AcqRel);
        if self.frames.send(frame).is_err() {
            self.unwritten.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Waits until not too much is unwritten.
    pub(crate) async fn room(&self) {
        while self.unwritten.load(Ordering::Acquire) > MAX_UNWRITTEN && !self.task.is_finished() {
            self.drained.notified().await;
        }
    }

    /// Writes what is queued, for a while, and closes.
    pub(crate) async fn close(self, grace: Duration) {
        drop(self.frames);
        let mut task = self.task;
        if tokio::time::timeout(grace, &mut task).await.is_err() {
            task.abort();
        }
    }
}

impl Unwritten {
    /// Moves what waits into `frames`; `false` at the end.
    pub(crate) async fn take(&mut self, frames: &mut Vec<Vec<u8>>) -> bool {
        self.frames.recv_many(frames, 256).await > 0
    }

    /// So many bytes of frames need no memory any more.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.drained.notify_one();
    }
}
