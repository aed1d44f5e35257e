//! Tools, resources, templates, prompts and content, reduced to what a revision defines.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{StructuredContent, Wire};
use crate::protocol::{
    ContentBlock, Implementation, Prompt, Raw, Resource, ResourceTemplate, ServerCapabilities,
    Tool,
    json::{from_value, to_raw},
};

/// Removes the shared members that a revision does not define.
macro_rules! leave_out {
    ($wire:ident, $lowered:ident) => {
        if !$wire.vocabulary.titles {
            $lowered.title = None;
            $lowered.meta = None;
        }
        if !$wire.vocabulary.icons {
            $lowered.icons = None;
        }
    };
}

pub(super) fn tool(wire: &Wire, tool: &Tool) -> Tool {
    let says = &wire.vocabulary;
    let mut lowered = tool.clone();
    leave_out!(wire, lowered);
    if !says.icons {
        lowered.execution = None;
    }
    if !says.tool_annotations {
        lowered.annotations = None;
    }
    match says.structured_content {
        StructuredContent::Any => (),
        StructuredContent::Absent => lowered.output_schema = None,
        StructuredContent::Object => {
            if let Some(schema) = lowered.output_schema.take() {
                lowered.output_schema = Some(match describes_object(&schema) {
                    true => schema,
                    false => wrapped_schema(&schema),
                });
            }
        }
    }
    lowered
}

pub(super) fn resource(wire: &Wire, resource: &Resource) -> Resource {
    let mut lowered = resource.clone();
    leave_out!(wire, lowered);
    lowered
}

pub(super) fn template(wire: &Wire, template: &ResourceTemplate) -> ResourceTemplate {
    let mut lowered = template.clone();
    leave_out!(wire, lowered);
    lowered
}

pub(super) fn prompt(wire: &Wire, prompt: &Prompt) -> Prompt {
    let mut lowered = prompt.clone();
    leave_out!(wire, lowered);
    if !wire.vocabulary.titles {
        lowered.arguments.iter_mut().flatten().for_each(|argument| argument.title = None);
    }
    lowered
}

pub(super) fn implementation(wire: &Wire, info: &Implementation) -> Implementation {
    let mut lowered = info.clone();
    if !wire.vocabulary.titles {
        lowered.title = None;
    }
    if !wire.vocabulary.icons {
        lowered.icons = None;
        lowered.description = None;
        lowered.website_url = None;
    }
    lowered
}

pub(super) fn capabilities(wire: &Wire, capabilities: &ServerCapabilities) -> ServerCapabilities {
    let mut lowered = capabilities.clone();
    if !wire.vocabulary.completions_capability {
        lowered.completions = None;
    }
    lowered
}

/// Converts a JSON array of content blocks, or of messages that hold one block each.
///
/// Block types that a revision lacks are converted: audio becomes an embedded resource, a link becomes text. Unknown
/// types pass through unchanged.
pub(super) fn content<'a>(wire: &Wire, blocks: &'a str) -> Cow<'a, str> {
    let lacks = (!wire.vocabulary.audio && blocks.contains(r#""audio""#))
        || (!wire.vocabulary.resource_links && blocks.contains(r#""resource_link""#));
    if !lacks {
        return Cow::Borrowed(blocks);
    }
    let Ok(mut values) = serde_json::from_str::<Vec<Value>>(blocks) else {
        return Cow::Borrowed(blocks);
    };
    for value in &mut values {
        match value.get_mut("content") {
            Some(inner) if inner.is_object() => lower_block(wire, inner),
            _ => lower_block(wire, value),
        }
    }
    Cow::Owned(Value::Array(values).to_string())
}

fn lower_block(wire: &Wire, block: &mut Value) {
    let Ok(known) = from_value::<ContentBlock>(block) else { return };
    match known {
        ContentBlock::Audio(audio) if !wire.vocabulary.audio => {
            *block = json!({"type": "resource", "resource": {
                "uri": "embedded:audio", "mimeType": audio.mime_type, "blob": audio.data,
            }});
        }
        ContentBlock::ResourceLink(link) if !wire.vocabulary.resource_links => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            *block = json!({"type": "text", "text": format!("{name}: {}", link.uri)});
        }
        _ => (),
    }
}

/// Returns `true` if a schema requires objects.
pub fn describes_object(schema: &Raw) -> bool {
    #[derive(serde::Deserialize)]
    struct Type {
        r#type: Option<Value>,
    }
    serde_json::from_str::<Type>(schema.get())
        .is_ok_and(|schema| schema.r#type.is_some_and(|kind| kind == "object"))
}

/// Marks of an output schema whose values are wrapped: ours, and the one that `FastMCP`'s client knows.
const WRAPPED: [&str; 2] = ["x-gudgeon-wrapped", "x-fastmcp-wrap-result"];

/// Wraps the schema of a non-object in `{"result": …}` and marks it, so that clients unwrap the value.
pub(super) fn wrapped_schema(schema: &Raw) -> Raw {
    let mut inner: Value = serde_json::from_str(schema.get()).unwrap_or(Value::Bool(true));
    let mut outer = json!({ "type": "object", "properties": {}, "required": ["result"] });
    if let Some(inner) = inner.as_object_mut() {
        for key in ["$schema", "$defs", "definitions"] {
            if let Some(value) = inner.remove(key) {
                outer[key] = value;
            }
        }
    }
    rebase(&mut inner);
    outer["properties"]["result"] = inner;
    for mark in WRAPPED {
        outer[mark] = Value::Bool(true);
    }
    to_raw(&outer)
}

/// Moves references to the schema root one level down; references to definitions stay valid, because those are moved
/// too.
fn rebase(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get_mut("$ref")
                && let Some(rest) = target.strip_prefix('#')
                && !rest.starts_with("/$defs/")
                && !rest.starts_with("/definitions/")
                && (rest.is_empty() || rest.starts_with('/'))
            {
                *target = format!("#/properties/result{rest}");
            }
            members.values_mut().for_each(rebase);
        }
        Value::Array(items) => items.iter_mut().for_each(rebase),
        _ => (),
    }
}
