//! `HttpOptions` as JSON, already checked by the JavaScript half.

use std::{path::PathBuf, time::Duration};

use gudgeon::{
    error::Error,
    http::{Cors, EndpointConfig},
    transport::listen::{Address, ListenOptions},
};
use serde::Deserialize;

use crate::error::misuse;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HttpOptions {
    public_url: Option<String>,
    allowed_origins: Vec<String>,
    allowed_hosts: Vec<String>,
    cors: GivenCors,
    legacy_sse: bool,
    max_body: Option<f64>,
    max_sessions: Option<f64>,
    max_streams: Option<f64>,
    max_in_flight: Option<f64>,
    session_idle_ms: Option<f64>,
    keep_alive_ms: Option<f64>,
    event_store: Option<bool>,
    max_headers: Option<f64>,
    header_timeout_ms: Option<f64>,
    idle_timeout_ms: Option<f64>,
    tls: Option<Tls>,
    shutdown_grace_ms: Option<f64>,
    io_threads: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Tls {
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum GivenCors {
    Any(bool),
    Origins(Vec<String>),
}

impl Default for GivenCors {
    fn default() -> Self {
        Self::Any(false)
    }
}

/// The settings of the listener and of the endpoint.
#[derive(Debug)]
pub(crate) struct Listen {
    pub(crate) config: EndpointConfig,
    pub(crate) options: ListenOptions,
    pub(crate) threads: usize,
}

/// Returns the settings of an endpoint with its own address.
pub(crate) fn listening(address: &Address, options: &str) -> napi::Result<Listen> {
    let given = read(options)?;
    let mut options = ListenOptions::default();
    put(&mut options.max_headers, given.max_headers.map(count));
    put(&mut options.header_timeout, given.header_timeout_ms.and_then(duration));
    put(&mut options.idle_timeout, given.idle_timeout_ms.and_then(duration));
    put(&mut options.shutdown_grace, given.shutdown_grace_ms.and_then(duration));
    options.tls = given.tls.as_ref().map(|it| (it.cert.clone(), it.key.clone()));
    let threads = given.io_threads.map_or(1, count).max(1);
    Ok(Listen { config: with(address.endpoint_config(), given)?, options, threads })
}

/// Returns the settings of an endpoint mounted by a host.
pub(crate) fn mounted(options: &str) -> napi::Result<EndpointConfig> {
    let config = EndpointConfig { path: None, ..EndpointConfig::default() };
    with(config, read(options)?)
}

fn read(options: &str) -> napi::Result<HttpOptions> {
    serde_json::from_str(options)
        .map_err(|it| misuse(Error::misuse(format!("the options can't be read: {it}"))))
}

fn with(mut config: EndpointConfig, given: HttpOptions) -> napi::Result<EndpointConfig> {
    config.guard.public_url = given.public_url;
    config.guard.allowed_origins = given.allowed_origins;
    config.guard.allowed_hosts = given.allowed_hosts;
    config.guard.cors = match given.cors {
        GivenCors::Any(false) => Cors::Off,
        GivenCors::Any(true) => Cors::Any,
        GivenCors::Origins(origins) => Cors::Origins(origins),
    };
    config.guard.check().map_err(misuse)?;
    config.legacy_sse = given.legacy_sse;
    put(&mut config.max_body, given.max_body.map(count));
    put(&mut config.max_sessions, given.max_sessions.map(count));
    put(&mut config.max_streams, given.max_streams.map(count));
    put(&mut config.max_in_flight, given.max_in_flight.map(count));
    put(&mut config.session_idle, given.session_idle_ms.and_then(duration));
    put(&mut config.keep_alive, given.keep_alive_ms.and_then(duration));
    put(&mut config.event_store, given.event_store);
    Ok(config)
}

fn put<T>(field: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *field = given;
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are integers")]
fn count(given: f64) -> usize {
    given as usize
}

fn duration(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_replace_defaults_and_leave_the_others() {
        let json = r#"{"cors":["https://a"],"maxBody":7,"keepAliveMs":1500,"allowedHosts":["h"]}"#;
        let config = mounted(json).unwrap();
        assert_eq!(config.guard.cors, Cors::Origins(vec!["https://a".into()]));
        assert_eq!((config.max_body, config.keep_alive), (7, Duration::from_millis(1500)));
        assert_eq!(config.guard.allowed_hosts, ["h"]);
        assert_eq!(config.max_sessions, EndpointConfig::default().max_sessions);
        assert_eq!(config.path, None);
        let address: Address = "http://0.0.0.0:0/here".parse().unwrap();
        let json = r#"{"tls":{"cert":"c","key":"k"},"shutdownGraceMs":20,"ioThreads":2}"#;
        let listen = listening(&address, json).unwrap();
        assert_eq!(listen.config.path.as_deref(), Some("/here"));
        assert!(!listen.config.guard.bind_is_loopback);
        assert_eq!(listen.options.tls, Some(("c".into(), "k".into())));
        assert_eq!(listen.options.shutdown_grace, Duration::from_millis(20));
        assert_eq!(listen.threads, 2);
        assert_eq!(mounted(r#"{"cors":true}"#).unwrap().guard.cors, Cors::Any);
    }
}
