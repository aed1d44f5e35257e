//! The shapes of results: the parts of the specification's schema that clients depend on.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::{Revision, schema::Schema};
use serde_json::{Value, json};

/// Definitions by the names that the specification gives them. All of them hold in every revision: members that a revision
/// does not know are not sent in it.
const DEFINITIONS: &str = r##"{
"Implementation": {"type": "object", "required": ["name", "version"], "properties": {
    "name": {"type": "string"}, "version": {"type": "string"}, "title": {"type": "string"}}},
"ServerCapabilities": {"type": "object", "properties": {
    "tools": {"$ref": "#/$defs/ListCapability"}, "prompts": {"$ref": "#/$defs/ListCapability"},
    "resources": {"$ref": "#/$defs/ListCapability"}, "logging": {"type": "object"},
    "completions": {"type": "object"}, "experimental": {"type": "object"}, "extensions": {"type": "object"}}},
"ListCapability": {"type": "object", "properties": {"listChanged": {"type": "boolean"}, "subscribe": {"type": "boolean"}}},
"InitializeResult": {"type": "object", "required": ["protocolVersion", "capabilities", "serverInfo"], "properties": {
    "protocolVersion": {"type": "string"}, "capabilities": {"$ref": "#/$defs/ServerCapabilities"},
    "serverInfo": {"$ref": "#/$defs/Implementation"}, "instructions": {"type": "string"}}},
"DiscoverResult": {"type": "object", "required": ["supportedVersions", "capabilities"], "properties": {
    "supportedVersions": {"type": "array", "items": {"type": "string"}}, "instructions": {"type": "string"},
    "capabilities": {"$ref": "#/$defs/ServerCapabilities"}}},
"Page": {"type": "object", "properties": {"nextCursor": {"type": "string"}, "_meta": {"type": "object"}}},
"Cacheable": {"type": "object", "required": ["ttlMs", "cacheScope"], "properties": {
    "ttlMs": {"type": "integer", "minimum": 0}, "cacheScope": {"enum": ["public", "private"]}}},
"Tool": {"type": "object", "required": ["name", "inputSchema"], "properties": {
    "name": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"}, "_meta": {"type": "object"},
    "inputSchema": {"type": "object", "required": ["type"], "properties": {
        "type": {"const": "object"}, "properties": {"type": "object"}, "required": {"type": "array", "items": {"type": "string"}}}},
    "outputSchema": {"type": "object"}, "icons": {"type": "array", "items": {"$ref": "#/$defs/Icon"}},
    "annotations": {"type": "object", "properties": {
        "title": {"type": "string"}, "readOnlyHint": {"type": "boolean"}, "destructiveHint": {"type": "boolean"},
        "idempotentHint": {"type": "boolean"}, "openWorldHint": {"type": "boolean"}}}}},
"Icon": {"type": "object", "required": ["src"], "properties": {"src": {"type": "string"}, "mimeType": {"type": "string"}}},
"Annotations": {"type": "object", "properties": {
    "audience": {"type": "array", "items": {"enum": ["user", "assistant"]}},
    "priority": {"type": "number", "minimum": 0, "maximum": 1}, "lastModified": {"type": "string"}}},
"Resource": {"type": "object", "required": ["name", "uri"], "properties": {
    "name": {"type": "string"}, "uri": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"},
    "mimeType": {"type": "string"}, "size": {"type": "integer"}, "annotations": {"$ref": "#/$defs/Annotations"}}},
"ResourceTemplate": {"type": "object", "required": ["name", "uriTemplate"], "properties": {
    "name": {"type": "string"}, "uriTemplate": {"type": "string"}, "title": {"type": "string"},
    "description": {"type": "string"}, "mimeType": {"type": "string"}, "annotations": {"$ref": "#/$defs/Annotations"}}},
"Prompt": {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"},
    "arguments": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "description": {"type": "string"}, "required": {"type": "boolean"}}}}}},
"ResourceContents": {"type": "object", "required": ["uri"], "properties": {
    "uri": {"type": "string"}, "mimeType": {"type": "string"}, "text": {"type": "string"}, "blob": {"type": "string"}}},
"text": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "annotations": {"$ref": "#/$defs/Annotations"}}},
"image": {"type": "object", "required": ["data", "mimeType"], "properties": {
    "data": {"type": "string"}, "mimeType": {"type": "string"}, "annotations": {"$ref": "#/$defs/Annotations"}}},
