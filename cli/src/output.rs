//! Standard output.

use std::{
    fmt::Display,
    io::{self, IsTerminal as _, Write as _},
    process,
};

use serde::Serialize;

use crate::{escape, failure::Failure, json_text};

/// The exit code of a program that is killed by SIGPIPE, as shells expect it.
const BROKEN_PIPE: i32 = 141;
/// The number of characters that are shown of a line that is not a message.
const MAX_STRAY: usize = 200;

/// Writes a line. Where the reader of the output has gone, as in `gudgeon list … | head -1`, the program ends without a
/// message.
pub fn line(text: impl Display) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    checked(writeln!(output, "{text}").and_then(|()| output.flush()))
}

/// Writes a string from the server and a newline. On a terminal control characters are spelled out.
pub fn text(text: &str) -> Result<(), Failure> {
    match is_terminal() {
        true => line(escape::lines(text)),
        false => line(text),
    }
}

/// Writes bytes as they are.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    checked(output.write_all(bytes).and_then(|()| output.flush()))
}

/// Writes a value as JSON, on several lines.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    raw_json(&serde_json::to_string(value).map_err(io::Error::other)?)
}

/// Writes JSON on several lines.
pub fn raw_json(json: &str) -> Result<(), Failure> {
    let json = json_text::pretty(json);
    match is_terminal() {
        true => line(json_text::for_terminal(&json)),
        false => line(json),
    }
}

/// Writes a value as JSON on one line.
pub fn json_line(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(value).map_err(io::Error::other)?;
    match is_terminal() {
        true => line(json_text::for_terminal(&json)),
        false => line(json),
    }
}

/// Returns whether standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns the width of the terminal in columns; `None` if standard output is not a terminal.
pub fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0).max(1))
}

/// Writes a line to standard error, for the user. Control characters, such as those of a path, are spelled out.
pub fn note(text: impl Display) {
    let text = text.to_string();
    // Without a standard error there is no place for the message.
    let _ = writeln!(io::stderr().lock(), "{}", escape::lines(&text));
}

/// Tells the user of a line of a server that is not a message.
pub fn stray(server: &str, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let mut shown: String = text.chars().take(MAX_STRAY).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    note(format_args!(
        "{server} printed {shown:?}, which is not a message; over stdio a server must print to standard error"
    ));
}

fn checked(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(BROKEN_PIPE),
        written => Ok(written?),
    }
}

/// Writes bytes to standard error as they are.
pub fn raw_note(bytes: &[u8]) {
    let mut output = io::stderr().lock();
    let _ = output.write_all(bytes).and_then(|()| output.flush());
}
