//! Named connections, kept by a small background process of the same program.
//!
//! The process listens at a Unix socket in a folder that only the user can read. The first line of a connection to it is a
//! request of its own, see [`control`]: it opens a named connection, which is an MCP server from then on ([`peer`]), or it
//! starts or continues a call that asks questions ([`open_questions`]).

pub mod client;
mod connection;
mod control;
mod definition;
mod environment;
mod folder;
mod log;
mod message;
mod notice;
mod open_questions;
mod peer;
mod process;
mod questions;
mod saved;
mod values;

pub use self::{
    client::Keeper,
    definition::Definition,
    folder::{Folder, check_name, is_connection},
    message::failure_in,
    process::{Limits, run},
    saved::Saved,
    values::{CallParams, ConnectionState, Outcome, QuestionShown, ToolReply},
};
