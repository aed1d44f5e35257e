//! Errors of the core as JSON, for the exceptions of `gudgeon.errors`.

use gudgeon::{client::describe, error::Error};

pub(crate) fn error_json(error: &Error) -> String {
    describe(error, bare_message(error))
}

/// The Python exceptions add the target and the last lines of stderr themselves.
fn bare_message(error: &Error) -> &str {
    let mut message = error.message.as_str();
    if let Some(target) = &error.target {
        message = message
            .strip_prefix(target.as_str())
            .and_then(|it| it.strip_prefix(": "))
            .unwrap_or(message);
    }
    if let Some(stderr) = &error.stderr {
        message = message
            .strip_suffix(stderr.as_str())
            .and_then(|it| it.strip_suffix("; the end of its standard error:\n"))
            .unwrap_or(message);
    }
    message
}
