//! The state machines of one connection, without IO: which messages are allowed at which time.
//!
//! For every machine: after each `handle`, call `poll` until it returns `None`.

pub mod asking;
pub mod client;
mod pending;
pub mod server;

pub use pending::InboundKey;
