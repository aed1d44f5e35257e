//! Bold text on terminals that want it.

use std::env;

use crate::output;

/// Returns a heading for standard output: bold on a terminal, unless `NO_COLOR` is set.
pub fn heading(text: &str) -> String {
    match has_styles() {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

fn has_styles() -> bool {
    output::is_terminal()
        && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}
