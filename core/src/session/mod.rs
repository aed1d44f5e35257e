//! When something may be said: the state machines of one connection, without IO.
//!
//! The contract of every machine here: after each `handle`, call `poll` until it returns `None`.

pub mod asking;
pub mod client;
mod pending;
pub mod server;

pub use pending::{CallId, CallMap};
