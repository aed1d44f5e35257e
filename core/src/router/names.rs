//! Which names may be registered.

use crate::{
    error::Error,
    protocol::{Method, MethodKind, Sender},
};

/// Tool names: 1 to 128 of letters, digits, `_`, `-`, `.` (Tools, "Tool Names").
pub(super) fn check_tool(name: &str) -> Result<(), Error> {
    let fits = (1..=128).contains(&name.len())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.'));
    match fits {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{name:?} is no tool name: use 1 to 128 letters, digits, '_', '-' or '.'"
        ))),
    }
}

/// What the names of a mounted server begin with.
pub(super) fn check_prefix(prefix: &str) -> Result<(), Error> {
    let fits = !prefix.is_empty()
        && prefix.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.'));
    match fits {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "mount({prefix:?}): a prefix is one or more letters, digits, '_', '-' or '.'"
        ))),
    }
}

pub(super) fn check_prompt(name: &str) -> Result<(), Error> {
    match name.trim().is_empty() {
        true => Err(Error::misuse("a prompt's name must not be empty")),
        false => Ok(()),
    }
}

/// Requests: a vendor's own, and those of the specification that a handler can answer in the router's place.
pub(super) fn check_method(name: &str) -> Result<(), Error> {
    let standard = Method::parse(name);
    let problem = match standard {
        Some(Method::Initialize | Method::Listen) => {
            "opens what only the core can keep: change its result with middleware"
        }
        Some(it) if it.kind() != MethodKind::Request || it.sender() == Sender::Server => {
            "is no request that clients send"
        }
        Some(_) => return Ok(()),
        None => return check_vendor(name),
    };
    Err(Error::misuse(format!("{name:?} {problem}")))
}

/// Notifications: a vendor's own, and the one of the specification's that a handler can hear.
pub(super) fn check_notification(name: &str) -> Result<(), Error> {
    match Method::parse(name) {
        Some(Method::RootsListChanged) => Ok(()),
        Some(_) => Err(Error::misuse(format!(
            "{name:?} is the specification's own and served already: use a vendor's prefix and a name, as in \"acme/reindex\""
        ))),
        None => check_vendor(name),
    }
}

fn check_vendor(name: &str) -> Result<(), Error> {
    let fits =
        !name.is_empty() && !name.chars().any(char::is_whitespace) && !name.starts_with("rpc.");
    match fits {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{name:?} is no method name: use a vendor's prefix and a name, as in \"acme/reindex\""
        ))),
    }
}

/// A resource's URI needs a scheme.
pub(super) fn check_uri(uri: &str) -> Result<(), Error> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    let fits = scheme.is_some_and(|it| {
        it.starts_with(|it: char| it.is_ascii_alphabetic())
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'))
    });
    match fits && !uri.bytes().any(|it| it.is_ascii_whitespace()) {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{uri:?} is no URI: start with a scheme, as in \"shelf://books\""
        ))),
    }
}
