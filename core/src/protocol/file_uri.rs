//! `file:` URIs.

use std::{fmt::Write as _, path::Path};

/// Returns `true` for a `file://` URI.
pub(crate) fn is_file_uri(uri: &str) -> bool {
    uri.get(..7).is_some_and(|prefix| prefix.eq_ignore_ascii_case("file://"))
}

/// Returns the `file://` URI of an absolute path.
pub(crate) fn file_uri(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                uri.push(char::from(byte));
            }
            // Writing to a String never fails.
            other => drop(write!(uri, "%{other:02X}")),
        }
    }
    uri
}
