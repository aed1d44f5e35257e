//! Opens the user's browser.

use std::{
    env,
    process::{Command, Stdio},
    thread,
};

use gudgeon::bindings::open_browser;

/// Opens a URL with the program in the variable `BROWSER`, or else with the system's browser. The error does not show the
/// URL, which may have a token.
pub fn open(url: &str) -> Result<(), String> {
    let Some(program) = env::var_os("BROWSER").filter(|it| !it.is_empty()) else {
        return open_browser(url);
    };
    let mut command = Command::new(&program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child =
        command.spawn().map_err(|it| format!("BROWSER={}: {it}", program.to_string_lossy()))?;
    // Nobody else collects the exit status.
    thread::spawn(move || drop(child.wait()));
    Ok(())
}
