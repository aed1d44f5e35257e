//! The metrics of a server for OpenTelemetry.

use std::sync::Arc;

use gudgeon::{bindings::telemetry, metrics::Metrics};
use napi_derive::napi;

/// The metrics of one server. They are counted from its creation on.
#[napi]
#[derive(Debug)]
pub struct NativeTelemetry(telemetry::Telemetry);

#[napi]
impl NativeTelemetry {
    /// Returns the values of a counter or gauge as a JSON list of pairs: the value, and its attributes.
    #[napi(catch_unwind)]
    pub fn observe(&self, instrument: String) -> String {
        self.0.observe(&instrument)
    }

    /// Returns the durations since the last call as a JSON list: the name of the histogram, a duration in seconds, how many times
    /// to record it, and the attributes.
    #[napi(catch_unwind)]
    pub fn durations(&self) -> String {
        self.0.durations()
    }

    /// Returns the instruments as a JSON list of their `name`, `unit`, `description` and `kind`; of histograms also the `bounds`.
    #[napi(catch_unwind)]
    pub fn instruments() -> String {
        telemetry::instruments()
    }
}

impl NativeTelemetry {
    pub(crate) fn new(metrics: Arc<Metrics>, server: &str) -> Self {
        Self(telemetry::Telemetry::new(metrics, server))
    }
}
