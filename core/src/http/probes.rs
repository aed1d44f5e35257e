//! The paths at which orchestrators and load balancers ask whether the server runs and whether it takes calls.
//!
//! They are answered before every check and every lock, because such programs call by IP address, have no credentials, and
//! also ask a server that is full. The answers reveal nothing else.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{EndpointConfig, Part, config::PathMeaning, requests::RETRY_AFTER};
#[cfg(feature = "auth")]
use crate::auth::authorization_server::proxy::OAuthEndpoint;
use crate::{
    error::{Error, option_name},
    router::is_path,
};

const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");

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
        let paths = [own(&config.health, Probe::Health), own(&config.ready, Probe::Ready)];
        let mut paths: Vec<_> = paths.into_iter().flatten().collect();
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self { paths, is_mounted: config.path.is_none() }
    }

    /// Returns the answer to a probe; `None` for a request with another path.
    pub(super) fn answer(
        &self,
        method: &Method,
        path: &str,
        readiness: impl FnOnce() -> Readiness,
    ) -> Option<Part> {
        if self.paths.is_empty() {
            return None;
        }
        let path = trimmed(path);
        let matches = |own: &str| match self.is_mounted {
            true => path.ends_with(own),
            false => path == own,
        };
        let (_, probe) = self.paths.iter().find(|(own, _)| matches(own))?;
        Some(answer(*probe, method, readiness()))
    }

    /// Returns the configured paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|(path, _)| path.as_str())
    }
}

/// Errors if the path of a probe is not a path, or has another use; the message names the option and the fix.
pub(super) fn check(config: &EndpointConfig) -> Result<(), Error> {
    for (option, path, example) in
        [("health", &config.health, "/healthz"), ("ready", &config.ready, "/readyz")]
    {
        if let Some(problem) = path.as_deref().and_then(|path| problem(config, path, example)) {
            return Err(Error::misuse(format!("{}: {problem}", option_name(option))));
        }
    }
    match (&config.health, &config.ready) {
        (Some(health), Some(ready)) if is_same(health, ready) => Err(Error::misuse(format!(
            "{}: {ready:?} is the path of {} as well; choose another one, such as \"/readyz\"",
            option_name("ready"),
            option_name("health")
        ))),
        _ => Ok(()),
    }
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

fn answer(probe: Probe, method: &Method, readiness: Readiness) -> Part {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(header::CONTENT_TYPE, PLAIN);
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    let (status, body) = match (probe, readiness) {
        _ if !matches!(*method, Method::GET | Method::HEAD) => {
            headers.insert(header::ALLOW, ALLOWED);
            (StatusCode::METHOD_NOT_ALLOWED, "send GET or HEAD\n")
        }
        (Probe::Ready, Readiness::Starting) => {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            (StatusCode::SERVICE_UNAVAILABLE, "the server has not started\n")
        }
        (Probe::Ready, Readiness::Draining) => {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            (StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down\n")
        }
        (Probe::Health, _) | (Probe::Ready, Readiness::Ready) => (StatusCode::OK, "ok\n"),
    };
    // Servers leave out the body of the answer to HEAD, and send its length.
    Part::Head { status, headers, body: body.into(), more: false }
}

/// A slash at the end makes no difference.
fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests;
