//! The standard error of a child process: its last lines are kept for errors, and all of it is passed on.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::ChildStderr,
};

use crate::{
    clock,
    driver::stderr,
    log_text::{beginning, single_line},
};

const KEPT_LINES: usize = 20;
const KEPT_LINE_BYTES: usize = 2_000;
/// The length in bytes to which a line with a name is cut.
const MAX_NAMED_LINE: usize = 4 * 1024;
/// The bytes of named lines that one process may write at once, and in each second after that.
const BURST: usize = 256 * 1024;
const BYTES_PER_SECOND: usize = 64 * 1024;

/// The way in which a child's standard error appears in that of this process.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Forwarding {
    /// Byte by byte.
    #[default]
    Unchanged,
    /// In lines that begin with this name, for a process with several children. Control characters are escaped, lines are cut
    /// after 4 KiB, and above 64 KiB a second they are left out and counted.
    Named(String),
    No,
}

/// The last lines of a stream, each truncated to a maximum length.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<Vec<u8>>,
    is_mid_line: bool,
}

/// Follows a stream to its end.
pub(super) async fn follow(mut input: ChildStderr, tail: Arc<Mutex<Tail>>, forwarding: Forwarding) {
    let mut buffer = vec![0; 8 * 1024];
    let mut ours = tokio::io::stderr();
    let mut named = match &forwarding {
        Forwarding::Named(name) => Some(NamedLines::new(name, clock::now())),
        Forwarding::Unchanged | Forwarding::No => None,
    };
    while let Ok(read @ 1..) = input.read(&mut buffer).await {
        let bytes = &buffer[..read];
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        if let Some(lines) = &mut named {
            lines.push(clock::now(), bytes, &mut |line| stderr::write(line));
        } else if forwarding == Forwarding::Unchanged {
            let _ = ours.write_all(bytes).await;
            let _ = ours.flush().await;
        }
    }
    if let Some(lines) = named {
        lines.end(clock::now(), &mut |line| stderr::write(line));
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_mid_line {
                if self.lines.len() == KEPT_LINES {
                    self.lines.pop_front();
                }
                self.lines.push_back(Vec::new());
            }
            self.is_mid_line = !piece.ends_with(b"\n");
            if let Some(line) = self.lines.back_mut() {
                let room = KEPT_LINE_BYTES.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
            }
        }
    }

    pub(super) fn text(&self) -> String {
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|line| String::from_utf8_lossy(line).trim_end().to_owned())
            .collect();
        lines.join("\n")
    }
}

/// Makes lines with a name of the chunks of a stream.
struct NamedLines<'a> {
    name: &'a str,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    is_mid_line: bool,
    /// The bytes that may be written at the time `since`.
    room: usize,
    since: Instant,
    left_out: u64,
}

impl<'a> NamedLines<'a> {
    fn new(name: &'a str, now: Instant) -> Self {
        let begun = Vec::new();
        Self { name, begun, is_mid_line: false, room: BURST, since: now, left_out: 0 }
    }

