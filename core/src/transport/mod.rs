//! Transports: modules that move bytes and contain no protocol logic.

#[cfg(feature = "client")]
pub mod child;
pub mod custom;
#[cfg(feature = "client")]
pub(crate) mod dial;
#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod send_queue;
pub(crate) mod lines;
#[cfg(feature = "http")]
pub mod listen;
#[cfg(feature = "client")]
pub mod memory;
#[cfg(feature = "client")]
pub(crate) mod messages;
#[cfg(feature = "http")]
pub(crate) mod timeouts;
pub mod stdio;
#[cfg(feature = "client")]
pub mod stream;
#[cfg(feature = "client")]
pub mod url;
#[cfg(feature = "http")]
pub(crate) mod websocket;
#[cfg(feature = "client")]
pub(crate) mod writer;

#[cfg(feature = "client")]
pub use child::Command;
pub use custom::Transport;
#[cfg(feature = "client")]
pub use stream::Link;
#[cfg(feature = "client")]
pub use url::{Scheme, Url};
