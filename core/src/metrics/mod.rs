//! Numbers about a running server: counts that the machines add to, and amounts that its endpoints are asked for.
//!
//! Nothing is counted before somebody wants to read. Counting and reading take no lock.

mod amounts;
mod catalogue;
mod histogram;
mod outcome;
#[cfg_attr(
    not(all(unix, feature = "http")),
    allow(dead_code, reason = "only processes with Unix sockets share an address")
)]
mod process_numbers;
mod snapshot;
mod table;
mod text;
mod totals;

use std::{
    fmt,
    sync::{
        OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub use self::{
    amounts::{Amount, Amounts, Endpoints, HasAmounts},
    catalogue::{Family, MetricKind},
    histogram::Bucket,
    outcome::Outcome,
    process_numbers::{GoneProcesses, KeptNumbers, ProcessNumbers, added_up},
    snapshot::{Metric, Sample, SampleValue},
    text::{CONTENT_TYPE, text},
};
use self::{
    histogram::{CALLS, Histogram, STORE},
    table::Table,
    totals::{CallKey, Totals},
};

/// The maximum number of combinations of method, name and revision that are counted apart.
pub const MAX_SERIES: usize = 1_000;
/// The maximum number of reasons of refusals, and of operations of a store with their outcomes.
const MAX_WORDS: usize = 128;
/// The value of a label that stands for all values that are not counted apart.
pub const OTHER: &str = "_other";

/// The numbers of one server.
#[derive(Default)]
pub struct Metrics {
    /// Empty until somebody wants to read.
    counts: OnceLock<Box<Counts>>,
    endpoints: OnceLock<Box<dyn Endpoints>>,
}

/// The counts since they were turned on.
struct Counts {
    calls: Table<CallLabels, ByOutcome>,
    /// The calls beyond [`MAX_SERIES`].
    other_calls: ByOutcome,
    refusals: Table<&'static str, AtomicU64>,
    store: Table<(&'static str, &'static str), Histogram>,
}

/// The durations of calls for each outcome.
type ByOutcome = [OnceLock<Histogram>; Outcome::ALL.len()];

/// The properties by which calls are counted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallLabels {
    /// A method that the server has, or [`OTHER`].
    pub method: Box<str>,
    /// The tool, prompt or resource template; empty for other requests and for names that the server does not have.
    pub name: Box<str>,
    /// The revision's date, or the dialect's name.
    pub revision: &'static str,
}

/// The place at which a call that has begun will be counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallNumber(Option<u32>);

impl Metrics {
    /// Begins to count.
    pub fn turn_on(&self) {
        self.counts.get_or_init(|| {
            Box::new(Counts {
                calls: Table::new(MAX_SERIES),
                other_calls: ByOutcome::default(),
                refusals: Table::new(MAX_WORDS),
                store: Table::new(MAX_WORDS),
            })
        });
    }

    /// Returns whether anything is counted.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.counts.get().is_some()
    }

    /// Returns the place of a call that begins; `None` if nothing is counted.
    pub(crate) fn call(
        &self,
        method: &str,
        name: &str,
        revision: &'static str,
    ) -> Option<CallNumber> {
        let counts = self.counts.get()?;
        let is_it = |labels: &CallLabels| {
            (&*labels.name, &*labels.method, labels.revision) == (name, method, revision)
        };
        let new = || {
            let labels = CallLabels { method: method.into(), name: name.into(), revision };
            (labels, ByOutcome::default())
        };
        let number = counts.calls.number(&(name, method, revision), is_it, new);
        Some(CallNumber(number.and_then(|number| number.try_into().ok())))
    }

    /// Counts a call that has ended.
    pub(crate) fn ended(&self, call: CallNumber, outcome: Outcome, duration: Duration) {
        let Some(counts) = self.counts.get() else { return };
        let entry = call.0.and_then(|number| counts.calls.get(number as usize));
        let by_outcome = entry.map_or(&counts.other_calls, |(_, by_outcome)| by_outcome);
        if let Some(histogram) = by_outcome.get(outcome as usize) {
            histogram.get_or_init(|| Histogram::new(CALLS)).record(duration);
        }
    }

    /// Counts a request that was refused for this reason before it became a call.
    pub(crate) fn refused(&self, reason: &'static str) {
        let Some(counts) = self.counts.get() else { return };
        let new = || (reason, AtomicU64::default());
        let number = counts.refusals.number(reason, |other| *other == reason, new);
        if let Some((_, count)) = number.and_then(|number| counts.refusals.get(number)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an operation of the store, by names of which there are few.
    pub(crate) fn stored(
        &self,
        operation: &'static str,
        outcome: &'static str,
        duration: Duration,
    ) {
        let Some(counts) = self.counts.get() else { return };
        let key = (operation, outcome);
        let new = || (key, Histogram::new(STORE));
        let number = counts.store.number(&key, |other| *other == key, new);
        if let Some((_, histogram)) = number.and_then(|number| counts.store.get(number)) {
            histogram.record(duration);
        }
    }

    /// Adds an endpoint, which is asked for its amounts at each reading until it is gone. `new` creates the list of endpoints
    /// for the first one.
    pub(crate) fn add_endpoint(
        &self,
        endpoint: Weak<dyn HasAmounts>,
        new: impl FnOnce() -> Box<dyn Endpoints>,
    ) {
        self.endpoints.get_or_init(new).add(endpoint);
    }

    /// Returns the durations of calls, for each of their properties apart.
    pub fn calls(&self) -> Vec<(CallLabels, Outcome, Vec<Bucket>)> {
        let Some(counts) = self.counts.get() else { return Vec::new() };
        let other = CallLabels { method: OTHER.into(), name: "".into(), revision: "" };
        let entries = counts.calls.iter().map(|(labels, by_outcome)| (labels, by_outcome));
        let mut calls: Vec<_> = entries
            .chain([(&other, &counts.other_calls)])
            .flat_map(|(labels, by_outcome)| {
                Outcome::ALL.iter().zip(by_outcome).filter_map(|(outcome, histogram)| {
                    Some((labels.clone(), *outcome, histogram.get()?.read()))
                })
            })
            .collect();
        calls.sort_by(|(one, ..), (other, ..)| one.sorted_by().cmp(&other.sorted_by()));
        calls
    }

    /// Returns all counts.
    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let Some(counts) = self.counts.get() else { return totals };
        let other = CallLabels { method: OTHER.into(), name: "".into(), revision: "" };
        let entries = counts.calls.iter().map(|(labels, by_outcome)| (labels, by_outcome));
        for (labels, by_outcome) in entries.chain([(&other, &counts.other_calls)]) {
            for (outcome, histogram) in Outcome::ALL.iter().zip(by_outcome) {
                if let Some(histogram) = histogram.get() {
                    totals.calls.insert(CallKey::new(labels, *outcome), histogram.durations());
                }
            }
        }
        totals.refusals = counts
            .refusals
            .iter()
            .map(|(reason, count)| ((*reason).to_owned(), count.load(Ordering::Relaxed)))
            .collect();
        totals.store = counts
            .store
            .iter()
            .map(|((operation, outcome), histogram)| {
                (((*operation).to_owned(), (*outcome).to_owned()), histogram.durations())
            })
            .collect();
        totals
    }

    /// Returns the durations of operations of the store, with their names and outcomes.
    pub fn stored_durations(&self) -> Vec<((&'static str, &'static str), Vec<Bucket>)> {
        let Some(counts) = self.counts.get() else { return Vec::new() };
        let store = counts.store.iter();
        let mut store: Vec<_> = store.map(|(key, histogram)| (*key, histogram.read())).collect();
        store.sort_unstable_by_key(|(key, _)| *key);
        store
    }

    /// Returns the upper bounds of the ranges by which operations of the store are counted, in seconds.
    pub fn store_bounds() -> Vec<f64> {
        let buckets = Histogram::new(STORE).read();
        buckets.iter().map(|bucket| bucket.bound).filter(|bound| bound.is_finite()).collect()
    }

    /// Returns the amounts of all endpoints together.
    fn amounts(&self) -> Amounts {
        let all = self.endpoints.get().map(|endpoints| endpoints.amounts()).unwrap_or_default();
        all.into_iter().reduce(Amounts::with).unwrap_or_default()
    }
}

impl CallLabels {
    fn sorted_by(&self) -> (&str, &str, &str) {
        (&self.method, &self.name, self.revision)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISION: &str = "2026-07-28";

    fn count(metrics: &Metrics, name: &str, outcome: Outcome) {
        let call = metrics.call("tools/call", name, REVISION).expect("it is on");
        metrics.ended(call, outcome, Duration::ZERO);
    }

    #[test]
    fn calls_beyond_the_limit_are_counted_together_with_their_outcome() {
        let metrics = Metrics::default();
        metrics.turn_on();
        for number in 0..MAX_SERIES + 100 {
            count(&metrics, &format!("t{number}"), Outcome::Ok);
        }
        count(&metrics, "another", Outcome::Error);
        count(&metrics, "t0", Outcome::Error);
        let calls = metrics.calls();
        assert_eq!(calls.len(), MAX_SERIES + 3);
        let other: Vec<_> = calls
            .iter()
            .filter(|(labels, ..)| &*labels.method == OTHER)
            .map(|(.., outcome, buckets)| (*outcome, buckets[0].count))
            .collect();
        assert_eq!(other, [(Outcome::Ok, 100), (Outcome::Error, 1)]);
    }

    #[test]
    fn reasons_and_operations_are_counted_apart_up_to_a_limit() {
        let metrics = Metrics::default();
        metrics.refused("host");
        metrics.stored("get", "ok", Duration::ZERO);
        assert!(metrics.totals().refusals.is_empty() && metrics.stored_durations().is_empty());
        metrics.turn_on();
        for number in 0..2 * MAX_WORDS {
            metrics.refused(String::leak(number.to_string()));
        }
        assert_eq!(metrics.totals().refusals.len(), MAX_WORDS);
    }
}
