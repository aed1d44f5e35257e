//! The context of a connection's error: the server, the phase, and the end of its process.

use crate::{
    error::{Error, ErrorKind},
    transport::child::ExitInfo,
};

/// Adds the target, the phase, the exit status and the last lines of the server's standard error to an error.
pub(super) fn with_context(
    mut error: Error,
    target: &str,
    exit_info: &ExitInfo,
    phase: &'static str,
) -> Error {
    error.target.get_or_insert_with(|| target.to_owned());
    error.phase.get_or_insert(phase);
    let is_ours = matches!(error.kind, ErrorKind::Connect | ErrorKind::Lost | ErrorKind::Timeout);
    if !is_ours && matches!(phase, "call" | "subscribe") {
        return error;
    }
    error.message = format!("{target}: {}", error.message);
    if is_ours {
        error.exit_status = exit_info.status;
        error.stderr = Some(exit_info.stderr.clone()).filter(|stderr| !stderr.is_empty());
    }
    error
}
