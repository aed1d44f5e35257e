//! Which names may be registered.

use crate::{error::Error, protocol::Method};

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

pub(super) fn check_prompt(name: &str) -> Result<(), Error> {
    match name.trim().is_empty() {
        true => Err(Error::misuse("a prompt's name must not be empty")),
        false => Ok(()),
    }
}

/// Names of a vendor's own; those of the specification are served by the core, but for the one that `open` names.
pub(super) fn check_vendor(name: &str, open: Option<Method>) -> Result<(), Error> {
    if let Some(method) = Method::parse(name).filter(|it| Some(*it) != open) {
        return Err(Error::misuse(format!(
            "{:?} is the specification's own and served already: use a vendor's prefix and a name, as in \"acme/reindex\"",
            method.as_str()
        )));
    }
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
