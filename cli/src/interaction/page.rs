//! URL elicitation: the user is asked to visit a page.

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{ElicitAction, ElicitRequestUrlParams, ElicitResult},
};

use super::terminal;
use crate::{browser, notices::Notices};

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
                if browser::open(&page.url).is_err() {
                    notices.line("no browser could be started; open the URL yourself");
                }
                return Ok(ElicitResult::new(ElicitAction::Accept, None));
            }
            "n" | "no" => return Err(Error::new(ErrorKind::Declined, "the user declined")),
            _ => notices.line("type y or n"),
        }
    }
}
