//! The Model Context Protocol, every revision, as one sans-IO core with thin shells.
//!
//! Reading order, lowest layer first; a module uses only what stands above it in this list.

#![forbid(unsafe_code)]

pub mod error;
pub mod protocol;
pub mod wire;
pub mod framing;
pub mod schema;
pub mod session;
pub mod router;
pub mod service;
pub mod peer;
pub mod testing;

// Only here: threads, clocks and tokio.
#[cfg(feature = "runtime")]
pub mod driver;
#[cfg(feature = "runtime")]
pub mod transport;
#[cfg(feature = "runtime")]
pub mod server;
#[cfg(feature = "runtime")]
pub mod client;

#[cfg(feature = "runtime")]
pub use client::Client;
pub use protocol::{Completion, Revision};
#[cfg(feature = "runtime")]
pub use server::{
    Audio, CompletionInput, Context, Cors, File, HttpOptions, HttpService, Image, Json, List,
    Listening, Prompt, Registry, Resource, ResourceNotFound, Server, Tool, ToolError, ask,
};
