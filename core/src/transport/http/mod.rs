//! HTTP/1.1: bytes in and out, and nothing of the protocol but its headers.

pub(crate) mod client;
pub(crate) mod io;
pub(crate) mod server;
