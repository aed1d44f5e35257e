//! User-defined transports.

use std::{future::Future, io};

/// A transport that carries JSON-RPC messages between this process and one peer.
///
/// One task calls `receive` and another calls `send`, concurrently.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a server to connect to, and not a transport",
    note = "a client connects to a URL such as `\"http://127.0.0.1:8000/mcp\"`, to a command as a list of words or as a `Command`, to a \
            `Server` of this program, or to a type that implements `Transport`"
)]
pub trait Transport: Send + Sync + 'static {
    /// Returns the next message, or `None` at the end of the connection. An error ends the connection.
    fn receive(&self) -> impl Future<Output = io::Result<Option<Vec<u8>>>> + Send;

    /// Sends a message. Its JSON contains no unescaped newlines.
    fn send(&self, message: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send;

    /// Closes the transport; no method is called afterwards.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
