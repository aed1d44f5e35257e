//! Validation of names at registration.

use crate::{
    error::Error,
    protocol::{Method, MethodKind, Sender},
    schema::nearest,
};

/// Checks a tool name: 1 to 128 characters of letters, digits, `_`, `-`, `.` (Tools, "Tool Names").
pub(super) fn check_tool(name: &str) -> Result<(), Error> {
    let fits = (1..=128).contains(&name.len()) && name.bytes().all(is_letter);
    match fits {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{name:?} is not a tool name: use 1 to 128 letters, digits, '_', '-' or '.'"
        ))),
    }
}

/// Checks the prefix of a mounted server.
pub fn check_prefix(prefix: &str) -> Result<(), Error> {
    let fits = !prefix.is_empty() && prefix.bytes().all(is_letter);
    match fits {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "a prefix is one or more letters, digits, '_', '-' or '.', not {prefix:?}"
        ))),
    }
}

/// Checks the name of a server.
#[doc(hidden)] // For the crate's servers and the language bindings.
pub fn check_server(name: &str) -> Result<(), Error> {
    match name.trim().is_empty() {
        true => Err(Error::misuse("a server's name must not be empty")),
        false => Ok(()),
    }
}

/// Returns `true` for the characters allowed in tool names.
pub(super) fn is_letter(it: u8) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.')
}

pub(super) fn check_prompt(name: &str) -> Result<(), Error> {
    match name.trim().is_empty() {
        true => Err(Error::misuse("a prompt's name must not be empty")),
        false => Ok(()),
    }
}

/// Checks a method name: a vendor method, or a standard method that a handler can replace.
pub(super) fn check_method(name: &str) -> Result<(), Error> {
    let standard = Method::parse(name);
    let problem = match standard {
        Some(Method::Initialize | Method::Listen) => {
            "manages state of the core: change its result with middleware"
        }
        Some(it) if it.kind() != MethodKind::Request || it.sender() == Sender::Server => {
            "is not a request that clients send"
        }
        Some(_) => return Ok(()),
        None => return check_vendor(name),
    };
    Err(Error::misuse(format!("{name:?} {problem}")))
}

/// Checks a notification name: a vendor's, or the standard one that handlers can receive.
pub(super) fn check_notification(name: &str) -> Result<(), Error> {
    match Method::parse(name) {
        Some(Method::RootsListChanged) => Ok(()),
        Some(_) => Err(Error::misuse(format!(
            "{name:?} belongs to the specification and is already served: use a vendor's prefix and a name, as in \"acme/reindex\""
        ))),
        None => check_vendor(name),
    }
}

/// Checks the method names of middleware. Vendor methods may be registered later.
pub(super) fn check_middleware(on: &str) -> Result<(), Error> {
    const NOTIFICATION: &str = "notifications/roots/list_changed";
    let asked = |method: &&Method| {
        method.kind() == MethodKind::Request && method.sender() != Sender::Server
    };
    if on == "*"
        || on == NOTIFICATION
        || Method::parse(on).as_ref().is_some_and(|method| asked(&method))
    {
        return Ok(());
    }
    let close = nearest(on, Method::ALL.iter().filter(asked).map(|method| method.as_str()));
    let theirs = on.split_once('/').map(|parts| parts.0);
    let is_vendors = theirs.is_some_and(|theirs| {
        let of_the_specification =
            |method: &Method| method.as_str().split('/').next() == Some(theirs);
        !theirs.is_empty() && !Method::ALL.iter().any(of_the_specification)
    });
    match (close, is_vendors) {
        (None, true) => check_vendor(on),
        (Some(meant), _) => Err(Error::misuse(format!(
            "{on:?} is not a request that clients send, so middleware would never run for it: did you mean {meant:?}?"
        ))),
        (None, false) => Err(Error::misuse(format!(
            "{on:?} is not a request that clients send, so middleware would never run for it: name one that they send, such \
             as \"tools/call\", or \"*\" for all; a vendor's own without a prefix is registered before its middleware"
        ))),
    }
}

fn check_vendor(name: &str) -> Result<(), Error> {
    let fits =
        !name.is_empty() && !name.chars().any(char::is_whitespace) && !name.starts_with("rpc.");
    match fits {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{name:?} is not a method name: use a vendor's prefix and a name, as in \"acme/reindex\""
        ))),
    }
}

/// Checks that a resource's URI has a scheme.
pub(super) fn check_uri(uri: &str) -> Result<(), Error> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme);
    let fits = scheme.is_some_and(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    });
    match fits && !uri.bytes().any(|byte| byte.is_ascii_whitespace()) {
        true => Ok(()),
        false => Err(Error::misuse(format!(
            "{uri:?} is not a URI: start with a scheme, as in \"shelf://books\""
        ))),
    }
}
