//! The metrics of a server for OpenTelemetry.

use std::sync::Arc;

use gudgeon::{bindings::telemetry, metrics::Metrics};
use pyo3::prelude::*;

/// The metrics of one server. They are counted from its creation on.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Telemetry(telemetry::Telemetry);

impl Telemetry {
    pub(crate) fn new(metrics: Arc<Metrics>, server: &str) -> Self {
        Self(telemetry::Telemetry::new(metrics, server))
    }
}

#[pymethods]
impl Telemetry {
    /// Returns the values of a counter or gauge as a JSON list of pairs: the value, and its attributes.
    fn observe(&self, instrument: &str) -> String {
        self.0.observe(instrument)
    }

    /// Returns the durations since the last call as a JSON list: the name of the histogram, a duration in seconds, how many times
    /// to record it, and the attributes.
    fn durations(&self) -> String {
        self.0.durations()
    }
}

/// Returns the instruments as a JSON list of their `name`, `unit`, `description` and `kind`; of histograms also the `bounds`.
#[pyfunction]
pub(crate) fn instruments() -> String {
    telemetry::instruments()
}
