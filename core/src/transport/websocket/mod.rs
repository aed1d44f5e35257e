//! WebSocket: one message per WebSocket message.

#[cfg(feature = "client")]
pub(crate) mod client;
mod counted_input;
pub(crate) mod server;

/// The subprotocol that clients request and servers confirm.
pub(crate) const SUBPROTOCOL: &str = "mcp";
