//! Metrics in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Write as _};

use super::{Bucket, Metric, MetricKind, Sample, SampleValue};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the metrics as text. Metrics without a value are declared all the same.
pub fn text(metrics: &[Metric]) -> String {
    metrics.iter().map(ToString::to_string).collect()
}

impl fmt::Display for Metric {
    /// Writes the metric in Prometheus' text format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, help, samples, .. } = self;
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
        for Sample { labels, value } in samples {
            match value {
                SampleValue::Counter(count) => {
                    write_labels(f, name, labels, None)?;
                    writeln!(f, " {count}")?;
                }
                SampleValue::Gauge(number) => {
                    write_labels(f, name, labels, None)?;
                    writeln!(f, " {number}")?;
                }
                SampleValue::Histogram(buckets) => write_buckets(f, name, labels, buckets)?,
            }
        }
        Ok(())
    }
}

/// Writes cumulative buckets, the sum and the count.
fn write_buckets(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    labels: &[(&'static str, String)],
    buckets: &[Bucket],
) -> fmt::Result {
    let (mut count, mut sum) = (0, 0.0);
    for bucket in buckets {
        count += bucket.count;
        sum += bucket.sum;
        write_labels(f, &format!("{name}_bucket"), labels, Some(bucket.bound))?;
        writeln!(f, " {count}")?;
    }
    write_labels(f, &format!("{name}_sum"), labels, None)?;
    writeln!(f, " {sum}")?;
    write_labels(f, &format!("{name}_count"), labels, None)?;
    writeln!(f, " {count}")
}

/// Writes a name with its labels; `bound` is that of a bucket.
fn write_labels(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    labels: &[(&'static str, String)],
    bound: Option<f64>,
) -> fmt::Result {
    f.write_str(name)?;
    let mut before = '{';
    for (label, value) in labels {
        write!(f, "{before}{label}=\"")?;
        for letter in value.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')?;
        before = ',';
    }
    match bound {
        Some(f64::INFINITY) => write!(f, "{before}le=\"+Inf\"}}"),
        Some(bound) => write!(f, "{before}le=\"{bound}\"}}"),
        None if labels.is_empty() => Ok(()),
        None => f.write_char('}'),
    }
}
