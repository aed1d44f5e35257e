//! HTTP/1.1: transports bytes; of the protocol it knows only the headers.

#[cfg(feature = "client")]
pub(crate) mod body;
#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "client")]
pub(crate) mod connection;
mod io;
pub(crate) mod server;

pub use self::io::HyperIo;