    fn push(&mut self, now: Instant, bytes: &[u8], write: &mut impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_NAMED_LINE.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
            self.is_mid_line = !piece.ends_with(b"\n");
            if !self.is_mid_line {
                self.write_line(now, write);
            }
        }
    }

    /// Writes a line without an end, and the number of lines that were left out.
    fn end(mut self, now: Instant, write: &mut impl FnMut(&str)) {
        if self.is_mid_line {
            self.write_line(now, write);
        }
        self.report_left_out(write);
    }

    fn write_line(&mut self, now: Instant, write: &mut impl FnMut(&str)) {
        let begun = std::mem::take(&mut self.begun);
        let text = String::from_utf8_lossy(&begun);
        let text = text.trim_end().replace('\t', "    ");
        let text = single_line(&text);
        let line = format!("[{}] {}", self.name, beginning(&text, MAX_NAMED_LINE));
        self.gain_room(now);
        match self.room.checked_sub(line.len()) {
            Some(rest) => {
                self.room = rest;
                self.report_left_out(write);
                write(&line);
            }
            None => self.left_out += 1,
        }
    }

    fn gain_room(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let gained = usize::try_from(passed).unwrap_or(BURST).saturating_mul(BYTES_PER_SECOND);
        self.room = BURST.min(self.room.saturating_add(gained / 1_000));
        // What is below a millisecond counts the next time.
        self.since += Duration::from_millis(passed);
    }

    fn report_left_out(&mut self, write: &mut impl FnMut(&str)) {
        let count = std::mem::take(&mut self.left_out);
        if count > 0 {
            let (noun, verb) = if count == 1 { ("line", "was") } else { ("lines", "were") };
            write(&format!("[{}] {count} {noun} of standard error {verb} left out", self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded_in_lines_and_in_bytes() {
        let mut tail = Tail::default();
        for number in 0..100 {
            tail.push(format!("line {number}\nx").as_bytes());
            tail.push(&[b'y'; 5_000]);
            tail.push(b"\n");
        }
        assert!(tail.lines.len() == KEPT_LINES);
        assert!(tail.lines.iter().all(|line| line.len() <= KEPT_LINE_BYTES));
        assert!(tail.text().contains("line 99\nxyyy"));
    }

    /// Returns the lines that chunks become, each with the seconds after the one before it.
    fn named(chunks: &[(f64, &[u8])]) -> Vec<String> {
        let mut now = Instant::now();
        let (mut lines, mut written) = (NamedLines::new("a", now), Vec::new());
        for (pause, chunk) in chunks {
            now += Duration::from_secs_f64(*pause);
            lines.push(now, chunk, &mut |line| written.push(line.to_owned()));
        }
        lines.end(now, &mut |line| written.push(line.to_owned()));
        written
    }

    #[test]
    fn each_line_has_the_name_and_controls_no_terminal() {
        let chunks: [(f64, &[u8]); 4] =
            [(0.0, b"one\r\ntw"), (0.0, b"o\x1b[2J\x9b\n\n\tth"), (0.0, b"re"), (0.0, b"e")];
        let lines = ["[a] one", "[a] two\\u{1b}[2J\u{fffd}", "[a] ", "[a]     three"];
        assert_eq!(named(&chunks), lines);
        assert_eq!(named(&[(0.0, b"")]), [""; 0]);
    }

    #[test]
    fn a_line_needs_bounded_memory_and_is_cut() {
        let long = vec![b'x'; 3 * MAX_NAMED_LINE];
        let mut lines = NamedLines::new("a", Instant::now());
        lines.push(Instant::now(), &long, &mut |_| panic!("it has no end"));
        assert_eq!(lines.begun.len(), MAX_NAMED_LINE);
        let written = named(&[(0.0, &long), (0.0, b"\nnext\n")]);
        assert_eq!(written[0].len(), "[a] ".len() + MAX_NAMED_LINE);
        assert_eq!(written[1..], ["[a] next"]);
        // Escaped, it is longer.
        let escaped = named(&[(0.0, &vec![7; MAX_NAMED_LINE])]);
        assert!(escaped[0].len() <= "[a] ".len() + MAX_NAMED_LINE);
    }

    #[test]
    fn lines_above_the_rate_are_left_out_and_counted() {
        let line = [&[b'x'; 1_019][..], b"\n"].concat();
        let many = line.repeat(1_000);
        let fit = BURST / 1_023;
        let left_out = |count: usize| format!("[a] {count} lines of standard error were left out");
        let written = named(&[(0.0, &many)]);
        assert_eq!(written.len(), fit + 1);
        assert_eq!(written[fit], left_out(1_000 - fit));
        // A second later there is room for so many again, and a minute later not for more than at once.
        for (pause, more) in [(1.0, BYTES_PER_SECOND / 1_023), (60.0, fit)] {
            let written = named(&[(0.0, &many), (pause, &many)]);
            assert_eq!(written[fit], left_out(1_000 - fit), "{pause}");
            assert_eq!(written.len() - fit - 2, more, "{pause}");
            assert_eq!(written.last(), Some(&left_out(1_000 - more)), "{pause}");
        }
        // Time that passes in small steps counts as well, also what is not a whole number of milliseconds.
        for micros in [1_000_u16, 1_900] {
            let pause = f64::from(micros) / 1e6;
            let written = named(&vec![(pause, &*line); 2_000]);
            let lines = written.iter().filter(|line| line.contains('x')).count();
            let gained = 2_000 * usize::from(micros) * BYTES_PER_SECOND / 1_000_000 / 1_023;
            assert!((fit + gained - 5..=fit + gained + 1).contains(&lines), "{pause}: {lines}");
        }
    }
}
