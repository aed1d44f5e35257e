//! The options of a client.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

use super::{CallOptions, Retry};
use crate::{
    framing::DEFAULT_LINE_LIMIT,
    protocol::{ClientCapabilities, Dialect, Implementation, LoggingLevel, Revision, Root},
    session::client::ClientConfig,
    transport::Pem,
};

/// The options of a client, for [`ClientBuilder::options`](super::ClientBuilder::options).
#[derive(Clone)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ClientOptions {
    /// The revisions to choose from: the newest that the server speaks as well is used. Default: all.
    pub revisions: Vec<Revision>,
    /// A dialect, an older description of the protocol, to speak instead of a revision. Default: none.
    pub dialect: Option<Dialect>,
    /// The time limit of a call without a response or progress, which all pages of a list share; `None` means no limit.
    /// The limit does not run while a callback answers the server. Default: 60 s.
    pub timeout: Option<Duration>,
    /// The time limit of [`connect`](super::ClientBuilder::connect) as a whole: reaching the server, the probe, and the
    /// handshake. Default: `None`, the value of `timeout`.
    pub connect_timeout: Option<Duration>,
    /// The total time limit of a call with all its pages and rounds of questions, regardless of progress. Default:
    /// none.
    pub max_timeout: Option<Duration>,
    /// The time limit for the response to `server/discover`, after which a server counts as legacy. At most half of the
    /// time left to connect is used. Over HTTP, where legacy servers answer as well, a server has all of that time. Default:
    /// 5 s.
    pub probe_timeout: Duration,
    /// The name and version of this program. Default: empty.
    pub info: Implementation,
    /// Capabilities to declare in addition to those of the registered callbacks.
    pub capabilities: ClientCapabilities,
    /// The extensions that this program implements, such as `com.example/search`, with their settings: objects, which may be
    /// empty. Servers see them in [`RequestInfo::client_capabilities`](crate::server::RequestInfo::client_capabilities).
    /// Default: none. Spec: Extensions.
    pub extensions: Map<String, Value>,
    /// Capabilities that no specification defines, with their settings. Default: none.
    pub experimental: Map<String, Value>,
    /// The directories that the client lets the server work in, as `file://` URIs. Default: none, and the client does
    /// not declare roots. To set them later by [`Client::set_roots`](super::Client::set_roots), begin with an empty
    /// list.
    pub roots: Option<Vec<Root>>,
    /// The schemes of the URLs that a server may ask the user to visit. Questions with another URL are refused and
    /// logged. Default: `http` and `https`.
    pub allowed_url_schemes: Vec<String>,
    /// The limits for repeating requests after an outage.
    pub retry: Retry,
    /// If true, a command that ended is started again before the next request. Connections to addresses are always opened
    /// again. Default: false.
    pub restart: bool,
    /// Names and values of headers for every HTTP request and for the WebSocket handshake, such as `Authorization`.
    /// They are sent to the origin of the URL only, and are never logged.
    pub headers: Vec<(String, String)>,
    /// The authorities whose certificates of servers are trusted for `https` and `wss`, in place of the system's and those of
    /// the environment ([`Target::url`](super::Target::url)): a file in PEM format, or its text. Default: none.
    ///
    /// ```
    /// # use gudgeon::{Client, client::Target};
    /// # fn main() -> Result<(), gudgeon::Error> {
    /// let client = Client::builder(Target::url("https://shelf.example.com/mcp")?)
    ///     .options(|options| {
    ///         options.ca = Some("ca.pem".into());
    ///         options.certificate = Some(("client.pem".into(), "client.key".into()));
    ///     });
    /// # drop(client);
    /// # Ok(()) }
    /// ```
    pub ca: Option<Pem>,
    /// The certificate by which the server knows this client, with its chain, and its private key, each a file in PEM format
    /// or its text. The origin of the server's URL is shown it, and no other server or proxy. Default: none.
    pub certificate: Option<(Pem, Pem)>,
    /// The credentials for a server over HTTP, in place of a header. Default: none.
    #[cfg(feature = "auth")]
    pub auth: Option<super::auth::Auth>,
    /// The maximum size of a message from the server in bytes. Longer ones are discarded, and the request that such a
    /// message answers fails with [`ErrorKind::Protocol`](crate::error::ErrorKind::Protocol). Default: 16 MiB.
    ///
    /// A result may have 10,000 objects, such as content blocks, and a list 25,000, their schemas, structured content and
    /// `_meta` not counted; with a larger limit proportionally more.
    pub max_message: usize,
    /// The maximum number of rounds of questions in a call. Default: 10.
    pub max_rounds: usize,
    /// If true, arguments are checked against the tool's schema before they are sent. Default: false.
    pub validate: bool,
    /// If true, lists and resources are not requested again while the server's `ttlMs` says that they are fresh, unless it
    /// has notified of a change. Applies from 2026-07-28 on; requests with `_meta` are always sent. Default: true. Spec:
    /// Server Features › Utilities › Caching.
    pub cache_results: bool,
    /// The minimum level of log messages. Default: the server's; with
    /// [`on_log`](super::ClientBuilder::on_log), modern servers send `info` and above.
    pub log_level: Option<LoggingLevel>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            revisions: Revision::ALL.to_vec(),
            dialect: None,
            timeout: Some(Duration::from_secs(60)),
            connect_timeout: None,
            max_timeout: None,
            probe_timeout: Duration::from_secs(5),
            info: Implementation::default(),
            capabilities: ClientCapabilities::default(),
            extensions: Map::new(),
            experimental: Map::new(),
            roots: None,
            allowed_url_schemes: vec!["http".into(), "https".into()],
            retry: Retry::default(),
            restart: false,
            headers: Vec::new(),
            ca: None,
            certificate: None,
            #[cfg(feature = "auth")]
            auth: None,
            max_message: DEFAULT_LINE_LIMIT,
            max_rounds: 10,
            validate: false,
            cache_results: true,
            log_level: None,
        }
    }
}

impl ClientOptions {
    /// Returns the options of the session; without a `log_level` it is `log_level`. `last_revision` is that of an earlier
    /// connection.
    pub(super) fn session(
        &self,
        log_level: Option<LoggingLevel>,
        last_revision: Option<Revision>,
    ) -> ClientConfig {
        ClientConfig {
            info: self.info.clone(),
            capabilities: self.capabilities.clone(),
            revisions: self.revisions.clone(),
            last_revision,
            dialect: self.dialect,
            probe_timeout: Some(self.probe_timeout),
            connect_timeout: self.connect_timeout.or(self.timeout),
            log_level: self.log_level.or(log_level),
        }
    }

    /// Returns the options of requests.
    pub(super) fn calls(&self) -> CallOptions {
        CallOptions {
            timeout: self.timeout,
            max_timeout: self.max_timeout,
            on_progress: None,
            meta: None,
            raise_on_error: true,
            questioner: None,
            is_passed_on: false,
        }
    }
}

impl fmt::Debug for ClientOptions {
    /// Leaves out the values of headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("revisions", &self.revisions)
            .field("dialect", &self.dialect)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
