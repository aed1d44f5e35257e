//! A server that records what its client sends, in all revisions or in one.

pub mod http;
pub mod stdio;

use gudgeon::Revision;
use serde_json::{Value, json};

/// The cursors of the pages of `tools/list`. The empty one is a cursor like any other.
pub const CURSORS: [&str; 2] = ["page 2 of 3 \u{1f41f}", ""];
/// The name of the header, after `Mcp-Param-`, for the argument `region` of the tools.
pub const PARAM: &str = "Region";
/// Ids of the requests that the probe sends.
pub const PING: &str = "probe-ping";
pub const UNKNOWN: &str = "probe-unknown";

/// Returns whether a message is one of 2026-07-28.
pub fn is_modern(message: &Value) -> bool {
    message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some()
}

/// Returns the answer to a request, without its id. With `only`, the probe speaks no other revision.
fn answer(message: &Value, only: Option<Revision>) -> Value {
    let params = &message["params"];
    let is_modern = is_modern(message);
    let spoken: Vec<_> = Revision::ALL
        .into_iter()
        .filter(|revision| only.is_none_or(|only| only == *revision))
        .collect();
    let (oldest, newest) = (spoken[0], spoken[spoken.len() - 1]);
    let versions: Vec<_> = spoken.iter().map(ToString::to_string).collect();
    let info = json!({"name": "gudgeon-doctor", "version": env!("CARGO_PKG_VERSION")});
    let capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
    let mut result = match message["method"].as_str().unwrap_or_default() {
        _ if is_modern && newest < Revision::LATEST => {
            return json!({"error": {"code": -32601, "message": "Method not found"}});
        }
        "initialize" if oldest > Revision::LATEST_LEGACY => {
            let data = json!({"supported": versions, "requested": params["protocolVersion"]});
            return json!({"error": {"code": -32022, "message": "Unsupported version", "data": data}});
        }
        "initialize" => {
            let wanted = params["protocolVersion"].as_str().and_then(Revision::parse);
            let newest = newest.min(Revision::LATEST_LEGACY);
            let version = wanted.filter(|revision| *revision <= newest && *revision >= oldest);
            let version = version.unwrap_or(newest).to_string();
            json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        }
        "server/discover" => {
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

/// Returns a page of tools. A cursor that was never returned gets the last page and is recorded.
fn page(cursor: Option<&str>) -> Value {
    let at = match cursor {
        None => 0,
        Some(cursor) => {
            CURSORS.iter().position(|known| *known == cursor).map_or(2, |index| index + 1)
        }
    };
    let name = ["probe_first", "probe_second", "probe_third"][at];
    // Clients repeat the argument in a header over HTTP, in 2026-07-28.
    let region = json!({"type": "string", "x-mcp-header": PARAM});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tool = json!({"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": true}});
    match CURSORS.get(at) {
        Some(next) => json!({"tools": [tool], "nextCursor": next}),
        None => json!({"tools": [tool]}),
    }
}
