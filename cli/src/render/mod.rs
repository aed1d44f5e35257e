//! Content of a server, for people: text as it is, images in terminals that can show them, files where they are saved.

mod images;
mod saved;
pub mod table;

use std::path::PathBuf;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use clap::Args;
use gudgeon::{
    client::OperationReply,
    protocol::{BlobResourceContents, CallToolResult, ContentBlock, Resource, ResourceContents},
};
use serde::Serialize;

use crate::{escape, failure::Failure, json_text, output};

/// The place for images, audio and other files.
#[derive(Args, Clone, Debug)]
pub struct RenderArguments {
    /// Save images, audio and binary resources as files in this folder
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
}

impl RenderArguments {
    pub fn saves(&self) -> bool {
        self.save.is_some()
    }
}

/// Shows the content blocks of one result.
pub struct Renderer<'a> {
    arguments: &'a RenderArguments,
    /// The beginning of the names of files.
    name: &'a str,
    is_terminal: bool,
}

/// A binary value.
struct Media<'a> {
    kind: &'a str,
    mime_type: &'a str,
    name: &'a str,
    base64: &'a str,
}

impl<'a> Renderer<'a> {
    /// Returns a renderer whose files are named after the tool, prompt or resource.
    pub fn new(arguments: &'a RenderArguments, name: &'a str) -> Self {
        Self { arguments, name, is_terminal: output::is_terminal() }
    }

    pub fn blocks(&self, blocks: &[ContentBlock]) -> Result<(), Failure> {
        blocks.iter().try_for_each(|block| self.block(block))
    }

    pub fn block(&self, block: &ContentBlock) -> Result<(), Failure> {
        match block {
            ContentBlock::Text(content) => output::text(&content.text),
            ContentBlock::Image(content) => self.media(&Media {
                kind: "image",
                mime_type: &content.mime_type,
                name: self.name,
                base64: &content.data,
            }),
            ContentBlock::Audio(content) => self.media(&Media {
                kind: "audio",
                mime_type: &content.mime_type,
                name: self.name,
                base64: &content.data,
            }),
            ContentBlock::ResourceLink(link) => output::text(&link_line(link)),
            ContentBlock::Resource(embedded) => self.contents(&embedded.resource),
            ContentBlock::Unknown(raw) => output::raw_json(raw.get()),
            other => output::json(other),
        }
    }

    /// Shows the contents of a resource; text is shown as it is.
    pub fn contents(&self, contents: &ResourceContents) -> Result<(), Failure> {
        match contents {
            ResourceContents::Text(content) => output::text(&content.text),
            ResourceContents::Blob(content) => self.blob(content),
        }
    }

    fn blob(&self, content: &BlobResourceContents) -> Result<(), Failure> {
        self.media(&Media {
            kind: "resource",
            mime_type: content.mime_type.as_deref().unwrap_or("application/octet-stream"),
            name: &content.uri,
            base64: &content.blob,
        })
    }

    fn media(&self, media: &Media<'_>) -> Result<(), Failure> {
        let Ok(bytes) = BASE64_STANDARD.decode(media.base64) else {
            return output::text(&format!("[{}, {}: invalid base64]", media.kind, media.mime_type));
        };
        let what = format!("{}, {}, {}", media.kind, media.mime_type, size(bytes.len()));
        if let Some(folder) = &self.arguments.save {
            let path = saved::write(folder, media.name, media.mime_type, &bytes)?;
            return output::text(&format!("[{what}: saved as {}]", path.display()));
        }
        if self.is_terminal
            && let Some(sequence) = images::sequence(&bytes)
        {
            output::bytes(sequence.as_bytes())?;
            return output::line("");
        }
        output::text(&format!("[{what}; --save FOLDER saves it]"))
    }
}

/// Returns whether texts say the same as structured data: one text with the JSON or string, or one text for each item.
pub fn is_mirror(texts: &[&str], data: &str) -> bool {
    let Ok(data) = serde_json::from_str::<serde_json::Value>(data) else { return false };
    let says = |text: &str, value: &serde_json::Value| {
        value.as_str() == Some(text)
            || serde_json::from_str::<serde_json::Value>(text).is_ok_and(|parsed| parsed == *value)
    };
    let items = data.as_array();
    match texts {
        [text] if says(text, &data) => true,
        texts => items.is_some_and(|items| {
            items.len() == texts.len()
                && !items.is_empty()
                && texts.iter().zip(items).all(|(text, item)| says(text, item))
        }),
    }
}

