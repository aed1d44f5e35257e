//! Content types that tools can return: images, audio, files, and JSON values.

use std::{borrow::Cow, io, path::Path, string::FromUtf8Error};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::protocol::{
    BlobResourceContents, ContentBlock, EmbeddedResource, Resource, ResourceContents,
    TextResourceContents, file_uri::file_uri,
};

/// An image (Tools, "Image Content").
///
/// ```
/// # use gudgeon::{Image, Server};
/// let png = [0x89, b'P', b'N', b'G'];
/// let server = Server::new("camera").tool("photo", move || async move {
///     Image { bytes: png.into(), mime_type: "image/png".into() }
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Image {
    pub bytes: Vec<u8>,
    /// The media type, such as `image/png`.
    pub mime_type: String,
}

/// Audio (Tools, "Audio Content").
#[derive(Clone, Debug)]
pub struct Audio {
    pub bytes: Vec<u8>,
    /// The media type, such as `audio/wav`.
    pub mime_type: String,
}

/// A file as an embedded resource: text if it is UTF-8 and has a textual media type, otherwise bytes (Tools,
/// "Embedded Resources").
///
/// ```
/// # use gudgeon::{File, Server, ToolError};
/// async fn notes() -> Result<File, ToolError> {
///     Ok(File::read("notes.md")?)
/// }
///
/// let server = Server::new("shelf").tool("notes", notes);
/// ```
#[derive(Clone, Debug)]
pub struct File {
    /// The `file:` URI.
    pub uri: String,
    /// The media type; `None` if it is unknown: then UTF-8 is `text/plain`, and other bytes are
    /// `application/octet-stream`.
    pub mime_type: Option<String>,
    pub bytes: Vec<u8>,
}

/// A wrapper that returns a value as JSON from a handler that can't fail and therefore returns no `Result`.
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

impl File {
    /// Reads a file. The media type follows from the suffix. Errors if the file can't be read.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path)?;
        let mime_type =
            path.extension().and_then(|extension| extension.to_str()).and_then(media_type);
        let uri = file_uri(&std::path::absolute(path)?);
        Ok(Self { uri, mime_type: mime_type.map(ToOwned::to_owned), bytes })
    }
}

impl From<File> for EmbeddedResource {
    fn from(File { uri, mime_type, bytes }: File) -> Self {
        let is_textual = mime_type.as_deref().is_none_or(|mime_type| {
            let structured = ["json", "xml", "yaml", "javascript", "toml"];
            mime_type.starts_with("text/") || structured.iter().any(|end| mime_type.ends_with(end))
        });
        let text = match is_textual {
            true => String::from_utf8(bytes).map_err(FromUtf8Error::into_bytes),
            false => Err(bytes),
        };
        let resource = match text {
            Ok(text) => ResourceContents::Text(TextResourceContents {
                uri,
                mime_type: mime_type.or_else(|| Some("text/plain".into())),
                text,
                meta: None,
            }),
            Err(bytes) => ResourceContents::Blob(BlobResourceContents {
                uri,
                mime_type: mime_type.or_else(|| Some("application/octet-stream".into())),
                blob: STANDARD.encode(bytes),
                meta: None,
            }),
        };
        Self { resource, annotations: None, meta: None }
    }
}

impl From<File> for ContentBlock {
    fn from(file: File) -> Self {
        Self::Resource(file.into())
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

impl From<EmbeddedResource> for ContentBlock {
    fn from(resource: EmbeddedResource) -> Self {
        Self::Resource(resource)
    }
}

/// A link to the resource.
impl From<Resource> for ContentBlock {
    fn from(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }
}

/// Required for lists of content as a return type; the schema itself is never used.
impl JsonSchema for ContentBlock {
    fn schema_name() -> Cow<'static, str> {
        "ContentBlock".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]})
    }
}

fn media_type(suffix: &str) -> Option<&'static str> {
    Some(match suffix.to_ascii_lowercase().as_str() {
        "txt" | "log" | "text" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "py" => "text/x-python",
        "rs" => "text/x-rust",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    fn embedded(name: &str, bytes: &[u8]) -> serde_json::Value {
        let folder = format!("gudgeon content {} {name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let block = ContentBlock::from(File::read(&path).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        serde_json::to_value(block).unwrap()
    }

    #[test]
    fn a_file_is_text_where_it_is_textual_and_bytes_elsewhere() {
        let text = embedded("a note.md", "# Tr\u{e4}ume".as_bytes());
        assert_eq!(text["type"], "resource");
        assert_eq!(text["resource"]["mimeType"], "text/markdown");
        assert_eq!(text["resource"]["text"], "# Tr\u{e4}ume");
        let uri = text["resource"]["uri"].as_str().unwrap();
        assert!(uri.starts_with("file:///") && uri.ends_with("/a%20note.md"), "{uri}");
        let bytes = embedded("pixel.PNG", &[0x89, b'P']);
        assert_eq!(
            (&bytes["resource"]["mimeType"], &bytes["resource"]["blob"]),
            (&"image/png".into(), &"iVA=".into())
        );
        let plain = embedded("README", b"text");
        assert_eq!(
            (&plain["resource"]["mimeType"], &plain["resource"]["text"]),
            (&"text/plain".into(), &"text".into())
        );
        let binary = embedded("core", &[0xff, 0xfe]);
        assert_eq!(binary["resource"]["mimeType"], "application/octet-stream");
        let broken = embedded("broken.txt", &[0xff]);
        assert_eq!(
            (&broken["resource"]["mimeType"], &broken["resource"]["blob"]),
            (&"text/plain".into(), &"/w==".into())
        );
    }

    #[test]
    fn a_file_that_is_not_there_says_so() {
        assert_eq!(File::read("no such file").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
