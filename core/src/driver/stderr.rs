//! Standard error, which its reader may leave unread: then a write to it blocks, for as long as the process lives.

use std::{
    collections::VecDeque,
    env,
    io::Write as _,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use serde_json::Map;

use super::pipe::SURE_WRITE;
use crate::{
    clock,
    log_events::{LOG_FORMAT, json_line},
    log_text::beginning,
};

/// The number of messages that wait at most; the newest are dropped and counted.
const MAX_WAITING: usize = 1_000;
/// The length in bytes to which a message is cut.
const MAX_TEXT: usize = 16 * 1024;
/// The interval at which the writing thread looks for room.
const INTERVAL: Duration = Duration::from_millis(20);

static BACKLOG: Mutex<Backlog> =
    Mutex::new(Backlog { waiting: VecDeque::new(), dropped: 0, has_writer: false });

/// Messages that standard error had no room for.
struct Backlog {
    waiting: VecDeque<String>,
    dropped: u64,
    /// A thread writes them.
    has_writer: bool,
}

/// Writes a message to standard error without blocking. Messages that have no room are written later; the newest of more
/// than a thousand are dropped and counted.
pub(crate) fn write(message: &str) {
    let mut backlog = lock();
    let text = backlog.write(&formatted(message, MAX_TEXT), has_room, |text| {
        let _ = std::io::stderr().write_all(text.as_bytes());
    });
    let Some(rest) = text else { return };
    backlog.add(rest);
    if !backlog.has_writer {
        let writer = std::thread::Builder::new().name("gudgeon-stderr".into());
        backlog.has_writer = writer.spawn(write_backlog).is_ok();
    }
}

/// Writes a line unless that would block. A closed standard error has no effect.
pub(crate) fn try_write(message: &str) {
    if has_room() {
        let _ = std::io::stderr().write_all(formatted(message, SURE_WRITE).as_bytes());
    }
}

/// Returns whether a log message can be written to standard error without blocking. A closed standard error counts as
/// one with room, because writing to it fails at once.
#[cfg(unix)]
pub fn has_room() -> bool {
    let stderr = std::io::stderr();
    // A descriptor that can't be polled doesn't block either.
    super::pipe::has_room(&stderr).unwrap_or(true) && is_mostly_free(&stderr)
}

#[cfg(not(unix))]
pub fn has_room() -> bool {
    true
}

/// Returns whether a pipe is at most a quarter full. `poll` reports room already where one page is free, which a
/// traceback exceeds, and pages may be half empty. A socket reports room only where three quarters are free.
#[cfg(target_os = "linux")]
fn is_mostly_free(stderr: &std::io::Stderr) -> bool {
    let Ok(size) = rustix::pipe::fcntl_getpipe_size(stderr) else { return true };
    let unread = rustix::io::ioctl_fionread(stderr).unwrap_or(0);
    unread <= size as u64 / 4
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_mostly_free(_: &std::io::Stderr) -> bool {
    true
}

impl Backlog {
    /// Writes a string in pieces while there is room and nothing waits. Returns the rest.
    fn write(
        &self,
        text: &str,
        has_room: impl Fn() -> bool,
        mut write: impl FnMut(&str),
    ) -> Option<String> {
        let mut rest = text;
        while !rest.is_empty() {
            if self.has_writer || !self.waiting.is_empty() || !has_room() {
                return Some(rest.to_owned());
            }
            let piece = beginning(rest, SURE_WRITE);
            write(piece);
            rest = &rest[piece.len()..];
        }
        None
    }

    fn add(&mut self, text: String) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(text);
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the next text. After the last one, says how many were dropped.
    fn take(&mut self) -> Option<String> {
        self.waiting.pop_front().or_else(|| {
            let dropped = std::mem::take(&mut self.dropped);
            (dropped > 0).then(|| dropped_message(dropped) + "\n")
        })
    }
}

/// Returns the message that log messages were dropped.
pub(crate) fn dropped_message(count: u64) -> String {
    let (noun, verb) = if count == 1 { ("message", "was") } else { ("messages", "were") };
    format!(
        "{count} log {noun} {verb} dropped, because standard error was not read or the logger was too slow"
    )
}

fn write_backlog() {
    loop {
        while !has_room() {
            std::thread::sleep(INTERVAL);
        }
        let mut backlog = lock();
        let Some(text) = backlog.take() else {
            backlog.has_writer = false;
            return;
        };
        drop(backlog);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Returns a message as the log has it, at most `max` bytes of it with a newline at its end.
fn formatted(message: &str, max: usize) -> String {
    static IS_JSON: OnceLock<bool> = OnceLock::new();
    match IS_JSON.get_or_init(|| env::var_os(LOG_FORMAT).is_some_and(|format| format == "json")) {
        true => {
            // Half of it, because escapes make it longer.
            let text = beginning(message, max / 2).trim_end();
            json_line(clock::unix(), "error", text, Map::new()) + "\n"
        }
        false => line(message, max),
    }
}

/// Returns a message with a newline at its end, cut to `max` bytes.
fn line(message: &str, max: usize) -> String {
    let mut text = beginning(message, max - 1).to_owned();
    text.push('\n');
    text
}

fn lock() -> MutexGuard<'static, Backlog> {
    BACKLOG.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn backlog() -> Backlog {
        Backlog { waiting: VecDeque::new(), dropped: 0, has_writer: false }
    }

    #[test]
    fn the_rest_of_a_text_waits_where_there_is_no_more_room() {
        let (pieces, written) = (Cell::new(0), RefCell::new(String::new()));
        let has_room = || {
            pieces.set(pieces.get() + 1);
            pieces.get() <= 2
        };
        let rest = backlog().write(&"ä".repeat(3 * SURE_WRITE), has_room, |text| {
            written.borrow_mut().push_str(text);
        });
        assert_eq!(written.borrow().len(), 2 * SURE_WRITE);
        assert_eq!(rest.map(|rest| rest.len()), Some(4 * SURE_WRITE));
    }

    #[test]
    fn nothing_overtakes_what_waits() {
        let backlog = Backlog { has_writer: true, ..backlog() };
        let rest = backlog.write("late", || true, |_| panic!("it is written"));
        assert_eq!(rest.as_deref(), Some("late"));
    }

    #[test]
    fn nothing_overtakes_what_waits_for_a_thread_that_could_not_be_started() {
        let mut backlog = backlog();
        backlog.add("early".into());
        let rest = backlog.write("late", || true, |_| panic!("it is written"));
        assert_eq!(rest.as_deref(), Some("late"));
    }

    #[test]
    fn more_messages_than_may_wait_are_counted() {
        let mut backlog = backlog();
        for number in 0..MAX_WAITING + 7 {
            backlog.add(number.to_string());
        }
        for number in 0..MAX_WAITING {
            assert_eq!(backlog.take(), Some(number.to_string()));
        }
        assert!(backlog.take().is_some_and(|text| text.starts_with("7 log messages were dropped")));
        assert_eq!(backlog.take(), None);
    }

    #[test]
    fn a_message_is_cut() {
        let text = line(&"x".repeat(2 * MAX_TEXT), MAX_TEXT);
        assert_eq!(text.len(), MAX_TEXT);
        assert!(text.ends_with("x\n"));
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!(line("ab", 10), "ab\n");
        assert_eq!(line("aää", 5), "aä\n");
    }
}
