//! Transports: modules that move bytes and contain no protocol logic.

pub mod child;
pub mod custom;
pub(crate) mod dial;
pub(crate) mod http;
pub(crate) mod send_queue;
pub(crate) mod lines;
pub mod listen;
pub mod memory;
pub(crate) mod messages;
pub(crate) mod timeouts;
pub mod stdio;
pub mod stream;
pub mod url;
pub(crate) mod websocket;
pub(crate) mod writer;

pub use child::Command;
pub use custom::Transport;
pub use stream::Link;
pub use url::{Scheme, Url};
