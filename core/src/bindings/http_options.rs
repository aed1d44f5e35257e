//! The options of endpoints and addresses, from the JSON of a binding.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::{
    error::Error,
    http::{Cors, EndpointConfig, SessionMode},
    protocol::json,
    transport::listen::ListenOptions,
};

/// Checked options, as [`options`](super::options) declares them. Durations are in milliseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpOptions {
    public_url: Option<String>,
    allowed_origins: Vec<String>,
    allowed_hosts: Vec<String>,
    cors: Allowed,
    legacy_sse: bool,
    health: Option<String>,
    ready: Option<String>,
    metrics: Option<String>,
    max_body: Option<usize>,
    sessions: Option<Sessions>,
    max_sessions: Option<usize>,
    max_streams: Option<usize>,
    max_in_flight: Option<usize>,
    session_idle_ms: Option<f64>,
    body_timeout_ms: Option<f64>,
    keep_alive_ms: Option<f64>,
    event_store: Option<bool>,
    max_headers: Option<usize>,
    header_timeout_ms: Option<f64>,
    idle_timeout_ms: Option<f64>,
    tls: Option<KeyPair>,
    trusted_proxies: Vec<String>,
    proxy_protocol: bool,
    shutdown_grace_ms: Option<f64>,
    drain_delay_ms: Option<f64>,
    /// The threads that do the IO of an address.
    pub io_threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sessions {
    Sealed,
    None,
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

#[derive(Debug, Deserialize)]
struct KeyPair {
    cert: PathBuf,
    key: PathBuf,
}

impl HttpOptions {
    /// Reads the options. Errors if an allowed host or origin can match nothing, or if a trusted proxy or the path of a probe is
    /// not valid.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let options: Self = json::from_bytes(json)
            .map_err(|error| Error::misuse(format!("the options can't be read: {error}")))?;
        options.endpoint(EndpointConfig { path: None, ..EndpointConfig::default() }).check()?;
        Ok(options)
    }

    /// Returns `base`, which holds the path of the endpoint, with the options applied.
    pub fn endpoint(&self, mut base: EndpointConfig) -> EndpointConfig {
        base.guard.public_url.clone_from(&self.public_url);
        base.guard.allowed_origins.clone_from(&self.allowed_origins);
        base.guard.allowed_hosts.clone_from(&self.allowed_hosts);
        base.guard.cors = match &self.cors {
            Allowed::Any(false) => Cors::Off,
            Allowed::Any(true) => Cors::Any,
            Allowed::Origins(origins) => Cors::Origins(origins.clone()),
        };
        base.guard.trusted_proxies.clone_from(&self.trusted_proxies);
        base.legacy_sse = self.legacy_sse;
        base.health.clone_from(&self.health);
        base.ready.clone_from(&self.ready);
        base.metrics.clone_from(&self.metrics);
        set(&mut base.max_body, self.max_body);
        set(
            &mut base.sessions,
            self.sessions.map(|sessions| match sessions {
                Sessions::Sealed => SessionMode::Sealed,
                Sessions::None => SessionMode::None,
            }),
        );
        set(&mut base.max_sessions, self.max_sessions);
        set(&mut base.max_streams, self.max_streams);
        set(&mut base.max_in_flight, self.max_in_flight);
        set(&mut base.session_idle, self.session_idle_ms.map(duration));
        set(&mut base.body_timeout, self.body_timeout_ms.map(duration));
        set(&mut base.keep_alive, self.keep_alive_ms.map(duration));
        set(&mut base.event_store, self.event_store);
        base.is_encrypted |= self.tls.is_some();
        base
    }

    /// Returns the options of connections at an address.
    pub fn listen(&self) -> ListenOptions {
        let mut options = ListenOptions::default();
        set(&mut options.max_headers, self.max_headers);
        set(&mut options.header_timeout, self.header_timeout_ms.map(duration));
        set(&mut options.idle_timeout, self.idle_timeout_ms.map(duration));
        set(&mut options.shutdown_grace, self.shutdown_grace_ms.map(duration));
        set(&mut options.drain_delay, self.drain_delay_ms.map(duration));
        options.proxy_protocol = self.proxy_protocol;
        options.tls = self.tls.as_ref().map(|tls| (tls.cert.clone(), tls.key.clone()));
        options
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A duration that exceeds the clock's range is shortened to 136 years.
fn duration(milliseconds: f64) -> Duration {
    Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0)
        .unwrap_or(Duration::from_secs(u32::MAX.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(json: &str) -> EndpointConfig {
        HttpOptions::parse(json.as_bytes()).unwrap().endpoint(EndpointConfig::default())
    }

    #[test]
    fn options_replace_defaults_and_leave_the_others() {
        let config = endpoint(
            r#"{"cors":["https://a"],"maxBody":7,"keepAliveMs":1500,"allowedHosts":["h"],"health":"/up","bodyTimeoutMs":20,"trustedProxies":["unix"]}"#,
        );
        assert_eq!(config.guard.cors, Cors::Origins(vec!["https://a".into()]));
        assert_eq!((config.max_body, config.keep_alive), (7, Duration::from_millis(1500)));
        assert_eq!(config.guard.allowed_hosts, ["h"]);
        assert_eq!((config.health.as_deref(), config.ready), (Some("/up"), None));
        assert_eq!(config.guard.trusted_proxies, ["unix"]);
        assert_eq!(config.body_timeout, Duration::from_millis(20));
        assert_eq!(config.max_sessions, EndpointConfig::default().max_sessions);
        assert_eq!(endpoint(r#"{"cors":true}"#).guard.cors, Cors::Any);
        assert_eq!(endpoint("{}").guard.cors, Cors::Off);
    }

    #[test]
    fn options_of_connections_are_read() {
        let json = br#"{"tls":{"cert":"c","key":"k"},"shutdownGraceMs":20,"drainDelayMs":30,"idleTimeoutMs":1e308,"ioThreads":2,"proxyProtocol":true}"#;
        let options = HttpOptions::parse(json).unwrap();
        let listen = options.listen();
        assert_eq!(listen.tls, Some(("c".into(), "k".into())));
        assert_eq!(listen.shutdown_grace, Duration::from_millis(20));
        assert_eq!(listen.drain_delay, Duration::from_millis(30));
        assert_eq!(listen.idle_timeout, Duration::from_secs(u32::MAX.into()));
        assert_eq!(options.io_threads, Some(2));
        assert!(listen.proxy_protocol);
    }

    #[test]
    fn hosts_origins_and_proxies_that_match_nothing_and_invalid_paths_are_refused() {
        for options in [
            r#"{"allowedHosts":["http://a"]}"#,
            r#"{"cors":["a"]}"#,
            r#"{"trustedProxies":["a"]}"#,
            r#"{"health":"healthz"}"#,
            r#"{"health":"/up","ready":"/up"}"#,
            r#"{"health":"/up","metrics":"/up"}"#,
        ] {
            assert!(HttpOptions::parse(options.as_bytes()).is_err(), "{options}");
        }
        assert!(HttpOptions::parse(b"[").is_err());
    }
}
