//! All metrics of a server at one moment, as data.

use std::{collections::BTreeMap, iter, time::Duration};

use super::{
    Bucket, Metrics, OTHER,
    amounts::{Amount, Amounts},
    catalogue::{self, Family, MetricKind},
    histogram::{CALLS, Durations, STORE},
    totals::{CallKey, Totals},
};

/// A metric with its values.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Metric {
    /// The name in Prometheus, such as `gudgeon_calls_total`.
    pub name: &'static str,
    pub(crate) kind: MetricKind,
    /// The sentence that documents it.
    pub help: &'static str,
    pub samples: Vec<Sample>,
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Sample {
    /// The names of labels, with their values.
    pub labels: Vec<(&'static str, String)>,
    pub value: SampleValue,
}

/// The value of a [`Sample`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum SampleValue {
    /// A number that only grows while the process runs.
    Counter(u64),
    /// A number that grows and shrinks.
    Gauge(f64),
    /// Durations, in buckets with ascending bounds.
    Histogram(Vec<Bucket>),
}

impl Metrics {
    /// Returns all metrics. Those of calls begin when they are turned on.
    pub fn snapshot(&self) -> Vec<Metric> {
        metrics(&self.totals(), &self.amounts())
    }
}

/// Returns all metrics with these counts and amounts.
pub(super) fn metrics(totals: &Totals, amounts: &Amounts) -> Vec<Metric> {
    let mut metrics = call_metrics(totals);
    let refusals = totals.refusals.iter();
    metrics.push(metric(
        catalogue::REFUSALS,
        refusals.map(|(reason, count)| (vec![reason.clone()], SampleValue::Counter(*count))),
    ));
    metrics.extend(gauges(amounts));
    metrics.push(metric(
        catalogue::STORE,
        totals.store.iter().map(|((operation, outcome), durations)| {
            let labels = vec![operation.clone(), outcome.clone()];
            (labels, SampleValue::Histogram(durations.buckets(STORE)))
        }),
    ));
    metrics.push(metric(
        catalogue::KEY_SETS,
        amounts.key_sets.iter().map(|(issuer, age)| (vec![issuer.clone()], (*age).into())),
    ));
    metrics.push(metric(catalogue::WORKERS, iter::empty()));
    metrics.push(metric(catalogue::WORKERS_MISSING, iter::empty()));
    if let Some(worker) = amounts.worker {
        let samples = metrics.iter_mut().flat_map(|metric| &mut metric.samples);
        for sample in samples {
            sample.labels.push(("worker", worker.to_string()));
        }
    }
    metrics
}

/// Returns the number of calls, and their durations without the revision, by which few would ask for them.
fn call_metrics(totals: &Totals) -> Vec<Metric> {
    let mut by_name: BTreeMap<[String; 3], Durations> = BTreeMap::new();
    let mut counts = Vec::new();
    for (CallKey { method, name, revision, outcome }, durations) in &totals.calls {
        let outcome = outcome.as_str();
        let revision = match &**revision {
            "" => OTHER,
            revision => revision,
        };
        let labels = vec![method.clone(), name.clone(), outcome.into(), revision.into()];
        counts.push((labels, SampleValue::Counter(durations.count())));
        by_name.entry([method.clone(), name.clone(), outcome.into()]).or_default().add(durations);
    }
    let durations = by_name.into_iter().map(|(labels, durations)| {
        (labels.into(), SampleValue::Histogram(durations.buckets(CALLS)))
    });
    vec![metric(catalogue::CALLS, counts.into_iter()), metric(catalogue::CALL_DURATION, durations)]
}

fn gauges(amounts: &Amounts) -> Vec<Metric> {
    let held = [
        ("requests", amounts.request_bytes),
        ("suspended", amounts.suspended_bytes),
        ("input", amounts.input_bytes),
        ("unread", amounts.unread_bytes),
    ];
    let by_purpose = |family, value: fn(Amount) -> usize| {
        let samples = held.iter().map(|(purpose, amount)| {
            (vec![(*purpose).to_owned()], SampleValue::from(value(*amount)))
        });
        metric(family, samples)
    };
    let gauge = |family, value: usize| metric(family, [(Vec::new(), value.into())].into_iter());
    vec![
        gauge(catalogue::SESSIONS, amounts.sessions.now),
        gauge(catalogue::SESSIONS_LIMIT, amounts.sessions.limit),
        gauge(catalogue::STREAMS, amounts.streams),
        gauge(catalogue::IN_FLIGHT, amounts.in_flight.now),
        gauge(catalogue::IN_FLIGHT_LIMIT, amounts.in_flight.limit),
        gauge(catalogue::SUSPENDED, amounts.suspended.now),
        gauge(catalogue::SUSPENDED_LIMIT, amounts.suspended.limit),
        gauge(catalogue::CONNECTIONS, amounts.connections.now),
        gauge(catalogue::CONNECTIONS_LIMIT, amounts.connections.limit),
        by_purpose(catalogue::HELD, |amount| amount.now),
        by_purpose(catalogue::HELD_LIMIT, |amount| amount.limit),
    ]
}

/// Returns a metric whose samples have these values of its labels.
pub(super) fn metric(
    family: &'static Family,
    samples: impl Iterator<Item = (Vec<String>, SampleValue)>,
) -> Metric {
    let Family { name, kind, help, labels, .. } = family;
    let samples = samples.map(|(values, value)| Sample {
        labels: labels.iter().copied().zip(values).collect(),
        value,
    });
    Metric { name, kind: *kind, help, samples: samples.collect() }
}

impl From<usize> for SampleValue {
    #[expect(clippy::cast_precision_loss, reason = "Prometheus and OpenTelemetry have doubles")]
    fn from(amount: usize) -> Self {
        Self::Gauge(amount as f64)
    }
}

impl From<Duration> for SampleValue {
    fn from(duration: Duration) -> Self {
        Self::Gauge(duration.as_secs_f64())
    }
}
