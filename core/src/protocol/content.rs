//! Content blocks of tool results, prompts and sampling messages.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Number;

use super::{Raw, Resource, ResourceContents, Role, base::even_null};

/// A content block (spec: Content).
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ContentBlock {
    Text(TextContent),
    Image(MediaContent),
    Audio(MediaContent),
    ResourceLink(Resource),
    Resource(EmbeddedResource),
    /// Allowed in sampling only.
    ToolUse(ToolUseContent),
    /// Allowed in sampling only.
    ToolResult(ToolResultContent),
    /// A block of a type unknown to this library, as received.
    #[serde(untagged)]
    Unknown(Raw),
}

/// Text (spec: Content).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct TextContent {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// An image or audio, in base64 (spec: Content).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct MediaContent {
    pub data: String,
    pub mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A resource with its contents (spec: Content).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct EmbeddedResource {
    pub resource: ResourceContents,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A model's request to call a tool (spec: Sampling).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ToolUseContent {
    pub id: String,
    pub name: String,
    pub input: Raw,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The result of a tool that a model called (spec: Sampling).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    pub tool_use_id: String,
    #[serde(deserialize_with = "leaves")]
    pub content: Vec<ContentBlock>,
    #[serde(default, deserialize_with = "even_null", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The audience, priority and age of a content block or resource (spec: Annotations).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// A number from 0 (optional) to 1 (required).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Number>,
    /// An ISO 8601 time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl ContentBlock {
    /// Creates an image; `data` is base64.
    #[cfg(feature = "server")]
    pub(crate) fn image(data: String, mime_type: String) -> Self {
        Self::Image(MediaContent { data, mime_type, ..MediaContent::default() })
    }

    /// Creates a sound; `data` is base64.
    #[cfg(feature = "server")]
    pub(crate) fn audio(data: String, mime_type: String) -> Self {
        Self::Audio(MediaContent { data, mime_type, ..MediaContent::default() })
    }

    /// Returns the text of a text block, `None` for other blocks.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    fn parse(raw: Raw, nested: bool) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(expecting = "a content block with a type")]
        struct Tag<'a> {
            #[serde(borrow, rename = "type")]
            name: Cow<'a, str>,
        }
        let json = raw.get();
        Ok(match &*serde_json::from_str::<Tag<'_>>(json)?.name {
            "text" => Self::Text(serde_json::from_str(json)?),
            "image" => Self::Image(serde_json::from_str(json)?),
            "audio" => Self::Audio(serde_json::from_str(json)?),
            "resource_link" => Self::ResourceLink(serde_json::from_str(json)?),
            "resource" => Self::Resource(serde_json::from_str(json)?),
            "tool_use" if !nested => Self::ToolUse(serde_json::from_str(json)?),
            "tool_result" if !nested => Self::ToolResult(serde_json::from_str(json)?),
            _ => Self::Unknown(raw),
        })
    }
}

/// A resource with its contents.
impl From<ResourceContents> for ContentBlock {
    fn from(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource { resource, annotations: None, meta: None })
    }
}

/// A text block.
impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::Text(TextContent { text, ..TextContent::default() })
    }
}

/// A text block.
impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Raw::deserialize(deserializer)?, false).map_err(D::Error::custom)
    }
}

/// Deserializes the content of a tool result, which can't hold further tool results; this bounds the recursion for
/// any input.
fn leaves<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentBlock>, D::Error> {
    let blocks = Vec::<Raw>::deserialize(deserializer)?;
    blocks
        .into_iter()
        .map(|block| ContentBlock::parse(block, true).map_err(D::Error::custom))
        .collect()
}
