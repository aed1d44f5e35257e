//! WebSocket: one message per WebSocket message.

pub(crate) mod client;
pub(crate) mod server;

/// The subprotocol that clients request and servers confirm.
pub(crate) const SUBPROTOCOL: &str = "mcp";
