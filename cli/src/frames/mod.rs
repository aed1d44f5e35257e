//! JSON-RPC messages passed on between a host and a server, unchanged: servers that are processes or at URLs, and the host's
//! side over stdio or HTTP.

pub mod http;
pub mod message;
pub mod process;
pub mod remote;
pub mod server;
pub mod stdio;

use std::{future::Future, pin::Pin};

use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;

/// The longest message that is passed on.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;
/// The messages of a server that wait for a host that does not read.
pub const MAX_WAITING: usize = 64;

/// An open connection to a server, or to something that acts as one.
pub struct Connection {
    /// Closing it ends the connection.
    pub to_server: mpsc::UnboundedSender<Vec<u8>>,
    pub from_server: mpsc::Receiver<Vec<u8>>,
    /// Resolves once the server has ended.
    pub ended: oneshot::Receiver<Ended>,
}

/// The end of a server's process, or of the connection to it.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// The exit code of its process; 128 and the number of the signal that killed it.
    pub code: Option<u8>,
    /// The last lines of its standard error, or the reason for the end of the connection.
    pub stderr: String,
}

/// A server to which connections can be opened.
pub trait Upstream: Send + Sync + 'static {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>>;
}

impl Upstream for Box<dyn Upstream> {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>> {
        (**self).open()
    }
}
