//! Options of connections. Options of requests belong to the endpoint.

use std::{path::PathBuf, time::Duration};

use crate::framing::DEFAULT_LINE_LIMIT;

/// The connection options of a listening server.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// The maximum size of a request's head, in bytes.
    pub max_headers: usize,
    /// The time limit for a request's head; a slower connection is closed.
    pub header_timeout: Duration,
    /// The time after which a connection without a request, or whose client reads nothing, is closed.
    pub idle_timeout: Duration,
    /// The paths of the PEM files with the certificate chain and with its key; `None` serves without TLS.
    /// They are read again when they change.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// True if each connection begins with a header of the PROXY protocol, which a trusted proxy writes.
    pub proxy_protocol: bool,
    /// The time for pending calls to finish when the server stops, or when a client on tcp:// or unix: has closed its
    /// sending direction.
    pub shutdown_grace: Duration,
    /// The time for which connections and requests are still accepted after the shutdown has begun.
    pub drain_delay: Duration,
    /// The maximum length of a message on tcp:// and unix:, in bytes.
    pub max_message: usize,
    /// True if other processes may listen at the same port; the system distributes connections among them.
    pub shares_port: bool,
    /// The folder in which the processes that serve the address find each other; only their user may enter it. With `None` the
    /// server is alone.
    pub group: Option<PathBuf>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            max_headers: 64 * 1024,
            header_timeout: Duration::from_secs(10),
            // Proxies keep connections for 60 s, and must be the ones to close them: a request that meets the server's
            // end of a connection is lost.
            idle_timeout: Duration::from_secs(75),
            tls: None,
            proxy_protocol: false,
            shutdown_grace: Duration::from_secs(10),
            drain_delay: Duration::ZERO,
            max_message: DEFAULT_LINE_LIMIT,
            shares_port: false,
            group: None,
        }
    }
}