"audio": {"$ref": "#/$defs/image"},
"resource": {"type": "object", "required": ["resource"], "properties": {
    "resource": {"$ref": "#/$defs/ResourceContents"}, "annotations": {"$ref": "#/$defs/Annotations"}}},
"resource_link": {"$ref": "#/$defs/Resource"},
"CallToolResult": {"type": "object", "required": ["content"], "properties": {
    "content": {"type": "array", "items": {"type": "object", "required": ["type"]}}, "isError": {"type": "boolean"}}},
"ReadResourceResult": {"type": "object", "required": ["contents"], "properties": {
    "contents": {"type": "array", "items": {"$ref": "#/$defs/ResourceContents"}}}},
"GetPromptResult": {"type": "object", "required": ["messages"], "properties": {
    "description": {"type": "string"}, "messages": {"type": "array", "items": {
        "type": "object", "required": ["role", "content"], "properties": {
            "role": {"enum": ["user", "assistant"]}, "content": {"type": "object", "required": ["type"]}}}}}},
"CompleteResult": {"type": "object", "required": ["completion"], "properties": {"completion": {
    "type": "object", "required": ["values"], "properties": {
        "values": {"type": "array", "maxItems": 100, "items": {"type": "string"}},
        "total": {"type": "integer"}, "hasMore": {"type": "boolean"}}}}}
}"##;

/// The types of content blocks, and the first revision of each.
const CONTENT: [(&str, Revision); 5] = [
    ("text", Revision::V2024_11_05),
    ("image", Revision::V2024_11_05),
    ("resource", Revision::V2024_11_05),
    ("audio", Revision::V2025_03_26),
    ("resource_link", Revision::V2025_06_18),
];

/// Returns what is wrong with a value that should have the shape of this name.
pub fn check(shape: &str, value: &Value) -> Result<(), String> {
    let definitions: Value = serde_json::from_str(DEFINITIONS).unwrap_or_default();
    let text = json!({"$ref": format!("#/$defs/{shape}"), "$defs": definitions}).to_string();
    let schema = Schema::compile(&text).map_err(|error| error.to_string())?;
    schema.check(value).map_err(|error| format!("{shape}: {error}"))
}

/// Returns what is wrong with a content block.
pub fn check_content(block: &Value, revision: Revision) -> Result<(), String> {
    let kind = block["type"].as_str().unwrap_or_default();
    let known = CONTENT.iter().find(|entry| entry.0 == kind);
    if known.is_none_or(|entry| entry.1 > revision) {
        return Err(format!("{revision} has no content of type {kind:?}"));
    }
    check(kind, block)?;
    match kind {
        "image" | "audio" => is_base64(&block["data"]),
        "resource" => check_contents(&block["resource"]),
        _ => Ok(()),
    }
}

/// Returns what is wrong with the contents of a resource.
pub fn check_contents(contents: &Value) -> Result<(), String> {
    check("ResourceContents", contents)?;
    match (contents.get("text"), contents.get("blob")) {
        (None, None) => Err("the contents have neither \"text\" nor \"blob\"".into()),
        (_, Some(blob)) => is_base64(blob),
        _ => Ok(()),
    }
}

fn is_base64(data: &Value) -> Result<(), String> {
    let data = data.as_str().unwrap_or_default();
    match STANDARD.decode(data) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("binary data that is not base64: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_compiles() {
        let all: Value = serde_json::from_str(DEFINITIONS).unwrap();
        for name in all.as_object().unwrap().keys() {
            let outcome = check(name, &json!(17));
            assert!(outcome.unwrap_err().starts_with(name), "{name}");
        }
    }

    #[test]
    fn content_is_of_a_type_of_its_revision() {
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        assert!(check_content(&audio, Revision::V2024_11_05).is_err());
        assert!(check_content(&audio, Revision::V2025_03_26).is_ok());
        let image = json!({"type": "image", "data": "not base64", "mimeType": "image/png"});
        assert!(check_content(&image, Revision::V2025_11_25).is_err());
    }

    #[test]
    fn contents_have_a_text_or_a_blob() {
        assert!(check_contents(&json!({"uri": "a:b"})).is_err());
        assert!(check_contents(&json!({"uri": "a:b", "text": ""})).is_ok());
    }
}
