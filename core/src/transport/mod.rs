//! Transports: modules that move bytes and contain no protocol logic.

#[cfg(all(feature = "auth", feature = "client"))]
pub(crate) mod authorization_server;
#[cfg(any(feature = "client", feature = "http"))]
mod byte_stream;
#[cfg(feature = "client")]
pub(crate) mod child;
mod child_stderr;
mod custom;
#[cfg(feature = "client")]
pub(crate) mod dial;
mod environment;
#[cfg(all(feature = "auth", feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub mod fetch;
#[cfg(all(feature = "auth", not(feature = "bindings"), feature = "client"))]
pub(crate) mod fetch;
#[cfg(all(feature = "bindings", feature = "http"))]
#[doc(hidden)]
pub mod http;
#[cfg(all(not(feature = "bindings"), feature = "http"))]
pub(crate) mod http;
#[cfg(all(unix, feature = "http"))]
pub(crate) mod process_group;
#[cfg(all(unix, feature = "http"))]
mod process_numbers;
pub(crate) mod send_queue;
#[cfg(all(feature = "auth", feature = "client"))]
pub(crate) mod sign_in;
#[cfg(all(not(feature = "auth"), feature = "client"))]
#[path = "sign_in/absent.rs"]
pub(crate) mod sign_in;
pub(crate) mod lines;
pub(crate) mod off_thread;
#[cfg(all(feature = "bindings", feature = "http"))]
#[doc(hidden)]
pub mod listen;
#[cfg(all(not(feature = "bindings"), feature = "http"))]
pub(crate) mod listen;
#[cfg(all(feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub mod memory;
#[cfg(all(not(feature = "bindings"), feature = "client"))]
pub(crate) mod memory;
#[cfg(all(feature = "simulation", feature = "http"))]
#[doc(hidden)]
pub mod memory_network;
#[cfg(feature = "client")]
pub(crate) mod messages;
#[cfg(feature = "client")]
pub(crate) mod network;
#[cfg(feature = "client")]
mod pem;
pub(crate) mod timeouts;
#[cfg(all(feature = "client", feature = "tls"))]
pub(crate) mod trust;
#[cfg(all(feature = "client", not(feature = "tls")))]
#[path = "trust/absent.rs"]
pub(crate) mod trust;
#[cfg(feature = "client")]
pub(crate) mod proxy;
#[cfg(feature = "http")]
mod proxy_protocol;
#[cfg(all(feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub mod masked;
#[cfg(all(not(feature = "bindings"), feature = "client"))]
mod masked;
#[cfg(all(feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub use crate::driver::small_file;
#[cfg(all(not(feature = "bindings"), feature = "client"))]
pub(crate) use crate::driver::small_file;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod stdio;
#[cfg(not(feature = "bindings"))]
pub(crate) mod stdio;
#[cfg(feature = "client")]
pub(crate) mod stream;
#[cfg(feature = "client")]
pub(crate) mod url;
#[cfg(feature = "websocket")]
pub(crate) mod websocket;
#[cfg(feature = "client")]
pub(crate) mod writer;

#[cfg(any(feature = "client", feature = "http"))]
pub(crate) use byte_stream::ByteStream;
#[cfg(feature = "client")]
pub use child::Command;
#[cfg(all(feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub use child::Process;
pub use custom::Transport;
#[cfg(feature = "client")]
pub use pem::Pem;
#[cfg(feature = "client")]
pub use {
    stream::Link,
    url::{Scheme, Url},
};
