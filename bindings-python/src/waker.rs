//! A file descriptor that wakes its poller.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// Readable from [`wake`](Waker::wake) until [`clear`](Waker::clear); wakes in between cost no system call.
#[derive(Debug)]
pub(crate) struct Waker {
    read: OwnedFd,
    #[cfg(not(target_os = "linux"))]
    write: OwnedFd,
    is_set: AtomicBool,
}

impl Waker {
    #[cfg(target_os = "linux")]
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { read, is_set: AtomicBool::new(false) })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new() -> io::Result<Self> {
        let (read, write) = std::io::pipe()?;
        Ok(Self { read: read.into(), write: write.into(), is_set: AtomicBool::new(false) })
    }

    pub(crate) fn wake(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // The write fails only if the counter is full, in which case the descriptor is readable already.
            let _ = rustix::io::write(self.write_end(), &1_u64.to_ne_bytes());
        }
    }

    /// Must be called before looking for work.
    pub(crate) fn clear(&self) {
        if self.is_set.load(Ordering::Acquire) {
            let _ = rustix::io::read(&self.read, &mut [0_u8; 8]);
            self.is_set.store(false, Ordering::Release);
        }
    }

    #[cfg(target_os = "linux")]
    fn write_end(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    #[cfg(not(target_os = "linux"))]
    fn write_end(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
