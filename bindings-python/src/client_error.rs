//! The core's errors as JSON, for the exceptions of `gudgeon.errors`; and back, for what callbacks raise.

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{Raw, json},
};
use pyo3::{PyErr, exceptions::PyValueError};
use serde::Deserialize;

pub(crate) fn error_json(error: &Error) -> Raw {
    let mut out = json::ObjectWriter::with_capacity(error.message.len() + 64);
    out.member("kind", kind_name(error.kind));
    out.member("message", bare_message(error));
    out.member("hint", &error.hint);
    out.member("target", &error.target);
    out.member("phase", &error.phase);
    out.member("code", &error.code);
    out.member("data", &error.data);
    out.member("exitStatus", &error.exit_status);
    out.member("stderr", &error.stderr);
    json::raw(out.finish())
}

/// Python's exceptions show the target and the last words themselves.
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
            .and_then(|it| it.strip_suffix("; its last words:\n"))
            .unwrap_or(message);
    }
    message
}

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "connect",
        ErrorKind::Lost => "lost",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Auth => "auth",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Tool => "tool",
        ErrorKind::NotFound => "notFound",
        ErrorKind::Declined => "declined",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Misuse => "misuse",
        _ => "protocol",
    }
}

#[derive(Deserialize)]
struct Refusal {
    kind: String,
    message: String,
    code: Option<i64>,
    data: Option<Raw>,
}

/// Why a callback gave no answer: `{"kind", "message", "code"?, "data"?}`.
pub(crate) fn refusal(json: &[u8]) -> Result<Error, PyErr> {
    let said: Refusal =
        serde_json::from_slice(json).map_err(|it| PyValueError::new_err(it.to_string()))?;
    let kind = match said.kind.as_str() {
        "declined" => ErrorKind::Declined,
        "cancelled" => ErrorKind::Cancelled,
        "unsupported" => ErrorKind::Unsupported,
        _ => ErrorKind::Protocol,
    };
    Ok(Error { code: said.code, data: said.data, ..Error::new(kind, said.message) })
}
