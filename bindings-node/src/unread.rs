//! The bytes of a response that its client has not read, in the native queue and at the host.

use std::sync::{Arc, Mutex};

use gudgeon::driver::Holding;

use crate::shared::lock;

/// The unread bytes of one response; clones are the same response.
#[derive(Clone, Debug)]
pub(crate) struct Unread(Arc<Mutex<Inside>>);

#[derive(Debug)]
struct Inside {
    /// Bytes that wait for the event loop.
    queued: usize,
    /// Bytes that the host holds.
    at_host: usize,
    counted: Holding,
    is_cut: bool,
}

impl Unread {
    /// Creates the count of a new response, in a holding of its client.
    pub(crate) fn new(counted: Holding) -> Self {
        Self(Arc::new(Mutex::new(Inside { queued: 0, at_host: 0, counted, is_cut: false })))
    }

    /// Returns the number of bytes that wait for the event loop.
    pub(crate) fn queued(&self) -> usize {
        lock(&self.0).queued
    }

    /// Adds bytes to the queue. Returns `false` and adds nothing if there is no room for them.
    pub(crate) fn add(&self, bytes: usize) -> bool {
        let mut inside = lock(&self.0);
        let (queued, at_host) = (inside.queued + bytes, inside.at_host);
        !inside.is_cut && inside.set(queued, at_host)
    }

    /// Discards everything. Returns `false` if it was discarded before.
    pub(crate) fn cut(&self) -> bool {
        let mut inside = lock(&self.0);
        inside.counted.clear();
        !std::mem::replace(&mut inside.is_cut, true)
    }

    /// Moves bytes from the queue to the host. Returns whether the host must report what is read of them.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut inside = lock(&self.0);
        inside.queued = inside.queued.saturating_sub(bytes);
        inside.at_host += bytes;
        !inside.counted.is_empty()
    }

    /// Sets the number of bytes that the host holds. Returns `false` if there is no room for them.
    pub(crate) fn report(&self, at_host: usize) -> bool {
        let mut inside = lock(&self.0);
        let queued = inside.queued;
        inside.is_cut || inside.set(queued, at_host)
    }
}

impl Inside {
    fn set(&mut self, queued: usize, at_host: usize) -> bool {
        let has_room = self.counted.set(queued + at_host);
        if has_room {
            (self.queued, self.at_host) = (queued, at_host);
        }
        has_room
    }
}
