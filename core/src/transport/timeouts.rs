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
    /// The time without a request, or without progress of what is written.
    pub(crate) idle: Duration,
    /// The time without more of a message that has begun.
    pub(crate) body: Duration,
}

impl Timeouts {
    /// Returns the time limit for writing so many bytes.
    pub(crate) fn for_bytes(self, bytes: usize) -> Duration {
        self.idle.saturating_add(Duration::from_millis(bytes as u64 * 1000 / MIN_RATE))
    }

    /// Returns the time after which more than these bytes of a message must have arrived.
    pub(crate) fn for_received(self, bytes: usize) -> Duration {
        self.body.saturating_add(Duration::from_millis(bytes as u64 * 1000 / MIN_SEND_RATE))
    }

    /// Returns the time within which the next bytes of a message must arrive, of which so many arrived in this time.
    pub(crate) fn for_rest(self, bytes: usize, elapsed: Duration) -> Duration {
        self.for_received(bytes).saturating_sub(elapsed).min(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        header: Duration::from_secs(1),
        idle: Duration::from_secs(75),
        body: Duration::from_secs(60),
    };

    #[test]
    fn an_answer_must_be_read_at_a_minimum_rate() {
        assert_eq!(TIMEOUTS.for_bytes(0), Duration::from_secs(75));
        assert_eq!(TIMEOUTS.for_bytes(2048), Duration::from_secs(77));
    }

    #[test]
    fn a_message_must_arrive_at_a_minimum_rate() {
        let seconds = Duration::from_secs;
        assert_eq!(TIMEOUTS.for_received(0), seconds(60));
        assert_eq!(TIMEOUTS.for_received(4 * 1024 * 1024), seconds(60 + 256));
        assert_eq!(TIMEOUTS.for_received(16 * 1024), seconds(61));
        assert_eq!(TIMEOUTS.for_rest(0, seconds(59)), seconds(1));
        assert_eq!(TIMEOUTS.for_rest(32 * 1024, seconds(59)), seconds(3));
        assert_eq!(TIMEOUTS.for_rest(4 * 1024 * 1024, seconds(1)), seconds(60), "a pause ends it");
        assert_eq!(TIMEOUTS.for_rest(1, seconds(100)), Duration::ZERO);
    }
}
