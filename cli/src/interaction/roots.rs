//! Folders as roots.

use std::{fmt::Write as _, path};

use crate::failure::{Failure, FailureKind};

/// Returns the `file://` URI of a folder, which may be one already.
pub fn uri(folder: &str) -> Result<String, Failure> {
    if folder.starts_with("file://") {
        return Ok(folder.to_owned());
    }
    let path = path::absolute(folder)
        .ok()
        .filter(|path| path.is_dir())
        .ok_or_else(|| Failure::new(FailureKind::File, format!("--root: no folder {folder:?}")))?;
    let path = path.to_string_lossy().replace('\\', "/");
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'/' | b':' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            // Writing to a String never fails.
            byte => drop(write!(uri, "%{byte:02X}")),
        }
    }
    Ok(uri)
}
