#![cfg_attr(feature = "client", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "client"),
    doc = "The Model Context Protocol: every revision, servers and clients."
)]
#![forbid(unsafe_code)]
// Users can name the type of everything that they call.
#![cfg_attr(not(feature = "bindings"), deny(unnameable_types))]
// Times come from `clock`, or are arguments. Tests choose them.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(
    not(feature = "bindings"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "some items of the inner modules are used only by the language bindings and the tests"
    )
)]

// From the lowest layer to the highest: a module uses only modules above it. Most are public only with the feature
// `bindings`.
pub mod error;
#[cfg(any(feature = "auth", feature = "server"))]
mod log_limit;
mod log_text;
pub mod protocol;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod metrics;
#[cfg(not(feature = "bindings"))]
mod metrics;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod log_events;
#[cfg(not(feature = "bindings"))]
mod log_events;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod replier;
#[cfg(not(feature = "bindings"))]
mod replier;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod wire;
#[cfg(not(feature = "bindings"))]
mod wire;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod framing;
#[cfg(not(feature = "bindings"))]
mod framing;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod schema;
#[cfg(not(feature = "bindings"))]
mod schema;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod store;
#[cfg(not(feature = "bindings"))]
mod store;
#[cfg(all(feature = "auth", feature = "bindings"))]
#[doc(hidden)]
pub mod auth;
#[cfg(all(feature = "auth", not(feature = "bindings")))]
mod auth;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod session;
#[cfg(not(feature = "bindings"))]
mod session;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod router;
#[cfg(not(feature = "bindings"))]
mod router;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod engine;
#[cfg(not(feature = "bindings"))]
mod engine;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod http;
#[cfg(not(feature = "bindings"))]
mod http;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod peer;
#[cfg(not(feature = "bindings"))]
mod peer;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod service;
#[cfg(not(feature = "bindings"))]
mod service;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod test_pair;
#[cfg(not(feature = "bindings"))]
mod test_pair;

// Threads, clocks and tokio are used only by the modules below.
#[cfg(feature = "server")]
mod clock;
#[cfg(all(feature = "bindings", feature = "server"))]
#[doc(hidden)]
pub mod driver;
#[cfg(all(not(feature = "bindings"), feature = "server"))]
mod driver;
#[cfg(all(feature = "bindings", feature = "server"))]
#[doc(hidden)]
pub mod stores;
#[cfg(all(not(feature = "bindings"), feature = "server"))]
mod stores;
#[cfg(feature = "server")]
pub mod transport;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "client")]
pub mod client;
#[cfg(all(feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub mod upstream;
#[cfg(all(not(feature = "bindings"), feature = "client"))]
mod upstream;
#[cfg(all(feature = "bindings", feature = "client"))]
#[doc(hidden)]
pub mod bindings;

pub mod sans_io;
#[cfg(all(feature = "auth", feature = "client"))]
pub mod testing;

#[cfg(feature = "client")]
pub use client::Client;
pub use error::Error;
pub use protocol::{Completion, LoggingLevel, Revision};
#[cfg(feature = "server")]
pub use server::{
    Audio, CompletionInput, Context, File, Image, Json, List, Prompt, Registry, Resource,
    ResourceNotFound, SchemaProfile, Server, ServerOptions, State, Tool, ToolError, ask,
};
#[cfg(feature = "http")]
pub use server::{Cors, HttpOptions, HttpService, Listening, SessionMode};
#[cfg(feature = "client")]
pub use upstream::Upstream;
