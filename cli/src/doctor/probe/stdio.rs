//! The probe over stdio: `gudgeon doctor --client` starts clients with its command.

use std::{
    fs::File,
    io::{self, BufRead as _, Write as _},
    path::Path,
};

use gudgeon::Revision;
use serde_json::{Value, json};

use super::{PING, UNKNOWN, answer};
use crate::{failure::Failure, output};

/// Serves on standard streams until the end of input, and appends each line to the record: `{"line": "…"}`, and `{"eof":
/// true}` at the end.
pub fn serve(record: &Path, only: Option<Revision>) -> Result<(), Failure> {
    let mut record = File::options().append(true).create(true).open(record)?;
    let mut note = |value: &Value| writeln!(record, "{value}").and_then(|()| record.flush());
    note(&json!({"start": true}))?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        note(&json!({"line": line}))?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let is_initialized = message["method"] == "notifications/initialized";
        if let Some(id) = message.get("id").filter(|_| message["method"].is_string()) {
            let mut response = answer(&message, only);
            response["jsonrpc"] = json!("2.0");
            response["id"] = id.clone();
            output::line(response)?;
        } else if is_initialized {
            for (id, method) in [(PING, "ping"), (UNKNOWN, "doctor/unknown")] {
                output::line(json!({"jsonrpc": "2.0", "id": id, "method": method}))?;
            }
        }
    }
    Ok(note(&json!({"eof": true}))?)
}
