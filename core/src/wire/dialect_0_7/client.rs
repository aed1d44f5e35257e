//! Client side of dialect 0.7: `initialize`, and the conversion of results and errors into the newest vocabulary.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::version;
use crate::protocol::{
    ErrorObject, Method, Raw, code,
    json::{self, ObjectWriter, to_raw},
};

/// Returns the params of `initialize` with the versions that this client accepts.
pub fn initialize_params() -> String {
    let (lowest, highest) = version::range();
    let mut params = ObjectWriter::with_capacity(64);
    params.member("minVersion", &lowest).member("maxVersion", &highest);
    params.finish()
}

/// Reads the answer to `initialize`. Returns the server's capabilities, a JSON object, or an error message.
pub fn read_initialize(result: &str) -> Result<Raw, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct VersionAndCapabilities {
        version: Option<String>,
        /// Present in answers of servers that speak the standard protocol.
        protocol_version: Option<String>,
        capabilities: Option<Raw>,
    }
    let read: VersionAndCapabilities =
        serde_json::from_str(result).map_err(|error| error.to_string())?;
    let version = read.version.or(read.protocol_version).ok_or("it names no version")?;
    if !version::is_spoken(&version) {
        let (lowest, highest) = version::range();
        return Err(format!("it supports {version:?}, this client {lowest} to {highest}"));
    }
    let capabilities = read.capabilities.filter(|raw| raw.get().starts_with('{'));
    Ok(capabilities.unwrap_or_else(|| json::raw("{}".into())))
}

/// Converts a result into the newest vocabulary. `uri` is the URI that was read.
pub fn lift_result(method: Method, uri: Option<&str>, result: &str) -> Result<Raw, String> {
    let mut result: Map<String, Value> =
        serde_json::from_str(result).map_err(|error| error.to_string())?;
    let lifted = match method {
        Method::ListTools => {
            for tool in members(&mut result, "tools")? {
                rename(tool, "arguments", "inputSchema");
                tool.entry("inputSchema").or_insert_with(|| json!({"type": "object"}));
            }
            result
        }
        Method::ListPrompts => {
            members(&mut result, "prompts")?.into_iter().for_each(list_arguments);
            result
        }
        Method::ListResources | Method::ListResourceTemplates => {
            let wants_templates = method == Method::ListResourceTemplates;
            let mut items = Vec::new();
            for item in members(&mut result, "resources")? {
                let is_template = item.get("uri").is_some_and(is_open);
                if is_template == wants_templates {
                    if wants_templates {
                        rename(item, "uri", "uriTemplate");
                    }
                    name_it(item);
                    items.push(Value::Object(std::mem::take(item)));
                }
            }
            let list = if wants_templates { "resourceTemplates" } else { "resources" };
            Map::from_iter([(list.to_owned(), Value::Array(items))])
        }
        Method::CallTool => called(result),
        Method::ReadResource => read(result, uri)?,
        Method::GetPrompt => rendered(&result)?,
        _ => result,
    };
    Ok(to_raw(&lifted))
}

/// Returns the result that an error stands for: a tool failure becomes a result, and a server without `ping` is
/// considered alive.
pub fn lift_error(method: Method, error: &ErrorObject) -> Option<Raw> {
    if method == Method::Ping && error.code == code::METHOD_NOT_FOUND {
        return Some(json::raw("{}".into()));
    }
    let is_result = method == Method::CallTool
        && matches!(error.code, code::DIALECT_TOOL_ARGUMENTS | code::DIALECT_TOOL_FAILED);
    let text = json!({"type": "text", "text": error.message});
    is_result.then(|| to_raw(&json!({ "content": [text], "isError": true })))
}

fn members<'a>(
    result: &'a mut Map<String, Value>,
    name: &str,
) -> Result<Vec<&'a mut Map<String, Value>>, String> {
    let list = result.get_mut(name).and_then(Value::as_array_mut);
    let list = list.ok_or_else(|| format!("the result has no list {name:?}"))?;
    list.iter_mut()
        .map(|entry| {
            entry.as_object_mut().ok_or_else(|| format!("an entry of {name:?} is not an object"))
        })
        .collect()
}

fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.shift_remove(from) {
        object.insert(to.to_owned(), value);
    }
}

fn is_open(uri: &Value) -> bool {
    uri.as_str().is_some_and(|text| text.contains('{'))
}

/// Uses the URI as the name of a resource without one.
fn name_it(item: &mut Map<String, Value>) {
    let uri = item.get("uri").or_else(|| item.get("uriTemplate")).cloned();
    if !item.contains_key("name") {
        item.insert("name".into(), uri.unwrap_or_default());
    }
}

/// Converts a prompt's schema into a list of arguments.
fn list_arguments(prompt: &mut Map<String, Value>) {
    let Some(schema @ Value::Object(_)) = prompt.get("arguments") else { return };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let arguments = properties.into_iter().map(|(name, property)| {
        let mut argument = json!({ "name": name, "required": required.contains(&json!(name)) });
        if let Some(description) = property.get("description").filter(|value| value.is_string()) {
            argument["description"] = description.clone();
        }
        argument
    });
    let arguments = arguments.collect();
    prompt.insert("arguments".into(), Value::Array(arguments));
}

/// Converts content: one `json` item becomes the structured value, and text in the content.
fn called(mut result: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(content)) = result.get_mut("content") else { return result };
    let mut values = Vec::new();
    for block in content {
        if block["type"] == "json"
            && let Some(value) = block.get("json").cloned()
        {
            *block = json!({"type": "text", "text": value.to_string()});
            values.push(value);
        }
    }
    if let [_] = values.as_slice() {
        result.insert("structuredContent".into(), values.remove(0));
    }
    result
}

