//! What tools return beside plain values: pictures, sounds, and JSON by its own name.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::protocol::{AudioContent, ContentBlock, EmbeddedResource, ImageContent, Resource};

/// Bytes of a picture (Tools, "Image Content").
///
/// ```
/// # use gudgeon::{Image, Server};
/// let server = Server::new("camera").tool("photo", || async { Image::png([0x89, b'P', b'N', b'G']) });
/// ```
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Vec<u8>,
    mime_type: String,
}

/// Bytes of a sound (Tools, "Audio Content").
#[derive(Clone, Debug)]
pub struct Audio {
    bytes: Vec<u8>,
    mime_type: String,
}

/// A value that is returned as JSON, where a handler can't fail and so returns no `Result`.
///
/// ```
/// # use gudgeon::{Json, Server};
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Shelf {
///     books: u32,
/// }
///
/// let server = Server::new("shelf").tool("count", || async { Json(Shelf { books: 3 }) });
/// ```
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

impl Image {
    /// Bytes of this media type.
    pub fn new(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self { bytes: bytes.into(), mime_type: mime_type.into() }
    }

    /// A PNG.
    pub fn png(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "image/png")
    }

    /// A JPEG.
    pub fn jpeg(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "image/jpeg")
    }
}

impl Audio {
    /// Bytes of this media type.
    pub fn new(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self { bytes: bytes.into(), mime_type: mime_type.into() }
    }

    /// A WAV.
    pub fn wav(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "audio/wav")
    }
}

impl From<Image> for ContentBlock {
    fn from(image: Image) -> Self {
        Self::image(STANDARD.encode(image.bytes), image.mime_type)
    }
}

impl From<Audio> for ContentBlock {
    fn from(audio: Audio) -> Self {
        Self::audio(STANDARD.encode(audio.bytes), audio.mime_type)
    }
}

impl From<ImageContent> for ContentBlock {
    fn from(content: ImageContent) -> Self {
        Self::Image(content)
    }
}

impl From<AudioContent> for ContentBlock {
    fn from(content: AudioContent) -> Self {
        Self::Audio(content)
    }
}

impl From<EmbeddedResource> for ContentBlock {
    fn from(resource: EmbeddedResource) -> Self {
        Self::Resource(resource)
    }
}

/// A link to it.
impl From<Resource> for ContentBlock {
    fn from(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }
}

/// So that lists of it are values that a tool returns; its schema is never asked for.
impl JsonSchema for ContentBlock {
    fn schema_name() -> Cow<'static, str> {
        "ContentBlock".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]})
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}
