//! Opens the user's browser.

use std::process::{Command, Stdio};

/// Opens a URL, which is `https` or on this machine. The error does not show the URL.
pub fn open(url: &str) -> Result<(), String> {
    let (program, arguments): (_, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        // `start` would read the URL as a command line.
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(mut child) => {
            // Nobody else collects the exit status.
            std::thread::spawn(move || drop(child.wait()));
            Ok(())
        }
        Err(error) => Err(format!("{program}: {error}")),
    }
}
