//! Lines that the user types.

use std::{
    io::{self, BufRead as _, IsTerminal as _},
    sync::{Mutex, OnceLock, PoisonError, mpsc},
    thread,
};

use gudgeon::error::{Error, ErrorKind};
use tokio::sync::oneshot;

use crate::notices::Notices;

/// Refuses a question.
const DECLINE: &str = ":decline";
/// Leaves a question open, as Ctrl-D does.
const CANCEL: &str = ":cancel";
pub const HELP: &str = "(:decline refuses, :cancel or Ctrl-D cancels)";

/// A place for the next line; `None` at the end of the input.
type Request = oneshot::Sender<Option<String>>;

/// Returns whether a user can be asked: the question goes to standard error, the answer comes from standard input.
pub fn is_present(notices: &Notices) -> bool {
    notices.is_terminal() && io::stdin().is_terminal()
}

/// Asks for a line. Errors with `Declined` or `Cancelled` if the user wants that.
pub async fn ask(notices: &Notices, prompt: &str) -> Result<String, Error> {
    notices.prompt(prompt);
    match next_line().await.as_deref().map(str::trim) {
        Some(DECLINE) => Err(Error::new(ErrorKind::Declined, "the user declined")),
        Some(CANCEL) => Err(Error::new(ErrorKind::Cancelled, "the user cancelled the question")),
        Some(line) => Ok(line.to_owned()),
        None => {
            notices.line("");
            Err(Error::new(ErrorKind::Cancelled, "the user cancelled the question"))
        }
    }
}

/// Reads a line on a thread of its own, because a read from a terminal can't be cancelled. The thread does not keep the
/// process from ending, and a line that nobody waits for any more goes to the next question.
async fn next_line() -> Option<String> {
    static READER: OnceLock<Mutex<mpsc::Sender<Request>>> = OnceLock::new();
    let reader = READER.get_or_init(|| {
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || read_lines(&requests));
        Mutex::new(sender)
    });
    let (request, line) = oneshot::channel();
    reader.lock().unwrap_or_else(PoisonError::into_inner).send(request).ok()?;
    line.await.ok().flatten()
}

fn read_lines(requests: &mpsc::Receiver<Request>) {
    let mut unclaimed = None;
    for request in requests {
        let line = unclaimed.take().unwrap_or_else(read_line);
        if let Err(line) = request.send(line) {
            unclaimed = Some(line);
        }
    }
}

fn read_line() -> Option<String> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}
