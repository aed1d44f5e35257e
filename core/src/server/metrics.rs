//! The metrics of a server, for programs that export them.

use std::{fmt, sync::Arc};

use crate::metrics::{self, Metric};

/// Reads the metrics of a server: of all its addresses and connections together. `docs/metrics.md` lists them.
#[derive(Clone, Debug)]
pub struct MetricsReader(Arc<metrics::Metrics>);

impl MetricsReader {
    pub(super) fn new(metrics: Arc<metrics::Metrics>) -> Self {
        metrics.turn_on();
        Self(metrics)
    }

    /// Returns all metrics with their current values. Calls do not wait for it.
    pub fn read(&self) -> Vec<Metric> {
        self.0.snapshot()
    }
}

impl fmt::Display for MetricsReader {
    /// Writes the metrics in Prometheus' text format, as at the path [`HttpOptions::metrics`](crate::HttpOptions::metrics).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&metrics::text(&self.read()))
    }
}
