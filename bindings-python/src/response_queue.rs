//! Responses on their way to the event loop, and the file descriptor that wakes it.

use std::{
    collections::VecDeque,
    fmt, io, mem,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use gudgeon::{
    driver::{Holding, Outbox, Unread},
    http::Part,
};
use pyo3::{Py, PyAny};

use crate::{stream::lock, waker::Waker};

/// The maximum number of unread bytes of a request's response; beyond it the client is disconnected.
pub(crate) const MAX_UNREAD: usize = 4 * 1024 * 1024;
/// The maximum number of unread bytes of a connection, which may have many requests in flight.
pub(crate) const MAX_QUEUED: usize = 64 * 1024 * 1024;

/// The queues with new content, and the file descriptor that the loop watches.
#[derive(Debug)]
pub(crate) struct LoopNotifier {
    waker: Waker,
    full: Mutex<Vec<Arc<ResponseQueue>>>,
    /// Futures of callers that waited for room.
    ready: Mutex<Vec<Py<PyAny>>>,
    alarm: AtomicBool,
}

/// The parts of one response, or the frames of one connection.
pub(crate) struct ResponseQueue {
    notifier: Weak<LoopNotifier>,
    /// The maximum number of bytes in the queue.
    limit: usize,
    inside: Mutex<Inside>,
}

struct Inside {
    parts: VecDeque<Part>,
    bytes: usize,
    /// The count of these bytes.
    unread: Holding,
    /// The count of the bytes that were taken last, and that the host may still be sending.
    sending: Holding,
    is_overfull: bool,
    /// `true` if the connection ends because its access token has expired.
    has_expired: bool,
    /// The future resolved by the next part.
    waiter: Option<Py<PyAny>>,
    /// The future resolved when the queue is empty.
    waits_for_room: Option<Py<PyAny>>,
}

/// The sending half of the queue, held by the endpoint.
pub(crate) struct ResponseSender(pub(crate) Arc<ResponseQueue>);

impl LoopNotifier {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let (full, ready) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { waker: Waker::new()?, full, ready, alarm: AtomicBool::new(false) }))
    }

    /// Returns a new queue, whose bytes are counted in `unread`.
    pub(crate) fn queue(self: &Arc<Self>, limit: usize, mut unread: Holding) -> Arc<ResponseQueue> {
        let inside = Inside {
            parts: VecDeque::new(),
            bytes: 0,
            sending: unread.take(),
            unread,
            is_overfull: false,
            has_expired: false,
            waiter: None,
            waits_for_room: None,
        };
        let notifier = Arc::downgrade(self);
        Arc::new(ResponseQueue { notifier, limit, inside: Mutex::new(inside) })
    }

    /// Wakes the loop because the deadline changed.
    pub(crate) fn sound_alarm(&self) {
        self.alarm.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns `true` if the deadline may have changed.
    pub(crate) fn take_alarm(&self) -> bool {
        self.alarm.swap(false, Ordering::AcqRel)
    }

    /// Resolves this future, because there may be room again.
    pub(crate) fn resolve_later(&self, future: Py<PyAny>) {
        lock(&self.ready).push(future);
        self.waker.wake();
    }

    /// Returns the futures to resolve.
    pub(crate) fn collect(&self) -> Vec<Py<PyAny>> {
        self.waker.clear();
        let full = mem::take(&mut *lock(&self.full));
        let awaited = full.iter().filter_map(|queue| lock(&queue.inside).waiter.take());
        let mut over: Vec<_> = awaited.collect();
        over.append(&mut lock(&self.ready));
        over
    }
}

impl AsFd for LoopNotifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl ResponseQueue {
    /// Takes all parts; `None` if parts were discarded because they were taken too slowly.
    pub(crate) fn take(&self) -> Option<VecDeque<Part>> {
        let mut inside = lock(&self.inside);
        inside.bytes = 0;
        // Taken again, so what was taken before has been sent.
        inside.sending = inside.unread.take();
        let waits_for_room = inside.waits_for_room.take();
        let parts = (!inside.is_overfull).then(|| mem::take(&mut inside.parts));
        drop(inside);
        if let (Some(future), Some(notifier)) = (waits_for_room, self.notifier.upgrade()) {
            notifier.resolve_later(future);
        }
        parts
    }

    /// Records that nothing of the response is kept any more.
    pub(crate) fn release(&self) {
        let mut inside = lock(&self.inside);
        inside.unread.clear();
        inside.sending.clear();
    }

    /// Resolves the future when the queue is empty. Returns `false` if it holds at most this many bytes already.
    pub(crate) fn wait_for_room(&self, bytes: usize, future: Py<PyAny>) -> bool {
        let mut inside = lock(&self.inside);
        let waits = inside.bytes > bytes;
        let before = if waits { inside.waits_for_room.replace(future) } else { None };
        drop(inside);
        drop(before);
        waits
    }

    /// Returns the number of bytes in the queue.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.inside).bytes
    }

    /// Returns whether the connection ends because its access token has expired.
    pub(crate) fn has_expired(&self) -> bool {
        lock(&self.inside).has_expired
    }

    /// Resolves the future when the queue has content. Returns `false` if it has already.
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
    fn unread(&self) -> Unread {
        let inside = lock(&self.0.inside);
        Unread { parts: inside.parts.len(), bytes: inside.bytes }
    }

    fn expire(&mut self) {
        lock(&self.0.inside).has_expired = true;
        self.deliver(Part::End);
    }

    fn deliver(&mut self, part: Part) {
        let mut inside = lock(&self.0.inside);
        let bytes = match &part {
            Part::Head { body, .. } => body.len(),
            Part::Bytes(bytes) => bytes.len(),
            Part::End => 0,
        };
        let length = inside.bytes + bytes;
        // A single part may exceed the limit, and the end of the response follows it.
        let is_over_limit = bytes > 0 && inside.bytes > self.0.limit;
        if !inside.is_overfull {
            let has_room = !is_over_limit && inside.unread.set(length);
            match part {
                part if has_room => {
                    inside.bytes = length;
                    inside.parts.push_back(part);
                }
                Part::Head { more: false, .. } => inside.parts.push_back(Part::without_room(bytes)),
                _ => {
                    inside.is_overfull = true;
                    inside.parts.clear();
                    inside.unread.clear();
                }
            }
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
