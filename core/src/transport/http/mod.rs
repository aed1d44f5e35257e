//! HTTP/1.1: transports bytes; of the protocol it knows only the headers.

#[cfg(feature = "client")]
pub(crate) mod client;
pub(crate) mod io;
pub(crate) mod server;
