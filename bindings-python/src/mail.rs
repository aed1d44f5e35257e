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

use gudgeon::{driver::Outbox, service::Part};
use pyo3::{Py, PyAny};

use crate::{stream::lock, waker::Waker};

/// The client of a request that leaves so many bytes unread is given up.
pub(crate) const MAX_UNREAD: usize = 4 * 1024 * 1024;
/// And so is a connection's, which may have many requests under way.
pub(crate) const MAX_QUEUED: usize = 64 * 1024 * 1024;

/// Boxes with something new in them, and the file descriptor that the loop watches.
#[derive(Debug)]
pub(crate) struct Mail {
    waker: Waker,
    full: Mutex<Vec<Arc<Letterbox>>>,
    alarm: AtomicBool,
}

/// The pieces of one answer, or the frames for one connection.
pub(crate) struct Letterbox {
    mail: Weak<Mail>,
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
}

/// The end of a box that the endpoint holds.
pub(crate) struct Slit(pub(crate) Arc<Letterbox>);

impl Mail {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let (full, alarm) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(Self { waker: Waker::new()?, full, alarm }))
    }

    pub(crate) fn letterbox(self: &Arc<Self>, limit: usize) -> Arc<Letterbox> {
        Arc::new(Letterbox { mail: Arc::downgrade(self), limit, inside: Mutex::default() })
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

    /// The futures of those whose wait is over.
    pub(crate) fn collect(&self) -> Vec<Py<PyAny>> {
        self.waker.clear();
        let full = mem::take(&mut *lock(&self.full));
        full.iter().filter_map(|it| lock(&it.inside).waiter.take()).collect()
    }
}

impl AsFd for Mail {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Letterbox {
    /// All that is inside; `None` when its owner reads so slowly that some was thrown away.
    pub(crate) fn take(&self) -> Option<VecDeque<Part>> {
        let mut inside = lock(&self.inside);
        inside.bytes = 0;
        (!inside.is_overfull).then(|| mem::take(&mut inside.parts))
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

impl Outbox for Slit {
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
        if is_awaited && let Some(mail) = self.0.mail.upgrade() {
            lock(&mail.full).push(Arc::clone(&self.0));
            mail.waker.wake();
        }
    }
}

impl fmt::Debug for Letterbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letterbox").finish_non_exhaustive()
    }
}
