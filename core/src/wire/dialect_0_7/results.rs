//! Results of dialect 0.7: unpaged lists, schemas for tools and prompts, structured values inside the content.

use serde_json::{Map, Value, json, value::RawValue};

use super::faults::inexpressible;
use crate::protocol::{
    ContentBlock, ErrorObject, Prompt, PromptMessage, Raw, Resource, ResourceContents,
    ResourceTemplate, Response, ServerDescription, Tool, ToolOutcome,
    json::{self, ObjectWriter, to_raw},
};

/// Returns the answer to `initialize` with the negotiated version.
pub fn introduction(version: &str, server: &ServerDescription) -> Raw {
    let can = &server.capabilities;
    let components = [
        ("tools", can.tools.is_some()),
        ("resources", can.resources.is_some()),
        ("prompts", can.prompts.is_some()),
    ];
    let capabilities: Map<String, Value> = components
        .into_iter()
        .filter(|(_, offered)| *offered)
        .map(|(name, _)| (name.to_owned(), json!({})))
        .collect();
    to_raw(&json!({ "version": version, "capabilities": capabilities }))
}

/// Returns the result, or the error for content that the dialect can't express.
pub(in crate::wire) fn lower(response: &Response) -> Result<String, ErrorObject> {
    Ok(match response {
        Response::Tools(list) => listed("tools", list.items.iter().map(|entry| tool(entry))),
        Response::Prompts(list) => listed("prompts", list.items.iter().map(|entry| prompt(entry))),
        Response::AllResources { resources, templates } => listed(
            "resources",
            resources
                .iter()
                .map(|entry| resource(entry))
                .chain(templates.iter().map(|entry| template(entry))),
        ),
        Response::Tool(outcome) => called(outcome),
        Response::Contents { contents, meta, .. } => read(contents, meta.as_ref())?,
        Response::Messages { messages, .. } => rendered(messages)?,
        Response::Raw(raw) => raw.get().to_owned(),
        // The dialect has no other requests.
        _ => "{}".to_owned(),
    })
}

fn listed(name: &str, items: impl Iterator<Item = Value>) -> String {
    let items: Vec<_> = items.collect();
    json!({ name: items }).to_string()
}

fn tool(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description.as_deref().unwrap_or_default(),
        "arguments": tool.input_schema,
    })
}

fn prompt(prompt: &Prompt) -> Value {
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let properties: Map<String, Value> = arguments
        .iter()
        .map(|argument| {
            let mut property = json!({"type": "string"});
            if let Some(description) = &argument.description {
                property["description"] = description.as_str().into();
            }
            (argument.name.clone(), property)
        })
        .collect();
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.required == Some(true))
        .map(|argument| &*argument.name)
        .collect();
    json!({
        "name": prompt.name,
        "description": prompt.description.as_deref().unwrap_or_default(),
        "arguments": {"type": "object", "properties": properties, "required": required},
    })
}

fn resource(it: &Resource) -> Value {
    readable(&it.uri, &it.name, it.description.as_deref(), it.mime_type.as_deref())
}

fn template(it: &ResourceTemplate) -> Value {
    readable(&it.uri_template, &it.name, it.description.as_deref(), it.mime_type.as_deref())
}

fn readable(uri: &str, name: &str, description: Option<&str>, mime_type: Option<&str>) -> Value {
    let mut listed = json!({
        "uri": uri, "name": name, "description": description.unwrap_or_default(),
    });
    if let Some(mime_type) = mime_type {
        listed["mimeType"] = mime_type.into();
    }
    listed
}

