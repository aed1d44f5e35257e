//! The metrics of a server as instruments of OpenTelemetry, which the host creates with the API that the program has installed.
//!
//! Counters and gauges are observed. OpenTelemetry has no histogram that can be observed, so the durations since the last time
//! are recorded: as many as there were in each range, with their average, so that counts and sums are right, and durations are
//! where they belong as long as the program's buckets do not divide these ranges.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value, json};

use crate::metrics::{
    Bucket, CallLabels, Family, Metric, MetricKind, Metrics, OTHER, Outcome, Sample, SampleValue,
};

/// The bounds that the semantic conventions recommend for `mcp.server.operation.duration`, in seconds.
const CALL_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The metrics of one server, as OpenTelemetry gets them.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Arc<Metrics>,
    server: String,
    /// The durations that were recorded, for each instrument and its attributes.
    recorded: Mutex<HashMap<String, Vec<Bucket>>>,
}

/// Returns the instruments as a JSON list of their `name`, `unit`, `description` and `kind` (`counter`, `gauge` or `histogram`);
/// of histograms also the `bounds`.
pub fn instruments() -> String {
    let instruments = Family::ALL.iter().filter_map(|family| {
        let (name, unit) = family.telemetry?;
        let mut instrument = json!({
            "name": name, "unit": unit, "description": family.help, "kind": kind(family.kind),
        });
        if family.kind == MetricKind::Histogram {
            instrument["bounds"] = bounds(name).into();
        }
        Some(instrument)
    });
    instruments.collect::<Value>().to_string()
}

impl Telemetry {
    /// Begins to count for the server of this name.
    pub fn new(metrics: Arc<Metrics>, server: &str) -> Self {
        metrics.turn_on();
        Self { metrics, server: server.to_owned(), recorded: Mutex::default() }
    }

    /// Returns the values of the counter or gauge of this name as a JSON list of pairs: the value, and its attributes.
    pub fn observe(&self, instrument: &str) -> String {
        let is_it =
            |family: &&&Family| family.telemetry.is_some_and(|(name, _)| name == instrument);
        let family = Family::ALL.iter().find(is_it);
        let metrics = self.metrics.snapshot().into_iter();
        let metrics = metrics.filter(|metric| family.is_some_and(|own| own.name == metric.name));
        let samples = metrics.flat_map(|Metric { samples, .. }| samples);
        let values = samples.filter_map(|Sample { labels, value }| {
            let number = match value {
                SampleValue::Counter(count) => Value::from(count),
                SampleValue::Gauge(number) => number.into(),
                SampleValue::Histogram(_) => return None,
            };
            // Each process has a resource of its own.
            let labels = labels.into_iter().filter(|(label, _)| *label != "worker");
            let mut attributes = self.attributes();
            attributes.extend(labels.map(|(label, value)| own(label, value)));
            Some(json!([number, attributes]))
        });
        values.collect::<Value>().to_string()
    }

    /// Returns the durations since the last call as a JSON list: the name of the histogram, a duration in seconds, how many times
    /// to record it, and the attributes.
    pub fn durations(&self) -> String {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let mut durations = Vec::new();
        let calls = self.metrics.calls().into_iter().map(|(labels, outcome, buckets)| {
            ("mcp.server.operation.duration", call_attributes(&labels, outcome), buckets)
        });
        let stored = self.metrics.stored_durations().into_iter();
        let stored = stored.map(|((operation, outcome), buckets)| {
            let attributes = [("operation", operation), ("outcome", outcome)];
            let attributes = attributes.map(|(label, value)| own(label, value.to_owned()));
            ("gudgeon.store.duration", Map::from_iter(attributes), buckets)
        });
        for (name, more, buckets) in calls.chain(stored) {
            let mut attributes = self.attributes();
            attributes.extend(more);
            let attributes = Value::from(attributes);
            let before = recorded.entry(format!("{name} {attributes}")).or_default();
            for (place, bucket) in buckets.iter().enumerate() {
                let old = before.get(place).copied().unwrap_or_default();
                let times = bucket.count.saturating_sub(old.count);
                if times > 0 {
                    #[expect(clippy::cast_precision_loss, reason = "it is an average")]
                    let average = (bucket.sum - old.sum).max(0.0) / times as f64;
                    durations.push(json!([name, average, times, attributes]));
                }
            }
            *before = buckets;
        }
        Value::from(durations).to_string()
    }

    fn attributes(&self) -> Map<String, Value> {
        Map::from_iter([own("server", self.server.clone())])
    }
}

