//! Transcripts that are played: the recorded server for a client, or the recorded client for a server.

pub mod client;
mod difference;
mod script;
pub mod server;
