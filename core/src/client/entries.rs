//! Limits for the number of objects in a result: Python and TypeScript make a value of each, on the event loop that all
//! clients share.

use std::pin::Pin;

use super::connected::Connected;
use crate::{
    error::Error,
    framing::DEFAULT_LINE_LIMIT,
    peer::{self, count_values},
    protocol::{Method, Raw},
    transport::off_thread::{LARGE, off_thread},
};

/// The maximum number of objects in all pages of a list, its schemas and `_meta` not included. Like the other limit, it
/// grows with a `max_message` above its default, up to a thousandfold.
const MAX_LISTED: usize = 25_000;
/// The maximum number of objects in another result, such as content blocks, its structured content and `_meta` not
/// included.
const MAX_PARTS: usize = 10_000;

/// The maximum size in bytes of a result whose objects are counted on the thread of all connections. Moving it to another
/// thread takes a tenth of the time to count in a result of this size.
const MAX_COUNTED_HERE: usize = 8 * LARGE;

impl Connected {
    /// Returns a large result. Errors if it has too many objects inside.
    pub(super) fn check_objects(
        &self,
        method: Method,
        result: Raw,
    ) -> Pin<Box<dyn Future<Output = Result<Raw, Error>> + Send + '_>> {
        let max = self.max_objects(method);
        let is_long = result.get().len() > MAX_COUNTED_HERE;
        let count = move || {
            let count = count_values(result.get(), max + 1);
            (result, count)
        };
        // Boxed, because it is rare, and part of the future of every request otherwise.
        Box::pin(async move {
            let (result, count) = if is_long { off_thread(count).await } else { count() };
            // The result itself does not count.
            self.check_count(method, count.saturating_sub(1))?;
            Ok(result)
        })
    }

    /// Errors if this is more objects than the result of a request, or the pages of a list, may have.
    pub(super) fn check_count(&self, method: Method, count: usize) -> Result<(), Error> {
        let max = self.max_objects(method);
        if count <= max {
            return Ok(());
        }
        let message =
            format!("{}: the server's result has more than {max} objects", method.as_str());
        Err(self.name(peer::broken(message).limited_by("max_message")))
    }

    fn max_objects(&self, method: Method) -> usize {
        let max = match method {
            Method::ListTools
            | Method::ListResources
            | Method::ListResourceTemplates
            | Method::ListPrompts => MAX_LISTED,
            _ => MAX_PARTS,
        };
        scaled(max, self.max_message)
    }
}

fn scaled(max: usize, max_message: usize) -> usize {
    max * (max_message / DEFAULT_LINE_LIMIT).clamp(1, 1_000)
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
    }
}