/// Returns the attributes of the semantic conventions for MCP.
fn call_attributes(labels: &CallLabels, outcome: Outcome) -> Map<String, Value> {
    let CallLabels { method, name, revision } = labels;
    let mut attributes = Map::new();
    let mut add = |key: &str, value: &str| {
        attributes.insert(key.to_owned(), value.into());
    };
    let is_tool = &**method == "tools/call";
    add("mcp.method.name", method);
    add("mcp.protocol.version", if revision.is_empty() { OTHER } else { revision });
    if is_tool {
        add("gen_ai.operation.name", "execute_tool");
    }
    match &**method {
        _ if name.is_empty() => (),
        "tools/call" => add("gen_ai.tool.name", name),
        "prompts/get" => add("gen_ai.prompt.name", name),
        _ => add("gudgeon.resource_template", name),
    }
    match outcome {
        Outcome::Ok => (),
        Outcome::Error if is_tool => add("error.type", "tool_error"),
        outcome => add("error.type", outcome.as_str()),
    }
    attributes
}

fn own(label: &str, value: String) -> (String, Value) {
    (format!("gudgeon.{label}"), value.into())
}

fn kind(kind: MetricKind) -> &'static str {
    match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    }
}

fn bounds(instrument: &str) -> Vec<f64> {
    match instrument {
        "mcp.server.operation.duration" => CALL_BOUNDS.to_vec(),
        _ => Metrics::store_bounds(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn durations_are_recorded_once_with_the_average_of_their_range() {
        let metrics = Arc::new(Metrics::default());
        let telemetry = Telemetry::new(Arc::clone(&metrics), "shelf");
        let call = metrics.call("tools/call", "add", "2026-07-28").unwrap();
        for milliseconds in [12, 18, 700] {
            metrics.ended(call, Outcome::Ok, Duration::from_millis(milliseconds));
        }
        let attributes = json!({
            "gudgeon.server": "shelf", "mcp.method.name": "tools/call", "gen_ai.tool.name": "add",
            "gen_ai.operation.name": "execute_tool", "mcp.protocol.version": "2026-07-28",
        });
        let name = "mcp.server.operation.duration";
        let expected = json!([[name, 0.015, 2, attributes], [name, 0.7, 1, attributes]]);
        assert_eq!(read(&telemetry.durations()), expected);
        assert_eq!(read(&telemetry.durations()), json!([]));
        metrics.ended(call, Outcome::Error, Duration::from_millis(20));
        let failed = read(&telemetry.durations());
        assert_eq!((&failed[0][2], &failed[0][3]["error.type"]), (&json!(1), &json!("tool_error")));
    }

    #[test]
    fn every_instrument_is_observed_or_recorded() {
        let metrics = Arc::new(Metrics::default());
        let telemetry = Telemetry::new(Arc::clone(&metrics), "shelf");
        metrics.refused("host");
        metrics.stored("get", "ok", Duration::from_millis(1));
        let call = metrics.call("resources/read", "file:///{path}", "2026-07-28").unwrap();
        metrics.ended(call, Outcome::Invalid, Duration::ZERO);
        let recorded = read(&telemetry.durations());
        for instrument in read(&instruments()).as_array().unwrap() {
            let name = instrument["name"].as_str().unwrap();
            if instrument["kind"] == "histogram" {
                let is_it = |record: &&Value| record[0] == name;
                let record = recorded.as_array().unwrap().iter().find(is_it);
                assert!(record.is_some() && instrument["bounds"].is_array(), "{name}");
            } else {
                let observed = read(&telemetry.observe(name));
                let may_be_absent = name == "gudgeon.key_set.age";
                assert!(may_be_absent || observed[0][0].is_number(), "{name}");
            }
        }
        let refusals = json!([[1, {"gudgeon.server": "shelf", "gudgeon.reason": "host"}]]);
        assert_eq!(read(&telemetry.observe("gudgeon.refusals")), refusals);
        assert_eq!(read(&telemetry.observe("gudgeon.unknown")), json!([]));
    }

    #[test]
    fn the_ranges_of_calls_divide_those_of_the_conventions() {
        let metrics = Metrics::default();
        metrics.turn_on();
        let call = metrics.call("ping", "", "2026-07-28").unwrap();
        metrics.ended(call, Outcome::Ok, Duration::ZERO);
        let [(_, _, buckets)] = &metrics.calls()[..] else { panic!("one series") };
        for bound in CALL_BOUNDS {
            assert!(buckets.iter().any(|bucket| bucket.bound.total_cmp(&bound).is_eq()), "{bound}");
        }
    }
}
