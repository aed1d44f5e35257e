//! Sans-IO processing of a server's responses on the client: pages, rounds of questions, tool results,
//! results to reuse, subscriptions.

mod pages;
mod results;
mod rounds;
pub mod subscriptions;
mod tools;
mod values;

pub use pages::{ListKind, Page, Pages};
pub use results::ResultCache;
pub use rounds::{Round, with_answers};
pub use tools::{
    KnownTools, ListedSchema, ListedTools, ParsedToolResult, ToolData, check_arguments,
    check_result,
};

pub(crate) use self::values::count_values;
use crate::{
    error::{Error, ErrorKind},
    protocol::{Raw, json},
};

/// Creates an error for a response that violates the protocol.
pub(crate) fn broken(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Protocol, message)
}

/// Deserializes a result. Errors with kind `Protocol` if the result does not have the expected shape.
pub fn read<'a, T: serde::Deserialize<'a>>(method: &str, result: &'a Raw) -> Result<T, Error> {
    serde_json::from_str(result.get()).map_err(|error| invalid(method, &error))
}

fn invalid(method: &str, problem: &serde_json::Error) -> Error {
    broken(format!("{method}: the server's result is invalid: {}", json::problem(problem)))
}
