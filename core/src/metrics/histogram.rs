//! Durations, counted by ranges whose bounds never change.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// The upper bounds of calls, in microseconds: those that OpenTelemetry recommends for MCP, and three below them.
pub(super) const CALLS: &[u64] = &[
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
];

/// The upper bounds of operations of a store, in microseconds.
pub(super) const STORE: &[u64] = &[
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// Counts of durations, and their sums.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [u64],
    /// One for each bound, and the one of all longer durations.
    ranges: Box<[Range]>,
}

#[derive(Debug, Default)]
struct Range {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The durations between one bound and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Bucket {
    /// The upper bound in seconds, which is included; infinite for the last bucket.
    pub bound: f64,
    /// The number of durations above the bound of the bucket before.
    pub count: u64,
    /// The sum of these durations, in seconds.
    pub sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, ranges: (0..=bounds.len()).map(|_| Range::default()).collect() }
    }

    pub(super) fn record(&self, duration: Duration) {
        let microseconds = duration.as_nanos().div_ceil(1_000);
        let place = self.bounds.partition_point(|bound| u128::from(*bound) < microseconds);
        let Some(range) = self.ranges.get(place) else { return };
        range.count.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        range.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns the buckets. A duration that is recorded at this moment may be missing, or missing from its sum only.
    pub(super) fn read(&self) -> Vec<Bucket> {
        self.durations().buckets(self.bounds)
    }

    /// Returns the counts and sums of the ranges.
    pub(super) fn durations(&self) -> Durations {
        let ranges = self.ranges.iter().map(|range| {
            (range.count.load(Ordering::Relaxed), range.nanoseconds.load(Ordering::Relaxed))
        });
        Durations(ranges.collect())
    }
}

/// The count and the nanoseconds of each range of a histogram.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Durations(Vec<(u64, u64)>);

impl Durations {
    /// Adds the durations of a histogram with the same bounds.
    pub(super) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), (0, 0));
        }
        for (own, (count, nanoseconds)) in self.0.iter_mut().zip(&other.0) {
            *own = (own.0.saturating_add(*count), own.1.saturating_add(*nanoseconds));
        }
    }

    /// Returns the number of durations.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|(count, _)| *count).fold(0, u64::saturating_add)
    }

    /// Returns the buckets of a histogram with these bounds.
    pub(super) fn buckets(&self, bounds: &[u64]) -> Vec<Bucket> {
        let bounds = bounds.iter().map(|bound| seconds(*bound, 1e6)).chain([f64::INFINITY]);
        bounds
            .zip(&self.0)
            .map(|(bound, (count, nanoseconds))| Bucket {
                bound,
                count: *count,
                sum: seconds(*nanoseconds, 1e9),
            })
            .collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "2⁵³ ns are 104 days, and sums are approximate")]
fn seconds(count: u64, per_second: f64) -> f64 {
    count as f64 / per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_includes_it() {
        let histogram = Histogram::new(CALLS);
        for (nanoseconds, bound) in [
            (0, 0.001),
            (1_000_000, 0.001),
            (1_000_001, 0.002),
            (300_000_000_000, 300.0),
            (300_000_000_001, f64::INFINITY),
            (u64::MAX, f64::INFINITY),
        ] {
            let before = histogram.read();
            histogram.record(Duration::from_nanos(nanoseconds));
            let pairs = before.into_iter().zip(histogram.read());
            let (_, after) =
                pairs.into_iter().find(|(old, new)| old.count != new.count).expect("one");
            assert!(after.bound.total_cmp(&bound).is_eq(), "{nanoseconds}: {after:?}");
        }
        let total: u64 = histogram.read().iter().map(|bucket| bucket.count).sum();
        assert_eq!(total, 6);
        assert!((histogram.read()[0].sum - 0.001).abs() < 1e-12);
    }

    #[test]
    fn bounds_ascend() {
        for bounds in [CALLS, STORE] {
            assert!(bounds.is_sorted_by(|one, next| one < next));
        }
    }
}
