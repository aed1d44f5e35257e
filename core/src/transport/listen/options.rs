//! What is about connections; what is about requests is the endpoint's.

use std::{path::PathBuf, time::Duration};

use crate::framing::DEFAULT_LINE_LIMIT;

/// The options of a listening server that are about its connections.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Longer heads of requests are refused: bytes.
    pub max_headers: usize,
    /// A head that takes longer ends the connection.
    pub header_timeout: Duration,
    /// A connection without a request, and one that makes no progress, ends after so long.
    pub idle_timeout: Duration,
    /// The files with the certificate chain and with its key, both PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What is in flight at the end, of the server or of what a client on tcp:// or unix: says, has so long to finish.
    pub shutdown_grace: Duration,
    /// The longest message of a line: bytes.
    pub max_message: usize,
    /// Whether other processes may listen at the same port; the system spreads connections over them.
    pub shares_port: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            max_headers: 64 * 1024,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            tls: None,
            shutdown_grace: Duration::from_secs(10),
            max_message: DEFAULT_LINE_LIMIT,
            shares_port: false,
        }
    }
}
