//! The configuration of an endpoint.

#[cfg(feature = "auth")]
use std::sync::Arc;
use std::time::Duration;

use super::{guard::GuardConfig, probes};
#[cfg(feature = "auth")]
use crate::auth::server::config::AuthConfig;
use crate::{
    error::{Error, option_name},
    store::SharedStore,
};

/// The options of an endpoint, with the defaults that suit a server on one's own machine.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The path of the endpoint; `None`: the path at which the host mounted it.
    pub path: Option<String>,
    /// The hosts and origins that may call.
    pub guard: GuardConfig,
    /// Serves the transport of 2024-11-05 at `/sse`.
    pub legacy_sse: bool,
    /// The path that answers as long as the server runs. Where the host chose the path of the endpoint, so does every path that
    /// ends with it.
    pub health: Option<String>,
    /// The path that answers whether calls are accepted, matched as the one above.
    pub ready: Option<String>,
    /// The path that answers with the metrics of the server, matched as the two above.
    pub metrics: Option<String>,
    /// The maximum size of a request body, in bytes.
    pub max_body: usize,
    pub sessions: SessionMode,
    pub max_sessions: usize,
    /// The maximum number of streams of one session.
    pub max_streams: usize,
    pub max_in_flight: usize,
    /// The time within which more of a request body must arrive, or of a message on a connection with one message per line.
    pub body_timeout: Duration,
    /// The time after which an idle session loses what it holds in memory.
    pub session_idle: Duration,
    /// The time after which an idle stream sends a comment.
    pub keep_alive: Duration,
    /// Keeps events, so that streams of sessions can be resumed.
    pub event_store: bool,
    /// The methods by which callers are authenticated; `None`: everybody may call.
    #[cfg(feature = "auth")]
    pub auth: Option<Arc<AuthConfig>>,
    /// The store of what outlives the process; `None`: nothing does.
    pub store: Option<SharedStore>,
    /// `true` if clients reach the address by `https`.
    pub is_encrypted: bool,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            path: Some("/mcp".into()),
            guard: GuardConfig::default(),
            legacy_sse: false,
            health: None,
            ready: None,
            metrics: None,
            max_body: 4 * 1024 * 1024,
            sessions: SessionMode::Sealed,
            max_sessions: 10_000,
            max_streams: 16,
            max_in_flight: 1_000,
            body_timeout: Duration::from_secs(60),
            session_idle: Duration::from_secs(30 * 60),
            keep_alive: Duration::from_secs(15),
            event_store: true,
            #[cfg(feature = "auth")]
            auth: None,
            store: None,
            is_encrypted: false,
        }
    }
}

/// The sessions of clients before 2026-07-28.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum SessionMode {
    /// The id of a session contains what the session consists of, sealed with the keys of the server. Each process with the
    /// same keys goes on with it, and it holds memory only while it has a stream, a subscription, an open question, stored
    /// values, or another log level than the default.
    #[default]
    Sealed,
    /// There are no sessions: each request is served by itself, and nothing is sent but its answer. Handlers can't ask the
    /// client, and there are no subscriptions and log messages.
    None,
}

/// The meaning of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PathMeaning {
    Endpoint,
    /// The stream of the HTTP+SSE transport of 2024-11-05.
    LegacySse,
    Elsewhere,
}

impl EndpointConfig {
    /// Errors if an entry of the guard can match no request, if the path of a probe is not one or has another use, or if options
    /// exclude each other; the message names the option and the fix.
    pub fn check(&self) -> Result<(), Error> {
        if self.legacy_sse && self.sessions == SessionMode::None {
            let [sessions, legacy_sse] = ["sessions", "legacy_sse"].map(option_name);
            return Err(Error::misuse(format!(
                "{legacy_sse} needs sessions, and {sessions} is \"none\": leave one of them out"
            )));
        }
        self.guard.check()?;
        probes::check(self)
    }

    /// A trailing slash makes no difference.
    pub(super) fn place(&self, path: &str) -> PathMeaning {
        let path = path.strip_suffix('/').unwrap_or(path);
        match &self.path {
            None if self.legacy_sse && path.ends_with("/sse") => PathMeaning::LegacySse,
            None => PathMeaning::Endpoint,
            Some(own) => {
                let own = own.strip_suffix('/').unwrap_or(own);
                let parent = || own.rsplit_once('/').map_or("", |(parent, _)| parent);
                if path == own {
                    PathMeaning::Endpoint
                } else if self.legacy_sse && path.strip_prefix(parent()) == Some("/sse") {
                    PathMeaning::LegacySse
                } else {
                    PathMeaning::Elsewhere
                }
            }
        }
    }
}