/// The part of a tool's result that says the same as another part, which is easier to read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Repeated {
    /// The texts, beside structured content that is an object or an array.
    Content,
    /// The structured content, beside a text that is its only value.
    StructuredContent,
}

impl Repeated {
    /// Returns the part of a tool's result that the other part repeats; `None` if they differ, or if there is only one.
    pub fn in_reply(reply: &OperationReply) -> Option<Self> {
        let result: CallToolResult = serde_json::from_str(reply.result.get()).ok()?;
        let structured = result.structured_content.as_ref()?.get();
        let data = reply.data().unwrap_or(structured);
        let texts: Vec<_> = result.content.iter().filter_map(ContentBlock::as_text).collect();
        let is_mirror = is_mirror(&texts, data) || is_mirror(&texts, structured);
        let is_nested = data.starts_with(['{', '[']);
        is_mirror.then_some(if is_nested { Self::Content } else { Self::StructuredContent })
    }
}

/// Returns blocks as lines, for an error.
pub fn error_text(blocks: &[ContentBlock]) -> String {
    let lines = blocks.iter().map(|block| match block {
        ContentBlock::Text(content) => content.text.clone(),
        ContentBlock::ResourceLink(link) => link_line(link),
        ContentBlock::Image(content) => format!("[image, {}]", content.mime_type),
        ContentBlock::Audio(content) => format!("[audio, {}]", content.mime_type),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(content) => content.text.clone(),
            ResourceContents::Blob(content) => format!("[resource {}]", content.uri),
        },
        ContentBlock::Unknown(raw) => json_text::pretty(raw.get()),
        other => serde_json::to_string(other).unwrap_or_default(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn link_line(link: &Resource) -> String {
    let mut text = format!("[link to resource {}", escape::one_line(&link.uri));
    let title = link.title.as_deref().unwrap_or(&link.name);
    if !title.is_empty() {
        text.push_str(", ");
        text.push_str(&escape::one_line(title));
    }
    if let Some(mime_type) = &link.mime_type {
        text.push_str(", ");
        text.push_str(&escape::one_line(mime_type));
    }
    if let Some(bytes) = link.size.and_then(|size| usize::try_from(size).ok()) {
        text.push_str(", ");
        text.push_str(&size(bytes));
    }
    text.push_str("; `gudgeon read` reads it]");
    text
}

/// Returns a number of bytes with its unit.
pub fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let float = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", float / 1024.0),
        _ => format!("{:.1} MiB", float / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use gudgeon::protocol::Raw;

    use super::*;

    #[test]
    fn texts_that_repeat_the_data_are_a_mirror() {
        for (texts, data) in [
            (&["3"][..], "3"),
            (&["hello"], r#""hello""#),
            (&[r#"{ "b": 1, "a": 2 }"#], r#"{"a":2,"b":1}"#),
            (&["1", "2"], "[1,2]"),
            (&["a", "b"], r#"["a","b"]"#),
        ] {
            assert!(is_mirror(texts, data), "{texts:?} {data}");
        }
        for (texts, data) in
            [(&["Three books"][..], "3"), (&[], "[]"), (&["1"], "[1,2]"), (&["3", "4"], "3")]
        {
            assert!(!is_mirror(texts, data), "{texts:?} {data}");
        }
    }

    #[test]
    fn a_part_is_repeated_that_another_says_better() {
        for (result, repeated) in [
            (
                r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}"#,
                Some(Repeated::Content),
            ),
            (
                r#"{"content":[{"type":"text","text":"*a*"}],"structuredContent":"*a*"}"#,
                Some(Repeated::StructuredContent),
            ),
            (r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":1}}"#, None),
            (r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#, None),
            (r#"{"contents":[]}"#, None),
        ] {
            let result: Raw = serde_json::from_str(result).unwrap();
            assert_eq!(
                Repeated::in_reply(&OperationReply::from(result.clone())),
                repeated,
                "{result}"
            );
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(5), "5 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(16 * 1024 * 1024), "16.0 MiB");
    }
}
