//! How long peers are waited for.

use std::time::Duration;

/// Who is slower than this for long is cut off: bytes a second.
const MIN_RATE: u64 = 1024;

/// Times that a connection keeps to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For a request's head, from its first byte on.
    pub(crate) header: Duration,
    /// Without a request, or without progress.
    pub(crate) idle: Duration,
}

impl Patience {
    /// How long so many bytes may take.
    pub(crate) fn for_bytes(self, bytes: usize) -> Duration {
        self.idle.saturating_add(Duration::from_millis(bytes as u64 * 1000 / MIN_RATE))
    }
}
