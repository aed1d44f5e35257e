//! Addresses of servers in memory, for tests that are not about sockets.

use gudgeon::transport::memory_network::{self, HOST, free_port};
use tokio::io::DuplexStream;

/// Addresses to listen at, at any free port.
pub(crate) const HTTP: &str = "http://[::1]:0/mcp";
pub(crate) const LINES: &str = "tcp://[::1]:0";

/// Returns the URL of a server that is started later.
pub(crate) fn reserve_url() -> String {
    format!("http://{HOST}:{}/mcp", free_port())
}

/// Connects to the server in memory at a URL.
pub(crate) fn connect(url: &str) -> DuplexStream {
    let (_, authority) = url.split_once("://").expect("a URL");
    let (_, port) = authority
        .split('/')
        .next()
        .and_then(|authority| authority.rsplit_once(':'))
        .expect("a port");
    memory_network::connect(port.parse().expect("a number")).expect("a server that listens")
}
