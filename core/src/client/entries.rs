//! Bounds for what a client makes of a result: in Python and TypeScript a value of each object, on the event loop that it
//! shares with other clients.

use super::connected::Connected;
use crate::{
    error::Error,
    framing::DEFAULT_LINE_LIMIT,
    peer::{self, count_values},
    protocol::{Method, Raw},
    transport::off_thread::LARGE,
};

/// The maximum number of objects in all pages of a list, its schemas and `_meta` not included. Like the other limit, it
/// grows with a `max_message` above its default.
const MAX_LISTED: usize = 25_000;
/// The maximum number of objects in another result, such as content blocks, its structured content and `_meta` not
/// included.
const MAX_PARTS: usize = 10_000;

impl Connected {
    /// Errors if a result has too many objects. Small results are not looked at.
    pub(super) fn check_objects(&self, method: Method, result: &Raw) -> Result<(), Error> {
        match result.get().len() > LARGE {
            true => self.check_count(method, count_values(result.get())),
            false => Ok(()),
        }
    }

    /// Errors if this is more objects than the result of a request, or the pages of a list, may have.
    pub(super) fn check_count(&self, method: Method, count: usize) -> Result<(), Error> {
        let max = match method {
            Method::ListTools
            | Method::ListResources
            | Method::ListResourceTemplates
            | Method::ListPrompts => MAX_LISTED,
            _ => MAX_PARTS,
        };
        let max = scaled(max, self.max_message);
        if count <= max {
            return Ok(());
        }
        let message =
            format!("{}: the server's result has more than {max} objects", method.as_str());
        Err(self.name(peer::broken(message).limited_by("max_message")))
    }
}

fn scaled(max: usize, max_message: usize) -> usize {
    max.saturating_mul((max_message / DEFAULT_LINE_LIMIT).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_grow_with_large_messages_only() {
        for (max_message, max) in [(1, 10), (DEFAULT_LINE_LIMIT, 10), (4 * DEFAULT_LINE_LIMIT, 40)]
        {
            assert_eq!(scaled(10, max_message), max);
        }
        assert_eq!(scaled(usize::MAX, 4 * DEFAULT_LINE_LIMIT), usize::MAX);
    }
}
