//! Errors as JSON, for the bindings.

use crate::{
    error::{Error, ErrorKind, host_error::HostError},
    protocol::json::ObjectWriter,
};

/// Describes an error, with this message, as JSON: `{"kind", "message"}` and those of `hint`, `target`, `phase`,
/// `code`, `data`, `status`, `wwwAuthenticate`, `errno`, `exitStatus`, `stderr` and `raised`, the number of the host's exception that
/// caused it, that are known. `kind` names the class.
pub fn describe(error: &Error, message: &str) -> String {
    let mut object = ObjectWriter::with_capacity(message.len() + 64);
    object.member("kind", class(error)).member("message", message);
    for (name, text) in [
        ("hint", error.hint.as_deref()),
        ("target", error.target.as_deref()),
        ("phase", error.phase),
        ("stderr", error.stderr.as_deref()),
        ("wwwAuthenticate", error.www_authenticate.as_deref()),
    ] {
        if let Some(text) = text {
            object.member(name, text);
        }
    }
    if let Some(code) = error.code {
        object.member("code", &code);
    }
    if let Some(status) = error.http_status {
        object.member("status", &status);
    }
    for (name, number) in [("errno", errno(error)), ("exitStatus", error.exit_status)] {
        if let Some(number) = number {
            object.member(name, &number);
        }
    }
    if let Some(HostError(number)) = HostError::cause_of(error) {
        object.member("raised", &number);
    }
    if let Some(data) = &error.data {
        object.raw("data", data.get());
    }
    object.finish()
}

/// Returns the name of the error's class in the bindings: a failure before the first answer is a failed connect.
fn class(error: &Error) -> &'static str {
    match (error.phase, error.kind) {
        (Some("connect" | "negotiate"), ErrorKind::Timeout) => "connectTimeout",
        (Some("connect" | "negotiate"), ErrorKind::Lost | ErrorKind::Protocol) => "connect",
        (_, kind) => kind.as_str(),
    }
}

/// Returns the operating system's error number, if a system call failed.
fn errno(error: &Error) -> Option<i32> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(errno) = error.downcast_ref().and_then(std::io::Error::raw_os_error) {
            return Some(errno);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bindings' tests compare their classes with the same table.
    #[test]
    fn each_kind_of_error_has_a_class_in_the_bindings() {
        let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/client_errors.json");
        let table = std::fs::read_to_string(table).unwrap();
        let table: Vec<serde_json::Value> = serde_json::from_str(&table).unwrap();
        for kind in [
            ErrorKind::Connect,
            ErrorKind::Lost,
            ErrorKind::Timeout,
            ErrorKind::Auth,
            ErrorKind::Protocol,
            ErrorKind::Unsupported,
            ErrorKind::Tool,
            ErrorKind::NotFound,
            ErrorKind::Declined,
            ErrorKind::Cancelled,
            ErrorKind::Misuse,
        ] {
            assert!(table.iter().any(|row| row["error"]["kind"] == kind.as_str()), "{kind:?}");
        }
    }

    #[test]
    fn a_failure_before_the_first_answer_is_a_failed_connect() {
        for (kind, phase, class) in [
            (ErrorKind::Timeout, "connect", "connectTimeout"),
            (ErrorKind::Timeout, "negotiate", "connectTimeout"),
            (ErrorKind::Timeout, "call", "timeout"),
            (ErrorKind::Lost, "negotiate", "connect"),
            (ErrorKind::Lost, "call", "lost"),
            (ErrorKind::Protocol, "negotiate", "connect"),
            (ErrorKind::Protocol, "call", "protocol"),
            (ErrorKind::Auth, "negotiate", "auth"),
        ] {
            let error = Error::new(kind, "m").in_phase(phase);
            let described = describe(&error, "m");
            assert!(described.starts_with(&format!(r#"{{"kind":"{class}""#)), "{described}");
        }
    }
}
