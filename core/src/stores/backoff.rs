//! The delays between attempts to reach a store.

use std::time::Duration;

/// A delay that doubles with each failure, from 100 ms to 5 s.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(Self::FIRST)
    }
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LAST: Duration = Duration::from_secs(5);

    /// Returns the delay after a failure: by up to a half shorter, so that the servers with one store do not return at the same
    /// moment.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (delay * 2).min(Self::LAST);
        let mut random = [0];
        // Without random bytes the delay is the longest one.
        let _ = getrandom::fill(&mut random);
        delay.saturating_sub(delay / 2 * u32::from(random[0]) / 255)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_bound() {
        let mut backoff = Backoff::default();
        let mut longest = Backoff::FIRST;
        for _ in 0..20 {
            let delay = backoff.next();
            assert!((longest / 2..=longest).contains(&delay), "{delay:?} of {longest:?}");
            longest = (longest * 2).min(Backoff::LAST);
        }
    }
}
