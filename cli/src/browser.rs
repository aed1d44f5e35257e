//! Opens the user's browser.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use gudgeon::bindings::open_browser;

use crate::files;

/// A file that leads a browser to a URL. It is removed with this value.
#[derive(Debug)]
pub struct Redirect(PathBuf);

/// Opens a URL that must stay secret. Every user of the machine can read the arguments of the browser's process, so it gets a
/// file that only this user can read.
pub fn open_secret(url: &str) -> Result<Redirect, String> {
    let mut name = [0; 16];
    getrandom::fill(&mut name).map_err(|error| error.to_string())?;
    let name = name.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let path = env::temp_dir().join(format!("gudgeon-{name}.html"));
    let redirect = Redirect(path);
    files::write::private(&redirect.0, page(url).as_bytes())
        .map_err(|error| format!("{}: {error}", redirect.0.display()))?;
    open(&redirect.0.to_string_lossy())?;
    Ok(redirect)
}

fn page(url: &str) -> String {
    let url = url.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><title>Gudgeon</title><a href=\"{url}\">Open the page</a>\n"
    )
}

impl Drop for Redirect {
    fn drop(&mut self) {
        // It may have been removed with other temporary files.
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens a URL with the program in the variable `BROWSER`, or else with the system's browser. The error does not show the
/// URL, which may have a token.
pub fn open(url: &str) -> Result<(), String> {
    let Some(program) = env::var_os("BROWSER").filter(|program| !program.is_empty()) else {
        return open_browser(url);
    };
    let mut command = Command::new(&program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command
        .spawn()
        .map_err(|error| format!("BROWSER={}: {error}", program.to_string_lossy()))?;
    // Nobody else collects the exit status.
    thread::spawn(move || drop(child.wait()));
    Ok(())
}
