//! What one client makes of what a server says: pages, rounds of questions, tool results. Pure.

mod pages;
mod rounds;
pub mod subscriptions;
mod tools;

pub use pages::{ListKind, Page, Pages};
pub use rounds::{Round, with_answers};
pub use tools::{KnownTools, ToolVerdict, retain_mirrored};

use crate::{
    error::{Error, ErrorKind},
    protocol::Raw,
};

/// What a server did wrong.
fn broken(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Protocol, message)
}

/// Reads an answer of the server's as what it should be.
pub fn read<'a, T: serde::Deserialize<'a>>(method: &str, result: &'a Raw) -> Result<T, Error> {
    serde_json::from_str(result.get())
        .map_err(|it| broken(format!("{method}: the server's answer can't be read: {it}")))
}
