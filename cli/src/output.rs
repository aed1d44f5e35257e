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

/// Writes a line to standard error, for the user.
pub fn note(text: impl Display) {
    // Without a standard error nothing can be told.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn checked(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(BROKEN_PIPE),
        written => Ok(written?),
    }
}
