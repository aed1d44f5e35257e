//! What an event loop is told by whoever finishes a call: there are pieces of answers, or a time to tick came nearer.

use std::{
    collections::VecDeque,
    fmt, io, mem,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use gudgeon::{driver::Outbox, http::Part};
use pyo3::{Py, PyAny};

use crate::{stream::lock, waker::Waker};

/// The client of a request that leaves so many bytes unread is given up.
pub(crate) const MAX_UNREAD: usize = 4 * 1024 * 1024;
/// And so is a connection's, which may have many requests under way.
pub(crate) const MAX_QUEUED: usize = 64 * 1024 * 1024;

/// Boxes with something new in them, and the file descriptor that the loop watches.
#[derive(Debug)]
pub(crate) struct LoopNotifier {
    waker: Waker,
    full: Mutex<Vec<Arc<ResponseQueue>>>,
    /// Futures of those who waited for room.
    relieved: Mutex<Vec<Py<PyAny>>>,
    alarm: AtomicBool,
}

/// The pieces of one answer, or the frames for one connection.
pub(crate) struct ResponseQueue {
    notifier: Weak<LoopNotifier>,
    /// With more bytes inside it is overfull.
    limit: usize,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    parts: VecDeque<Part>,
    bytes: usize,
    is_overfull: bool,
    /// The future that somebody awaits.
    waiter: Option<Py<PyAny>>,
    /// The future of somebody who adds nothing before all is taken.
    relief: Option<Py<PyAny>>,
}

/// The end of a box that the endpoint holds.
pub(crate) struct ResponseSender(pub(crate) Arc<ResponseQueue>);

impl LoopNotifier {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let (full, relieved) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { waker: Waker::new()?, full, relieved, alarm: AtomicBool::new(false) }))
    }

    pub(crate) fn queue(self: &Arc<Self>, limit: usize) -> Arc<ResponseQueue> {
        Arc::new(ResponseQueue { notifier: Arc::downgrade(self), limit, inside: Mutex::default() })
    }

    /// Somebody is to ask for the deadline.
    pub(crate) fn sound_alarm(&self) {
        self.alarm.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether the deadline may have changed.
    pub(crate) fn take_alarm(&self) -> bool {
        self.alarm.swap(false, Ordering::AcqRel)
    }

    /// There may be room now for whoever awaits this future.
    pub(crate) fn relieve(&self, future: Py<PyAny>) {
        lock(&self.relieved).push(future);
        self.waker.wake();
    }

    /// The futures of those whose wait is over.
    pub(crate) fn collect(&self) -> Vec<Py<PyAny>> {
        self.waker.clear();
        let full = mem::take(&mut *lock(&self.full));
        let awaited = full.iter().filter_map(|it| lock(&it.inside).waiter.take());
        let mut over: Vec<_> = awaited.collect();
        over.append(&mut lock(&self.relieved));
        over
    }
}

impl AsFd for LoopNotifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl ResponseQueue {
    /// All that is inside; `None` when its owner reads so slowly that some was thrown away.
    pub(crate) fn take(&self) -> Option<VecDeque<Part>> {
        let mut inside = lock(&self.inside);
        inside.bytes = 0;
        let relief = inside.relief.take();
        let parts = (!inside.is_overfull).then(|| mem::take(&mut inside.parts));
        drop(inside);
        if let (Some(future), Some(notifier)) = (relief, self.notifier.upgrade()) {
            notifier.relieve(future);
        }
        parts
    }

    /// Has the future resolved when all is taken; `false` where no more bytes than these wait.
    pub(crate) fn wait_for_room(&self, bytes: usize, future: Py<PyAny>) -> bool {
        let mut inside = lock(&self.inside);
        let waits = inside.bytes > bytes;
        let before = if waits { inside.relief.replace(future) } else { None };
        drop(inside);
        drop(before);
        waits
    }

    /// Bytes that nobody has taken.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.inside).bytes
    }

    /// Has the future resolved when there is something inside; `false` when there is already.
    pub(crate) fn wait(&self, future: Py<PyAny>) -> bool {
        let mut inside = lock(&self.inside);
        let waits = inside.parts.is_empty() && !inside.is_overfull;
        let before = if waits { inside.waiter.replace(future) } else { None };
        drop(inside);
        drop(before);
        waits
    }
}

impl Outbox for ResponseSender {
    fn unread(&self) -> usize {
        self.0.bytes()
    }

    fn deliver(&mut self, part: Part) {
        let mut inside = lock(&self.0.inside);
        let bytes = match &part {
            Part::Head { body, .. } => body.len(),
            Part::Bytes(bytes) => bytes.len(),
            Part::End => 0,
        };
        // One piece may be longer than all that may wait.
        if inside.bytes > self.0.limit {
            inside.is_overfull = true;
            inside.parts.clear();
        }
        if !inside.is_overfull {
            inside.bytes += bytes;
            inside.parts.push_back(part);
        }
        let is_awaited = inside.waiter.is_some();
        drop(inside);
        if is_awaited && let Some(notifier) = self.0.notifier.upgrade() {
            lock(&notifier.full).push(Arc::clone(&self.0));
            notifier.waker.wake();
        }
    }
}

impl fmt::Debug for ResponseQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseQueue").finish_non_exhaustive()
    }
}
