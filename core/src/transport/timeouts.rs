//! Time limits of connections.

use std::time::Duration;

/// The minimum rate, in bytes per second, at which a peer must read.
const MIN_RATE: u64 = 1024;
/// The minimum rate at which it must send a message that it has begun.
const MIN_SEND_RATE: u64 = 16 * 1024;

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// The time for the head of a request, from its first byte on.
    pub(crate) header: Duration,
    /// The time without a request or without progress.
    pub(crate) idle: Duration,
}

impl Timeouts {
    /// Returns the time limit for writing so many bytes.
    pub(crate) fn for_bytes(self, bytes: usize) -> Duration {
        self.idle.saturating_add(Duration::from_millis(bytes as u64 * 1000 / MIN_RATE))
    }

    /// Returns the time after which more than these bytes of a message must have arrived.
    pub(crate) fn for_received(self, bytes: usize) -> Duration {
        self.idle.saturating_add(Duration::from_millis(bytes as u64 * 1000 / MIN_SEND_RATE))
    }
}