/// Replaces the text that mirrors a structured value by the value; other text stays text.
fn called(outcome: &ToolOutcome) -> String {
    let structured = outcome.structured.as_ref().map(|structured| structured.json.as_str());
    let structured = structured.filter(|json| !json.starts_with('"'));
    let mut result = ObjectWriter::with_capacity(outcome.content.len() + 64);
    match structured {
        None => result.raw("content", &outcome.content),
        Some(value) => {
            let blocks: Vec<&RawValue> = serde_json::from_str(&outcome.content).unwrap_or_default();
            let others = match blocks.as_slice() {
                [only] if repeats(only, value) => &[],
                blocks => blocks,
            };
            let mut item = ObjectWriter::with_capacity(value.len() + 32);
            item.raw("type", r#""json""#).raw("json", value);
            let item = json::raw(item.finish());
            let content: Vec<&RawValue> = others.iter().copied().chain([&*item]).collect();
            result.member("content", &content)
        }
    };
    result.member("isError", &outcome.is_error);
    result.finish()
}

fn repeats(block: &RawValue, value: &str) -> bool {
    serde_json::from_str::<ContentBlock>(block.get())
        .is_ok_and(|block| block.as_text().is_some_and(|text| text == value))
}

fn read(contents: &str, own_meta: Option<&Raw>) -> Result<String, ErrorObject> {
    let parts: Vec<ResourceContents> = serde_json::from_str(contents).unwrap_or_default();
    let mut meta = ObjectWriter::with_capacity(64);
    if let Some(ResourceContents::Text(first)) = parts.first() {
        meta.member("uri", &first.uri);
        if let Some(mime_type) = &first.mime_type {
            meta.member("mimeType", mime_type);
        }
    }
    if let Some(own) = own_meta {
        meta.splice(own.get());
    }
    let texts = parts.iter().map(|part| match part {
        ResourceContents::Text(text) => Ok(json!({"type": "text", "text": text.text})),
        ResourceContents::Blob(blob) => Err(inexpressible(&blob.uri, "blob")),
    });
    let content = texts.collect::<Result<Vec<_>, _>>()?;
    let mut result = ObjectWriter::with_capacity(contents.len() + 64);
    result.member("content", &content).raw("isError", "false").raw("meta", &meta.finish());
    Ok(result.finish())
}

fn rendered(messages: &str) -> Result<String, ErrorObject> {
    let messages: Vec<PromptMessage> = serde_json::from_str(messages).unwrap_or_default();
    let texts = messages.iter().map(|message| match &message.content {
        ContentBlock::Text(text) => Ok(text.text.clone()),
        ContentBlock::ResourceLink(link) => Ok(format!("{}: {}", link.name, link.uri)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(text) => Ok(text.text.clone()),
            ResourceContents::Blob(_) => Err("blob".to_owned()),
        },
        other => {
            let block = serde_json::to_value(other).unwrap_or_default();
            Err(block["type"].as_str().unwrap_or_default().to_owned())
        }
    });
    let texts =
        texts.collect::<Result<Vec<_>, _>>().map_err(|kind| inexpressible("the prompt", &kind))?;
    Ok(json!({ "content": texts.join("\n"), "isError": false }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Structured;

    fn outcome(content: &str, structured: Option<&str>) -> Value {
        let structured = structured
            .map(|json| Structured { json: json.to_owned(), schema_is_object: Some(false) });
        let outcome = ToolOutcome { content: content.into(), structured, ..ToolOutcome::default() };
        serde_json::from_str(&called(&outcome)).expect("JSON")
    }

    #[test]
    fn a_structured_value_is_one_json_item() {
        assert_eq!(
            outcome(r#"[{"type":"text","text":"{\"a\":1}"}]"#, Some(r#"{"a":1}"#)),
            json!({"content": [{"type": "json", "json": {"a": 1}}], "isError": false})
        );
        assert_eq!(
            outcome(r#"[{"type":"text","text":"see:"}]"#, Some("[1]")),
            json!({"content": [{"type": "text", "text": "see:"}, {"type": "json", "json": [1]}], "isError": false})
        );
        assert_eq!(
            outcome(r#"[{"type":"text","text":"hi"}]"#, Some(r#""hi""#)),
            json!({"content": [{"type": "text", "text": "hi"}], "isError": false})
        );
    }

    #[test]
    fn content_of_any_type_passes_through() {
        let custom = r#"[{"type":"custom-type","data":{"x":[1]}}]"#;
        assert_eq!(
            outcome(custom, None)["content"],
            serde_json::from_str::<Value>(custom).expect("JSON")
        );
    }

    #[test]
    fn what_is_no_text_can_not_be_said() {
        let blob = r#"[{"uri":"a://b","blob":"AA=="}]"#;
        assert_eq!(read(blob, None).expect_err("bytes").code, 5001);
        let image =
            r#"[{"role":"user","content":{"type":"image","data":"AA==","mimeType":"image/png"}}]"#;
        let error = rendered(image).expect_err("an image");
        assert_eq!((error.code, error.message.contains("\"image\"")), (5001, true));
        let two = r#"[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":{"type":"text","text":"b"}}]"#;
        assert_eq!(rendered(two).expect("texts"), r#"{"content":"a\nb","isError":false}"#);
    }
}
