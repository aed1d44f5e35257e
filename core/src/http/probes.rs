//! The paths at which orchestrators and load balancers ask whether the server runs and whether it takes calls, and at which
//! Prometheus reads metrics.
//!
//! They are answered before every check and every lock, because such programs call by IP address, have no credentials, and
//! also ask a server that is full.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{EndpointConfig, Part, config::PathMeaning, requests::RETRY_AFTER};
#[cfg(feature = "auth")]
use crate::auth::authorization_server::proxy::OAuthEndpoint;
use crate::{
    error::{Error, option_name},
    metrics::{self, Metrics},
    router::is_path,
};

const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD");
const OK: &str = "ok\n";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");
const METRICS: HeaderValue = HeaderValue::from_static(metrics::CONTENT_TYPE);

/// The readiness of a server for calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Readiness {
    /// The hooks at start have not ended.
    Starting,
    Ready,
    /// The shutdown has begun.
    Draining,
}

/// The question that a path stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Probe {
    Health,
    Ready,
    Metrics,
}

/// The configured paths.
#[derive(Debug)]
pub(super) struct Probes {
    /// Paths without a slash at their end, the longer one first: the path of a request below a mount may end with both.
    paths: Vec<(String, Probe)>,
    /// `true` if the host chooses the path of the endpoint.
    is_mounted: bool,
}

impl Probes {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let own = |path: &Option<String>, probe| {
            path.as_deref().map(|path| (trimmed(path).to_owned(), probe))
        };
        let paths = [
            own(&config.health, Probe::Health),
            own(&config.ready, Probe::Ready),
            own(&config.metrics, Probe::Metrics),
        ];
        let mut paths: Vec<_> = paths.into_iter().flatten().collect();
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self { paths, is_mounted: config.path.is_none() }
    }

    /// Returns the answer to a probe; `None` for a request with another path, and for one that reads metrics.
    pub(super) fn answer(
        &self,
        method: &Method,
        path: &str,
        readiness: impl FnOnce() -> Readiness,
    ) -> Option<Part> {
        let probe = self.at(path)?;
        if !is_read(method) {
            let mut headers = plain();
            headers.insert(header::ALLOW, ALLOWED);
            return Some(part(StatusCode::METHOD_NOT_ALLOWED, headers, "send GET or HEAD\n"));
        }
        match probe {
            Probe::Health => Some(part(StatusCode::OK, plain(), OK)),
            Probe::Ready => Some(answer(readiness())),
            Probe::Metrics => None,
        }
    }

    /// Returns whether a request with this path reads the metrics.
    pub(super) fn reads_metrics(&self, method: &Method, path: &str) -> bool {
        is_read(method) && self.at(path) == Some(Probe::Metrics)
    }

    fn at(&self, path: &str) -> Option<Probe> {
        if self.paths.is_empty() {
            return None;
        }
        let path = trimmed(path);
        let matches = |own: &str| match self.is_mounted {
            true => path.ends_with(own),
            false => path == own,
        };
        Some(self.paths.iter().find(|(own, _)| matches(own))?.1)
    }

    /// Returns the configured paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|(path, _)| path.as_str())
    }
}

/// Errors if the path of a probe is not a path, or has another use; the message names the option and the fix.
pub(super) fn check(config: &EndpointConfig) -> Result<(), Error> {
    let options = options(config);
    for (place, (option, path, example)) in options.iter().enumerate() {
        let Some(path) = path else { continue };
        if let Some(problem) = problem(config, path, example) {
            return Err(Error::misuse(format!("{}: {problem}", option_name(option))));
        }
        let is_same = |other: &&(_, Option<&str>, _)| other.1.is_some_and(|one| is_same(one, path));
        if let Some((other, ..)) = options.iter().take(place).find(is_same) {
            return Err(Error::misuse(format!(
                "{}: {path:?} is the path of {} as well; choose another one, such as {example:?}",
                option_name(option),
                option_name(other)
            )));
        }
    }
    Ok(())
}

/// Returns the options that are paths of probes, with their values, and an example for each.
pub(super) fn options(config: &EndpointConfig) -> [(&'static str, Option<&str>, &'static str); 3] {
    [
        ("health", config.health.as_deref(), "/healthz"),
        ("ready", config.ready.as_deref(), "/readyz"),
        ("metrics", config.metrics.as_deref(), "/metrics"),
    ]
}

/// Returns the answer to a request that reads the metrics.
pub(super) fn metrics_answer(metrics: &Metrics) -> Part {
    metrics_part(metrics::text(&metrics.snapshot()))
}

/// Returns the answer with this text of metrics.
pub(super) fn metrics_part(text: String) -> Part {
    let mut headers = plain();
    headers.insert(header::CONTENT_TYPE, METRICS);
    part(StatusCode::OK, headers, text)
}

/// Returns what is wrong with a path, and how to fix it.
fn problem(config: &EndpointConfig, path: &str, example: &str) -> Option<String> {
    if !is_path(path) || trimmed(path).is_empty() {
        return Some(format!("{path:?} is not a path as in URLs; write one such as {example:?}"));
    }
    let used_by = used_by(config, path)?;
    Some(format!("{path:?} is a path of {used_by}; choose another one, such as {example:?}"))
}

/// Returns what else a path is for.
pub(super) fn used_by(config: &EndpointConfig, path: &str) -> Option<&'static str> {
    let is_endpoint = match &config.path {
        None => false,
        Some(_) => config.place(path) != PathMeaning::Elsewhere,
    };
    if is_endpoint {
        Some("the endpoint")
    } else if trimmed(path).ends_with("/sse") {
        Some("the transport of 2024-11-05")
    } else if is_oauth(trimmed(path)) {
        Some("the documents and pages of OAuth")
    } else {
        None
    }
}

/// Returns whether two paths are the same for a probe.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    trimmed(one) == trimmed(other)
}

fn is_oauth(path: &str) -> bool {
    #[cfg(feature = "auth")]
    if OAuthEndpoint::at(path).is_some() {
        return true;
    }
    path.contains("/.well-known/")
}

/// Returns the answer of `ready`.
fn answer(readiness: Readiness) -> Part {
    let reason = match readiness {
        Readiness::Ready => return part(StatusCode::OK, plain(), OK),
        Readiness::Starting => "the server has not started\n",
        Readiness::Draining => "the server is shutting down\n",
    };
    let mut headers = plain();
    headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    part(StatusCode::SERVICE_UNAVAILABLE, headers, reason)
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn plain() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(header::CONTENT_TYPE, PLAIN);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers
}

/// Servers leave out the body of the answer to HEAD, and send its length.
fn part(status: StatusCode, headers: HeaderMap, body: impl Into<Vec<u8>>) -> Part {
    Part::Head { status, headers, body: body.into(), more: false }
}

/// A slash at the end makes no difference.
fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests;
