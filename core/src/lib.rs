//! Every revision of the Model Context Protocol, as one sans-IO core with runtime layers on top.
//!
//! The modules below are listed from the lowest layer to the highest; a module uses only modules above it in this
//! list.

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
pub use error::Error;
pub use protocol::{Completion, Revision};
#[cfg(feature = "runtime")]
pub use server::{
    Audio, CompletionInput, Context, Cors, File, HttpOptions, HttpService, Image, Json, List,
    Listening, Prompt, Registry, Resource, ResourceNotFound, Server, Tool, ToolError, ask,
};
