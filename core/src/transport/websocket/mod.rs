//! WebSocket: one message a frame.

pub(crate) mod client;
pub(crate) mod server;

/// The subprotocol that clients ask for and servers confirm.
pub(crate) const SUBPROTOCOL: &str = "mcp";
