//! The delays between attempts to reach a server.

use std::time::Duration;

use crate::client::retry::with_jitter;

/// A delay that doubles each time, from 1 s to [`Backoff::MAX`].
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    /// The longest delay.
    pub(super) const MAX: Duration = Duration::from_secs(60);

    pub(crate) fn new() -> Self {
        Self(Duration::from_secs(1))
    }

    /// Waits before the next attempt.
    pub(crate) async fn wait(&mut self) {
        let delay = self.0;
        self.0 = (delay * 2).min(Self::MAX);
        tokio::time::sleep(with_jitter(delay)).await;
    }
}
