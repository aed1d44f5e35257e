//! The clock of everything below the driver line: the one place that reads the time.
//!
//! Machines take the time as an argument, and the code that drives them reads it here: from tokio's clock, which the timers of
//! the same code run on. It is the system's clock, except on a runtime whose time a test has paused, which needs the feature
//! `simulation`. Constructors do not pass on a clock: it would have to reach every timer as well, and could differ from them.
//! Threads outside a runtime always read the system's clock.

#![allow(clippy::disallowed_methods, reason = "the time is read here")]

use std::time::{Duration, Instant, SystemTime};

/// Returns the current time.
#[inline]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns the time since `start`.
#[inline]
pub(crate) fn since(start: Instant) -> Duration {
    now().duration_since(start)
}

/// Returns the current date. On a paused runtime it stands still as the clock does, and advances with it.
pub(crate) fn date() -> SystemTime {
    let date = SystemTime::now();
    #[cfg(feature = "simulation")]
    let date = {
        let (now, system_now) = (now(), Instant::now());
        date + now.duration_since(system_now) - system_now.duration_since(now)
    };
    date
}

/// Returns the date in seconds since 1970.
pub(crate) fn unix() -> u64 {
    date().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the date in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = date().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn a_paused_runtime_has_a_time_and_a_date_of_its_own() {
        let (start, date_before) = (now(), date());
        tokio::time::sleep(HOUR).await;
        assert_eq!(since(start), HOUR);
        // The two clocks of the system are not read at the same moment.
        let passed = date().duration_since(date_before).expect("the date advances");
        assert!(passed > HOUR / 2 && passed < 2 * HOUR, "{passed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_outside_reads_the_clock_of_the_system() {
        tokio::time::sleep(HOUR).await;
        let before = Instant::now();
        let read = thread::spawn(now).join().expect("no panic");
        assert!(before <= read && read <= Instant::now());
    }
}
