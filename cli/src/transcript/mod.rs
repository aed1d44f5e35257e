//! Transcripts: the messages of sessions as JSON lines. `docs/command-line.md` describes the format.

mod clock;
mod recorder;

use std::{path::Path, time::SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::recorder::{Recorded, Recorder};
use crate::{
    failure::{Failure, FailureKind},
    files::read,
    target::Target,
};

/// The version of the format.
const VERSION: u32 = 1;

/// The first line of each recording in a file.
#[derive(Debug, Deserialize, Serialize)]
struct Header {
    /// The version of the format.
    transcript: u32,
    /// The program that recorded, with its version.
    #[serde(default)]
    program: String,
    /// The time of the first line, in UTC.
    #[serde(default)]
    started: String,
    /// The server, without arguments and without parts of a URL that may be secret.
    #[serde(default)]
    target: String,
}

/// A message, as a line of the file.
#[derive(Debug, Deserialize, Serialize)]
struct Line<'a> {
    /// Seconds since the header's time.
    #[serde(default)]
    time: f64,
    from: Side,
    /// The number of the connection, over HTTP.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    connection: u32,
    /// The message; absent if what was sent is not JSON.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
    /// The text that was sent, if it is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Client,
    Server,
}

/// A recorded message.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The line in the file, from 1 on.
    pub line: usize,
    pub from: Side,
    pub message: Box<RawValue>,
}

/// Returns the first line of a transcript that begins at a time, with its line end.
pub fn first_line(started: SystemTime, target: Option<&Target>) -> String {
    let header = Header {
        transcript: VERSION,
        program: concat!("gudgeon ", env!("CARGO_PKG_VERSION")).to_owned(),
        started: clock::utc(started),
        target: target.map(public_name).unwrap_or_default(),
    };
    // A header consists of numbers and strings, which JSON can express.
    let text = serde_json::to_string(&header).unwrap_or_default();
    format!("{text}\n")
}

/// Reads a file; returns the messages of each connection. Errors name the line.
pub fn read(path: &Path) -> Result<Vec<Vec<Entry>>, Failure> {
    let shown = path.display();
    let text = read::text_file(path, read::MAX_TRANSCRIPT).map_err(|error| {
        Failure::new(FailureKind::File, format!("{shown} can't be read: {error}"))
    })?;
    let broken = |line: usize, why: String| {
        Failure::new(FailureKind::File, format!("{shown}, line {line}: {why}"))
            .with_hint("record it again with `gudgeon record`, or correct the line")
    };
    let mut connections: Vec<Vec<Entry>> = Vec::new();
    // The connections of earlier recordings in the file.
    let mut earlier = 0;
    let mut has_header = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.trim().is_empty() {
            continue;
        }
        if let Ok(header) = serde_json::from_str::<Header>(line) {
            if header.transcript != VERSION {
                let why = format!("version {} of the format is not known", header.transcript);
                return Err(broken(number, why));
            }
            has_header = true;
            earlier = connections.len();
            continue;
        }
        if !has_header {
            let why = "this is not a transcript: its first line is not a header".into();
            return Err(broken(number, why));
        }
        let line: Line<'_> =
            serde_json::from_str(line).map_err(|error| broken(number, without_place(&error)))?;
        // Lines that are not JSON are for readers of the file only.
        let Some(message) = line.message else { continue };
        let connection = earlier + usize::try_from(line.connection.max(1)).unwrap_or(1) - 1;
        if connection > connections.len() {
            return Err(broken(number, format!("connection {} is not the next", line.connection)));
        }
        if connection == connections.len() {
            connections.push(Vec::new());
        }
        let entry = Entry { line: number, from: line.from, message: message.to_owned() };
        connections[connection].push(entry);
    }
    if connections.is_empty() {
        let message = format!("{shown} has no messages");
        return Err(Failure::new(FailureKind::File, message));
    }
    Ok(connections)
}

/// Returns an error of a line without its own line number, which is always 1.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let column = error.column();
    match text.split_once(" at line 1 column") {
        Some((what, _)) => format!("{what} at column {column}"),
        None => text,
    }
}

/// Returns the name of a target without anything that may be secret.
pub fn public_name(target: &Target) -> String {
    match target {
        Target::Url(url) => {
            let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        Target::Command(words) => {
            words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
        }
        Target::File(_) | Target::Connection(_) | Target::Configured(_) => target.to_string(),
    }
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_target_has_no_secrets() {
        let url = Target::Url("https://ada:s3cret@example.org/mcp?key=s3cret#x".into());
        assert_eq!(public_name(&url), "https://example.org/mcp");
        let command = Target::Command(["npx", "server", "--token=s3cret"].map(Into::into).into());
        assert_eq!(public_name(&command), "npx");
    }
}
