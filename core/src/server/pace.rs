//! Estimates whether a handler is fast enough to run in place, from the time that its runs occupied their thread.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A run that occupies its thread longer than this is slow.
const QUICK: Duration = Duration::from_millis(1);
/// A run that occupies its thread longer than this is slow regardless of others; between the two limits the machine
/// may have been busy.
const STALLING: Duration = Duration::from_millis(20);
/// The number of consecutive fast runs after which a slow handler counts as fast again.
const RECOVERY: u32 = 32;
/// A state in which the last run was slow and another slow run makes the handler slow. Greater than any count.
const ONE_SLOW_RUN: u32 = u32::MAX;

/// The recorded speed of a handler.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The number of fast runs until the handler is run in place again, 0 for a fast handler, or [`ONE_SLOW_RUN`].
    runs_to_recover: AtomicU32,
}

impl Pace {
    pub(super) fn is_quick(&self) -> bool {
        matches!(self.runs_to_recover.load(Ordering::Relaxed), 0 | ONE_SLOW_RUN)
    }

    /// Records the time that a run occupied its thread. A lost concurrent update only delays the change by one run.
    pub(super) fn record(&self, occupied: Duration) {
        let known = self.runs_to_recover.load(Ordering::Relaxed);
        let updated = match known {
            0 if occupied <= QUICK => return,
            0 if occupied <= STALLING => ONE_SLOW_RUN,
            ONE_SLOW_RUN if occupied <= QUICK => 0,
            _ if occupied > QUICK => RECOVERY,
            _ => known - 1,
        };
        self.runs_to_recover.store(updated, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(50);
    const LONG: Duration = Duration::from_millis(5);

    fn after(runs: &[Duration]) -> Pace {
        let pace = Pace::default();
        for run in runs {
            pace.record(*run);
        }
        pace
    }

    #[test]
    fn one_long_run_among_short_ones_may_be_the_machines_doing() {
        assert!(after(&[SHORT, LONG, SHORT, SHORT, LONG]).is_quick());
    }

    #[test]
    fn two_long_runs_in_succession_make_a_handler_slow() {
        assert!(!after(&[SHORT, LONG, LONG]).is_quick());
    }

    #[test]
    fn a_run_that_stalls_others_makes_it_slow_at_once() {
        assert!(!after(&[Duration::from_millis(21)]).is_quick());
        assert!(!after(&[SHORT, LONG, Duration::from_secs(1)]).is_quick());
    }

    #[test]
    fn a_row_of_short_runs_makes_it_quick_again() {
        let mut runs = vec![LONG, LONG];
        runs.extend([SHORT; RECOVERY as usize - 1]);
        assert!(!after(&runs).is_quick());
        runs.push(SHORT);
        assert!(after(&runs).is_quick());
        runs.insert(20, LONG);
        assert!(!after(&runs).is_quick(), "a long run between begins the row anew");
    }
}
