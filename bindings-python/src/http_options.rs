//! The HTTP options, from the JSON of the Python half to the core's types.

use std::{path::PathBuf, time::Duration};

use gudgeon::{
    error::Error,
    http::{Cors, EndpointConfig},
    transport::listen::ListenOptions,
};
use serde::Deserialize;

/// Durations are in seconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HttpOptions {
    public_url: Option<String>,
    allowed_origins: Vec<String>,
    allowed_hosts: Vec<String>,
    cors: Allowed,
    legacy_sse: bool,
    max_body: Option<usize>,
    max_sessions: Option<usize>,
    max_streams: Option<usize>,
    max_in_flight: Option<usize>,
    session_idle: Option<f64>,
    keep_alive: Option<f64>,
    event_store: Option<bool>,
    max_headers: Option<usize>,
    header_timeout: Option<f64>,
    idle_timeout: Option<f64>,
    tls: Option<(PathBuf, PathBuf)>,
    shutdown_grace: Option<f64>,
}

/// `true`: any origin.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Allowed {
    Any(bool),
    Origins(Vec<String>),
}

impl Default for Allowed {
    fn default() -> Self {
        Self::Any(false)
    }
}

impl HttpOptions {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(text).map_err(|it| Error::misuse(it.to_string()))
    }

    /// Returns `base`, which holds the path of the endpoint, with the options applied. Errors if an option can match nothing.
    pub(crate) fn endpoint(&self, mut base: EndpointConfig) -> Result<EndpointConfig, Error> {
        base.guard.public_url.clone_from(&self.public_url);
        base.guard.allowed_origins.clone_from(&self.allowed_origins);
        base.guard.allowed_hosts.clone_from(&self.allowed_hosts);
        base.guard.cors = match &self.cors {
            Allowed::Any(false) => Cors::Off,
            Allowed::Any(true) => Cors::Any,
            Allowed::Origins(origins) => Cors::Origins(origins.clone()),
        };
        base.guard.check()?;
        base.legacy_sse = self.legacy_sse;
        set(&mut base.max_body, self.max_body);
        set(&mut base.max_sessions, self.max_sessions);
        set(&mut base.max_streams, self.max_streams);
        set(&mut base.max_in_flight, self.max_in_flight);
        set(&mut base.session_idle, self.session_idle.map(seconds));
        set(&mut base.keep_alive, self.keep_alive.map(seconds));
        set(&mut base.event_store, self.event_store);
        Ok(base)
    }

    pub(crate) fn listen(&self, max_message: usize) -> ListenOptions {
        let mut options = ListenOptions { max_message, ..ListenOptions::default() };
        set(&mut options.max_headers, self.max_headers);
        set(&mut options.header_timeout, self.header_timeout.map(seconds));
        set(&mut options.idle_timeout, self.idle_timeout.map(seconds));
        set(&mut options.shutdown_grace, self.shutdown_grace.map(seconds));
        options.tls.clone_from(&self.tls);
        options
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

pub(crate) fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::from_secs(u32::MAX.into()))
}
