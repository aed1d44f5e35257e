//! The client's side of authorization: obtains, keeps and renews the tokens for one server.
//!
//! [`SignIn`] is the machine; the other modules are the steps of its flows. Spec: Basic › Authorization.

mod authorize;
mod discovery;
mod dpop;
mod flow;
mod grants;
mod records;
mod registration;
mod settings;
mod sign_in;
#[cfg(feature = "bindings")]
pub mod stored;
#[cfg(test)]
mod tests;
mod token;

pub use self::{
    settings::{ClientKey, Grant, RegisteredClient, SignInSettings},
    sign_in::{
        Answer, Attempts, Credentials, Input, Output, Rejection, RejectionReply, SignIn, StepId,
        Task, Ticket,
    },
};
pub use super::moment::Moment;
use crate::error::{Error, ErrorKind};

/// Creates an error of the kind [`ErrorKind::Auth`].
fn failure(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Auth, message)
}

/// Returns a string from a server as far as an error may show it: printable ASCII, and at most 200 characters.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| matches!(letter, ' '..='~')).take(200).collect()
}