fn read(mut result: Map<String, Value>, uri: Option<&str>) -> Result<Map<String, Value>, String> {
    refuse_error(&result)?;
    let uri = result.get("meta").and_then(|meta| meta["uri"].as_str()).or(uri).unwrap_or_default();
    let mime_type = result.get("meta").and_then(|meta| meta["mimeType"].as_str());
    let blocks = result.get("content").and_then(Value::as_array);
    let blocks = blocks.ok_or("the result has no content")?;
    let contents = blocks.iter().map(|block| {
        let text = match (&block["text"], &block["json"]) {
            (Value::String(text), _) => text.clone(),
            (_, Value::Null) => block.to_string(),
            (_, value) => value.to_string(),
        };
        let mut part = json!({ "uri": uri, "text": text });
        if let Some(mime_type) = mime_type {
            part["mimeType"] = mime_type.into();
        }
        part
    });
    let contents = contents.collect();
    let meta = result.shift_remove("meta").filter(Value::is_object);
    let mut lifted = Map::from_iter([("contents".to_owned(), Value::Array(contents))]);
    lifted.extend(meta.map(|meta| ("_meta".to_owned(), meta)));
    Ok(lifted)
}

fn rendered(result: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    refuse_error(result)?;
    let text = result.get("content").and_then(Value::as_str).ok_or("the result has no content")?;
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(Map::from_iter([("messages".to_owned(), json!([message]))]))
}

fn refuse_error(result: &Map<String, Value>) -> Result<(), String> {
    match result.get("isError") {
        Some(Value::Bool(true)) => {
            let content = result.get("content").map(|content| match content {
                Value::String(text) => text.clone(),
                other => other[0]["text"].as_str().map_or_else(|| other.to_string(), Into::into),
            });
            Err(content.unwrap_or_else(|| "it failed without a message".into()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifted(method: Method, result: &Value) -> Value {
        let raw = lift_result(method, Some("a://b"), &result.to_string()).expect("a result");
        serde_json::from_str(raw.get()).expect("JSON")
    }

    #[test]
    fn lists_come_in_the_newest_vocabulary() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "description": "A"}}, "required": ["a"]});
        assert_eq!(
            lifted(Method::ListTools, &json!({"tools": [{"name": "t", "arguments": schema}]})),
            json!({"tools": [{"name": "t", "inputSchema": schema}]})
        );
        assert_eq!(
            lifted(Method::ListPrompts, &json!({"prompts": [{"name": "p", "arguments": schema}]})),
            json!({"prompts": [{"name": "p", "arguments": [{"name": "a", "required": true, "description": "A"}]}]})
        );
        let both = json!({"resources": [{"uri": "a://b"}, {"uri": "a://{x}", "name": "x"}]});
        assert_eq!(
            lifted(Method::ListResources, &both),
            json!({"resources": [{"uri": "a://b", "name": "a://b"}]})
        );
        assert_eq!(
            lifted(Method::ListResourceTemplates, &both),
            json!({"resourceTemplates": [{"name": "x", "uriTemplate": "a://{x}"}]})
        );
    }

    #[test]
    fn results_come_in_the_newest_vocabulary() {
        assert_eq!(
            lifted(
                Method::CallTool,
                &json!({"content": [{"type": "json", "json": [1]}], "isError": false})
            ),
            json!({"content": [{"type": "text", "text": "[1]"}], "isError": false, "structuredContent": [1]})
        );
        assert_eq!(
            lifted(
                Method::ReadResource,
                &json!({"content": [{"type": "text", "text": "x"}], "isError": false, "meta": {"mimeType": "a/b"}})
            ),
            json!({"contents": [{"uri": "a://b", "text": "x", "mimeType": "a/b"}], "_meta": {"mimeType": "a/b"}})
        );
        assert_eq!(
            lifted(Method::GetPrompt, &json!({"content": "hi", "isError": false})),
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]})
        );
    }

    #[test]
    fn what_can_not_be_read_is_said() {
        for (method, result) in [
            (Method::ListTools, json!({})),
            (Method::ListTools, json!({"tools": [1]})),
            (Method::ReadResource, json!({"content": "x"})),
            (Method::ReadResource, json!({"content": [{"text": "no"}], "isError": true})),
            (Method::GetPrompt, json!({"content": "no", "isError": true})),
            (Method::GetPrompt, json!([])),
        ] {
            assert!(lift_result(method, None, &result.to_string()).is_err(), "{result}");
        }
        assert!(read_initialize(r#"{"version":"0.9.0"}"#).unwrap_err().contains("0.7.0"));
        assert!(read_initialize(r#"{"protocolVersion":"2024-11-05"}"#).is_err());
    }

    #[test]
    fn a_tool_that_failed_is_a_result() {
        let failed = |code| lift_error(Method::CallTool, &ErrorObject::new(code, "no"));
        assert!(failed(4003).is_some_and(|result| result.get().contains(r#""isError":true"#)));
        assert!(failed(4002).is_some() && failed(4001).is_none() && failed(1002).is_none());
        assert!(lift_error(Method::Ping, &ErrorObject::new(-32601, "no ping")).is_some());
        assert!(lift_error(Method::ReadResource, &ErrorObject::new(4003, "no")).is_none());
    }
}
