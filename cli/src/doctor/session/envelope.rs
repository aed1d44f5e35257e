//! The envelope of messages: members of `_meta`, and headers over HTTP.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::Revision;
use serde_json::{Map, Value, json};

use super::Session;

impl Session {
    /// Returns the text of a request, with the members of `_meta` that the revision requires.
    pub fn request_text(&self, id: &Value, method: &str, params: Value) -> String {
        let params = self.with_meta(params);
        let mut text = Map::new();
        text.insert("jsonrpc".into(), "2.0".into());
        text.insert("id".into(), id.clone());
        text.insert("method".into(), method.into());
        if params.as_object().is_some_and(|members| !members.is_empty()) {
            text.insert("params".into(), params);
        }
        Value::Object(text).to_string()
    }

    /// Adds the members of `_meta` that the revision requires on every request.
    pub fn with_meta(&self, mut params: Value) -> Value {
        if self.is_modern()
            && let Some(params) = params.as_object_mut()
        {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            for (name, value) in [
                ("protocolVersion", json!(self.revision.to_string())),
                (
                    "clientInfo",
                    json!({"name": "gudgeon-doctor", "version": env!("CARGO_PKG_VERSION")}),
                ),
                ("clientCapabilities", json!({})),
            ] {
                let name = format!("io.modelcontextprotocol/{name}");
                if meta.get(&name).is_none() {
                    meta[name] = value;
                }
            }
        }
        params
    }

    /// Returns the headers that a correct client sends with a message.
    pub fn headers(&self, text: &str) -> Vec<(&'static str, String)> {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
        let mut headers = Vec::new();
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id", id.clone()));
        }
        if self.is_modern() {
            headers.push(("mcp-protocol-version", self.revision.to_string()));
            if !method.is_empty() {
                headers.push(("mcp-method", method.to_owned()));
            }
            let name = match method {
                "tools/call" | "prompts/get" => value["params"]["name"].as_str(),
                "resources/read" => value["params"]["uri"].as_str(),
                _ => None,
            };
            headers.extend(name.map(|name| ("mcp-name", header_value(name))));
        } else if method != "initialize" && self.revision >= Revision::V2025_06_18 {
            headers.push(("mcp-protocol-version", self.revision.to_string()));
        }
        headers
    }
}

/// Encodes the value of `Mcp-Name` (2026-07-28, Streamable HTTP, "Value Encoding").
fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}
