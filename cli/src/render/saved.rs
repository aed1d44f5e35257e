//! Files with the content of results. They never replace a file.

use std::{
    ffi::OsStr,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    failure::{Failure, FailureKind},
    files::{self, IfMissing, write::USUAL},
};

/// The most characters of a file's name, without its suffix.
const NAME: usize = 60;

/// Writes a file into the folder, which is created; returns its path.
pub fn write(folder: &Path, name: &str, mime_type: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error: &io::Error| {
        Failure::new(FailureKind::File, format!("{}: {error}", path.display()))
    };
    let opened = files::folder(folder, IfMissing::Make).map_err(|error| failed(folder, &error))?;
    let (stem, suffix) = file_name(name, mime_type);
    for number in 1_u32.. {
        let name = match number {
            1 => format!("{stem}.{suffix}"),
            _ => format!("{stem}-{number}.{suffix}"),
        };
        let path = folder.join(&name);
        match opened.create(OsStr::new(&name), USUAL) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|error| failed(&path, &error))?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(failed(&path, &error)),
        }
    }
    Err(Failure::new(FailureKind::File, format!("{}: too many files", folder.display())))
}

/// Returns the name and suffix for a tool's name or a URI, which the server chooses: only letters, digits, `-` and `_`
/// are left of it.
fn file_name(name: &str, mime_type: &str) -> (String, String) {
    let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let last = last.split(['?', '#']).next().unwrap_or_default();
    let (stem, own_suffix) = match last.rsplit_once('.') {
        Some((stem, suffix)) if is_suffix(suffix) => (stem, Some(suffix)),
        _ => (last, None),
    };
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' }
    };
    let stem: String = stem.chars().map(plain).take(NAME).collect();
    // A program would take the name for an option, and Windows for a device.
    let stem = stem.trim_start_matches('-');
    let stem = match stem.trim_matches('_') {
        "" => "content".to_owned(),
        name if is_device(name) => format!("{name}_"),
        _ => stem.to_owned(),
    };
    let suffix = own_suffix.map_or_else(|| suffix_of(mime_type), ToOwned::to_owned);
    (stem, suffix)
}

/// Returns whether Windows has a device of this name, whatever its suffix is.
fn is_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let port = name.strip_prefix("com").or_else(|| name.strip_prefix("lpt"));
    matches!(&*name, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || port.is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
}

fn is_suffix(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the usual suffix for a media type: the subtype, unless that is another word.
fn suffix_of(mime_type: &str) -> String {
    let mime_type = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = mime_type.split('/').nth(1).unwrap_or_default();
    let suffix = match subtype {
        "jpeg" => "jpg",
        "svg+xml" => "svg",
        "mpeg" if mime_type.starts_with("audio") => "mp3",
        "plain" => "txt",
        "x-wav" | "wave" => "wav",
        other if is_suffix(other) => other,
        _ => "bin",
    };
    suffix.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder() {
        for (name, mime_type, expected) in [
            ("chart", "image/png", "chart.png"),
            ("shelf://covers/42.jpeg?size=2", "image/jpeg", "42.jpeg"),
            ("../../etc/passwd", "text/plain", "passwd.txt"),
            ("..", "image/jpeg", "content.jpg"),
            ("a\\b\x1b[2J", "application/x-made-up+thing", "a_b__2J.bin"),
            ("", "audio/mpeg", "content.mp3"),
            ("photo.tar/", "image/webp; q=1", "photo.tar"),
            ("-rf.bin", "image/png", "rf.bin"),
            ("--", "image/png", "content.png"),
            ("CON.txt", "text/plain", "CON_.txt"),
            ("_nul_.txt", "text/plain", "nul_.txt"),
            ("lpt1", "text/plain", "lpt1_.txt"),
            ("com10", "text/plain", "com10.txt"),
        ] {
            let (stem, suffix) = file_name(name, mime_type);
            assert_eq!(format!("{stem}.{suffix}"), expected, "{name}");
        }
    }
}
