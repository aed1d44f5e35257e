//! URL elicitation: the user is asked to visit a page.

use std::process::{Command, Stdio};

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{ElicitAction, ElicitRequestUrlParams, ElicitResult},
};

use super::terminal;
use crate::notices::Notices;

/// Shows the page's URL and opens it if the user wants that.
pub async fn offer(
    notices: &Notices,
    page: &ElicitRequestUrlParams,
) -> Result<ElicitResult, Error> {
    notices.line(&format!("The server asks you to visit a page: {}", page.message));
    notices.line(&format!("  {}", page.url));
    if !terminal::is_present(notices) {
        notices
            .line("declined, because no terminal is there to ask; run the command in a terminal");
        return Err(Error::new(ErrorKind::Declined, "no user is there to visit the page"));
    }
    notices.line(terminal::HELP);
    loop {
        let answer = terminal::ask(notices, "Open it in a browser? [y/n] ").await?;
        match answer.to_lowercase().as_str() {
            "y" | "yes" => {
                if !open(&page.url) {
                    notices.line("no browser could be started; open the URL yourself");
                }
                return Ok(ElicitResult::new(ElicitAction::Accept, None));
            }
            "n" | "no" => return Err(Error::new(ErrorKind::Declined, "the user declined")),
            _ => notices.line("type y or n"),
        }
    }
}

/// Starts the user's browser. Its scheme was checked by the client: it is http or https.
fn open(url: &str) -> bool {
    let browser = std::env::var("BROWSER").ok().filter(|it| !it.is_empty());
    let mut command = match &browser {
        Some(browser) => Command::new(browser),
        None if cfg!(target_os = "macos") => Command::new("open"),
        None if cfg!(windows) => {
            let mut command = Command::new("rundll32");
            command.arg("url.dll,FileProtocolHandler");
            command
        }
        None => Command::new("xdg-open"),
    };
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
