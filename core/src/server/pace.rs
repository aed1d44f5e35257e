//! Whether a handler is quick enough to run where it is asked for, learned from how long its runs keep their thread.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// A run that keeps its thread for longer is slow.
const QUICK: Duration = Duration::from_millis(1);
/// One that does so for longer stalls others whatever the reason; between the two the machine may just have been busy.
const STALLING: Duration = Duration::from_millis(20);
/// So many quick runs make a handler that was once slow quick again.
const TRUST: u32 = 32;
/// The last run was slow, and one more makes the handler slow. Above every count of runs to go.
const SUSPECT: u32 = u32::MAX;

/// What is known of one handler's pace.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Quick runs to go until it is run in place again, 0 for a quick one, or [`SUSPECT`].
    distrust: AtomicU32,
}

impl Pace {
    pub(super) fn is_quick(&self) -> bool {
        matches!(self.distrust.load(Ordering::Relaxed), 0 | SUSPECT)
    }

    /// Notes how long a run kept its thread. Updates that are lost among threads only make it take a run longer.
    pub(super) fn learn(&self, kept: Duration) {
        let known = self.distrust.load(Ordering::Relaxed);
        let learned = match known {
            0 if kept <= QUICK => return,
            0 if kept <= STALLING => SUSPECT,
            SUSPECT if kept <= QUICK => 0,
            _ if kept > QUICK => TRUST,
            _ => known - 1,
        };
        self.distrust.store(learned, Ordering::Relaxed);
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
            pace.learn(*run);
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
        runs.extend([SHORT; TRUST as usize - 1]);
        assert!(!after(&runs).is_quick());
        runs.push(SHORT);
        assert!(after(&runs).is_quick());
        runs.insert(20, LONG);
        assert!(!after(&runs).is_quick(), "a long run between begins the row anew");
    }
}
