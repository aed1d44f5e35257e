//! Every revision of the Model Context Protocol, as one sans-IO core with runtime layers on top.
//!
//! The modules below are listed from the lowest layer to the highest; a module uses only modules above it in this
//! list.
//!
//! # Features
//!
//! - `server`: [`Server`] over stdio, in-memory streams and transports of your own. It compiles neither hyper nor rustls.
//! - `http`: servers over HTTP, WebSocket, TCP and Unix sockets, with TLS, and as a tower service. Includes `server`.
//! - `client` (default): `Client`. Includes `http`.
//!
//! Without any feature only the modules without IO are left.

#![forbid(unsafe_code)]

pub mod error;
pub mod protocol;
pub mod wire;
pub mod framing;
pub mod schema;
pub mod session;
pub mod router;
pub mod engine;
pub mod http;
pub mod peer;
pub mod testing;

// Threads, clocks and tokio are used only by the modules below.
#[cfg(feature = "server")]
pub mod driver;
#[cfg(feature = "server")]
pub mod transport;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
#[doc(hidden)]
pub mod bindings;

#[cfg(feature = "client")]
pub use client::Client;
pub use error::Error;
pub use protocol::{Completion, Revision};
#[cfg(feature = "server")]
pub use server::{
    Audio, CompletionInput, Context, File, Image, Json, List, Prompt, Registry, Resource,
    ResourceNotFound, Server, Tool, ToolError, ask,
};
#[cfg(feature = "http")]
pub use server::{Cors, HttpOptions, HttpService, Listening};
