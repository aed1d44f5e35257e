//! The delays between attempts to reach a server of a group.

use std::time::Duration;

use crate::client::retry::with_jitter;

/// A delay that doubles each time, from 1 s to [`Backoff::MAX`].
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Backoff {
    /// The longest delay.
    pub(super) const MAX: Duration = Duration::from_secs(60);

    pub(super) fn new() -> Self {
        Self(Duration::from_secs(1))
    }

    /// Waits before the next attempt.
    pub(super) async fn wait(&mut self) {
        let delay = self.0;
        self.0 = (delay * 2).min(Self::MAX);
        tokio::time::sleep(with_jitter(delay)).await;
    }
}
