//! Questions that the user answers with yes or no in the terminal.

use std::io::{self, BufRead as _, Write as _};

/// Asks on standard error. What was typed before the question counts as no answer to it.
pub fn ask(question: &str) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Without a terminal nothing was typed.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
    let mut output = io::stderr().lock();
    output.write_all(question.as_bytes()).and_then(|()| output.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
