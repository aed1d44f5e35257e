//! A server over stdio that records what its client sends: `gudgeon doctor --client` starts clients with it.

use std::{
    fs::File,
    io::{self, BufRead as _, Write as _},
    path::Path,
};

use gudgeon::Revision;
use serde_json::{Value, json};

use crate::{failure::Failure, output};

/// The cursors of the pages of `tools/list`. The empty one is a cursor like any other.
pub const CURSORS: [&str; 2] = ["page 2 of 3 \u{1f41f}", ""];
/// Ids of the requests that the probe sends.
pub const PING: &str = "probe-ping";
pub const UNKNOWN: &str = "probe-unknown";

/// Serves on standard streams until the end of input, and appends each line to the record: `{"line": "…"}`, and `{"eof":
/// true}` at the end.
pub fn serve(record: &Path) -> Result<(), Failure> {
    let mut record = File::options().append(true).create(true).open(record)?;
    let mut note = |value: &Value| writeln!(record, "{value}").and_then(|()| record.flush());
    note(&json!({"start": true}))?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        note(&json!({"line": line}))?;
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let is_initialized = message["method"] == "notifications/initialized";
        if let Some(id) = message.get("id").filter(|_| message["method"].is_string()) {
            let mut response = answer(&message);
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

fn answer(message: &Value) -> Value {
    let params = &message["params"];
    let is_modern = params["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
    let info = json!({"name": "gudgeon-doctor", "version": env!("CARGO_PKG_VERSION")});
    let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
    let mut result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let wanted = params["protocolVersion"].as_str().and_then(Revision::parse);
            let version = wanted.filter(|it| *it <= Revision::LATEST_LEGACY);
            let version = version.unwrap_or(Revision::LATEST_LEGACY).to_string();
            json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        }
        "server/discover" => {
            let versions: Vec<_> = Revision::ALL.iter().map(ToString::to_string).collect();
            json!({"supportedVersions": versions, "capabilities": capabilities})
        }
        "ping" => json!({}),
        "tools/list" => page(params.get("cursor").and_then(Value::as_str)),
        "resources/list" => json!({"resources": []}),
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "prompts/list" => json!({"prompts": []}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => return json!({"error": {"code": -32601, "message": "Method not found"}}),
    };
    if is_modern {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
        result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": info});
    }
    json!({"result": result})
}

/// Returns a page of tools. A cursor that was never returned gets the last page; the record tells of it.
fn page(cursor: Option<&str>) -> Value {
    let at = match cursor {
        None => 0,
        Some(cursor) => CURSORS.iter().position(|it| *it == cursor).map_or(2, |it| it + 1),
    };
    let name = ["probe_first", "probe_second", "probe_third"][at];
    let tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    match CURSORS.get(at) {
        Some(next) => json!({"tools": [tool], "nextCursor": next}),
        None => json!({"tools": [tool]}),
    }
}
