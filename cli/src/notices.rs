//! Standard error: log messages and warnings, and a progress bar that they do not tear apart.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gudgeon::client::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::escape;

/// The number of steps of a bar; the server's numbers may be fractions.
const STEPS: u64 = 1_000;
/// The narrowest terminal that has room for a bar beside the message.
const BAR_COLUMNS: u16 = 50;

/// Standard error, as shared by the callbacks of a client.
#[derive(Clone)]
pub struct Notices(Arc<Shared>);

struct Shared {
    bar: Mutex<Option<ProgressBar>>,
    is_terminal: bool,
    is_quiet: bool,
}

impl Notices {
    /// Returns standard error. With `is_quiet` it gets no progress and no log messages.
    pub fn new(is_quiet: bool) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self(Arc::new(Shared { bar: Mutex::default(), is_terminal, is_quiet }))
    }

    pub fn is_terminal(&self) -> bool {
        self.0.is_terminal
    }

    pub fn is_quiet(&self) -> bool {
        self.0.is_quiet
    }

    /// Writes a line above the progress bar. On a terminal control characters are spelled out.
    pub fn line(&self, text: &str) {
        self.write(text, "\n");
    }

    /// Writes the beginning of a line.
    pub fn prompt(&self, text: &str) {
        self.write(text, "");
    }

    /// Shows the progress of a call, if standard error is a terminal.
    pub fn progress(&self, step: &Progress) {
        if !self.0.is_terminal || self.0.is_quiet {
            return;
        }
        let mut bar = self.bar();
        let bar = bar.get_or_insert_with(|| new_bar(step.total.is_some()));
        let message = step.message.as_deref().unwrap_or_default();
        let message = escape::one_line(message);
        match step.total {
            Some(total) if total > 0.0 => {
                bar.set_position(steps(step.progress / total));
                bar.set_message(message.into_owned());
            }
            _ => bar.set_message(format!("{} {message}", step.progress)),
        }
    }

    /// Removes the progress bar.
    pub fn clear(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn write(&self, text: &str, end: &str) {
        let text = if self.0.is_terminal { escape::lines(text) } else { text.into() };
        // Without a standard error there is no place for the message.
        let write = || drop(write!(io::stderr().lock(), "{text}{end}"));
        match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.0.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_bar(has_total: bool) -> ProgressBar {
    let is_wide =
        terminal_size::terminal_size_of(io::stderr()).is_none_or(|size| size.0.0 >= BAR_COLUMNS);
    let (bar, template) = match (has_total, is_wide) {
        (true, true) => (ProgressBar::new(STEPS), "{bar:20} {percent:>3}% {wide_msg}"),
        (true, false) => (ProgressBar::new(STEPS), "{percent:>3}% {wide_msg}"),
        (false, _) => (ProgressBar::new_spinner(), "{spinner} {wide_msg}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    if !has_total {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

/// Returns a part of the whole in steps of the bar.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped"
)]
fn steps(part: f64) -> u64 {
    (part.clamp(0.0, 1.0) * STEPS as f64) as u64
}
