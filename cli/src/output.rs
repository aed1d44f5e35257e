//! Standard output.

use std::{
    fmt::Display,
    io::{self, Write as _},
    process,
};

use serde::Serialize;

use crate::failure::Failure;

/// The exit code of a program that is killed by SIGPIPE, as shells expect it.
const BROKEN_PIPE: i32 = 141;

/// Writes a line. Where the reader of the output has gone, as in `gudgeon list … | head -1`, the program ends without a
/// message.
pub fn line(text: impl Display) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    checked(writeln!(output, "{text}").and_then(|()| output.flush()))
}

/// Writes a value as JSON, on several lines.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(io::Error::other)?)
}

fn checked(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(BROKEN_PIPE),
        written => Ok(written?),
    }
}

/// Writes a line to standard error. Without a standard error nothing can be told.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes bytes to standard error as they are.
pub fn raw_note(bytes: &[u8]) {
    let mut output = io::stderr().lock();
    let _ = output.write_all(bytes).and_then(|()| output.flush());
}
