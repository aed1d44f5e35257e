//! A queue of frames that are written together, by the thread that flushes it first.

use std::{
    collections::VecDeque,
    fs::File,
    io::{ErrorKind, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{Unread, pipe};
use crate::framing::{encode_line, into_line};

/// Bytes up to which short frames are written together: as much as a pipe holds. A longer frame is written alone, so that
/// its memory is freed once it is written.
const PIECE: usize = 64 * 1024;
/// The maximum time of a wait for room before the state is checked again.
const WAIT: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub(super) struct BatchWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    output: File,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    /// Bytes of all pieces, and of the one that is being written.
    unwritten: usize,
    writing: bool,
    broken: bool,
    /// True once the pipe was made as large as it may be.
    is_wide: bool,
    /// A buffer for reuse.
    spare: Vec<u8>,
}

/// Frames that are written together: one long one, or several short ones.
#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    frames: usize,
}

impl Queue {
    fn push(&mut self, frame: Vec<u8>) {
        let fits = |piece: &Piece| piece.bytes.len() + frame.len() < PIECE;
        let joins = self.pieces.back().is_some_and(fits);
        if !joins {
            let bytes = match frame.len() < PIECE {
                true => std::mem::take(&mut self.spare),
                false => Vec::new(),
            };
            self.pieces.push_back(Piece { bytes, frames: 0 });
        }
        let last = self.pieces.len() - 1;
        let piece = &mut self.pieces[last];
        piece.frames += 1;
        let before = piece.bytes.len();
        match frame.len() < PIECE {
            true => encode_line(&frame, &mut piece.bytes),
            false => piece.bytes = into_line(frame),
        }
        // A line may be longer than its frame, because some characters are escaped.
        self.unwritten += piece.bytes.len() - before;
    }

    /// Returns the next bytes to write.
    fn take(&mut self) -> Option<Vec<u8>> {
        self.pieces.pop_front().map(|piece| piece.bytes)
    }

    /// Counts these bytes as written.
    fn give_back(&mut self, mut bytes: Vec<u8>) {
        self.unwritten -= bytes.len();
        if bytes.capacity() <= 2 * PIECE {
            bytes.clear();
            self.spare = bytes;
        }
    }
}

impl BatchWriter {
    pub(super) fn new(output: File) -> Self {
        let shared = Shared { output, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn push(&self, frame: Vec<u8>) {
        let mut queue = self.shared.lock();
        if !queue.broken {
            queue.push(frame);
        }
    }

    /// Returns the frames that no thread has begun to write, and the bytes of these and of the one that is being written.
    pub(super) fn waiting(&self) -> Unread {
        let queue = self.shared.lock();
        let parts = queue.pieces.iter().map(|piece| piece.frames).sum();
        Unread { parts, bytes: queue.unwritten }
    }

    /// Returns the descriptor, to wait for its reader to go.
    #[cfg(unix)]
    pub(super) fn output(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.shared.output)
    }

    pub(super) fn unwritten(&self) -> usize {
        self.shared.lock().unwritten
    }

    pub(super) fn is_broken(&self) -> bool {
        self.shared.lock().broken
    }

    /// Blocks until something was written, or for a short time.
    pub(super) fn wait_for_change(&self) {
        let queue = self.shared.lock();
        drop(self.shared.changed.wait_timeout(queue, WAIT));
    }

    pub(super) fn flush(&self) {
        if let Some(bytes) = self.shared.begin() {
            self.shared.write_on(bytes, 0);
        }
    }

    pub(super) fn try_flush(&self) {
        let Some(mut bytes) = self.shared.begin() else { return };
        let mut written = 0;
        loop {
            if bytes.len() > PIECE && self.shared.begins_widening() {
                pipe::widen(&self.shared.output);
            }
            match pipe::write_now(&self.shared.output, &bytes[written..]) {
                Ok(None) => break,
                Ok(Some(count)) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(_) => return self.shared.break_off(),
            }
            if written == bytes.len() {
                match self.shared.next(bytes) {
                    Some(more) => (bytes, written) = (more, 0),
                    None => return,
                }
            }
        }
        let shared = Arc::clone(&self.shared);
        let name = std::thread::Builder::new().name("gudgeon-writer".into());
        if name.spawn(move || shared.write_on(bytes, written)).is_err() {
            self.shared.break_off();
        }
    }
}

impl Shared {
    /// Takes the first bytes to write; `None` if another thread writes or the queue is empty.
    fn begin(&self) -> Option<Vec<u8>> {
        let mut queue = self.lock();
        if queue.writing {
            return None;
        }
        let bytes = queue.take()?;
        queue.writing = true;
        Some(bytes)
    }

    /// Returns `true` once.
    fn begins_widening(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_wide, true)
    }

    /// Writes these bytes from `start` on, and then everything that is queued meanwhile.
    fn write_on(&self, mut bytes: Vec<u8>, mut start: usize) {
        loop {
            if (&self.output).write_all(&bytes[start..]).is_err() {
                return self.break_off();
            }
            match self.next(bytes) {
                Some(more) => (bytes, start) = (more, 0),
                None => return,
            }
        }
    }

    /// Returns the bytes after these, which were written; `None` ends the thread's writing.
    fn next(&self, written: Vec<u8>) -> Option<Vec<u8>> {
        let mut queue = self.lock();
        queue.give_back(written);
        self.changed.notify_all();
        let next = queue.take();
        queue.writing = next.is_some();
        next
    }

    /// Discards the queue, because the peer closed its end.
    fn break_off(&self) {
        let mut queue = self.lock();
        *queue = Queue { broken: true, ..Queue::default() };
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use super::*;

    fn pipe() -> (File, BatchWriter) {
        let (read, write) = std::io::pipe().unwrap();
        let read: std::os::fd::OwnedFd = read.into();
        let write: std::os::fd::OwnedFd = write.into();
        (read.into(), BatchWriter::new(write.into()))
    }

    #[test]
    fn frames_leave_in_order_one_a_line() {
        let (read, writer) = pipe();
        writer.push(b"1".into());
        writer.push(b"2".into());
        writer.flush();
        writer.push(b"3".into());
        writer.try_flush();
        let lines: Vec<_> = BufReader::new(read).lines().take(3).map(Result::unwrap).collect();
        assert_eq!(lines, ["1", "2", "3"]);
        assert_eq!(writer.unwritten(), 0);
    }

    #[test]
    fn what_waits_is_counted_as_it_is_written() {
        let (mut read, writer) = pipe();
        let long = format!("\"{}\"", "\u{2028}".repeat(PIECE));
        for frame in ["\"\u{2028}\"", "1", &*long] {
            writer.push(frame.into());
        }
        let mut all = vec![0; writer.unwritten()];
        let reader = std::thread::spawn(move || read.read_exact(&mut all).map(|()| all));
        writer.flush();
        assert_eq!(writer.unwritten(), 0);
        let all = String::from_utf8(reader.join().unwrap().unwrap()).unwrap();
        let long = format!("\"{}\"", "\\u2028".repeat(PIECE));
        assert_eq!(all, format!("\"\\u2028\"\n1\n{long}\n"));
    }

    #[test]
    fn try_flush_never_blocks_on_a_peer_that_does_not_read() {
        let (mut read, writer) = pipe();
        let frame = vec![b'x'; 1_000_000];
        let end = 2_000_001;
        for _ in 0..3 {
            writer.push(frame.clone());
            writer.try_flush();
        }
        // A pipe holds at most 1 MiB.
        assert!(writer.unwritten() > 1_000_000);
        let mut all = vec![0; end + 1_000_002];
        read.read_exact(&mut all).unwrap();
        assert_eq!((all[1_000_000], all[end]), (b'\n', b'\n'));
    }

    #[test]
    fn what_waits_is_held_once_and_short_frames_stay_together() {
        let (_read, writer) = pipe();
        let long = vec![b'x'; 100_000];
        for frame in [&b"1"[..], b"2", &long, &long, b"3", b"4"] {
            writer.push(frame.to_vec());
        }
        let queue = writer.shared.lock();
        let sizes: Vec<_> = queue.pieces.iter().map(|piece| piece.bytes.len()).collect();
        assert_eq!(sizes, [4, 100_001, 100_001, 4]);
        assert!(queue.pieces.iter().map(|piece| piece.bytes.capacity()).sum::<usize>() < 201_000);
    }

    #[test]
    fn frames_wait_until_a_thread_begins_to_write_them() {
        let (mut read, writer) = pipe();
        writer.push(b"1".into());
        writer.push(b"2".into());
        assert_eq!(writer.waiting(), Unread { parts: 2, bytes: 4 });
        writer.flush();
        assert_eq!(writer.waiting(), Unread::default());
        let mut all = [0; 4];
        read.read_exact(&mut all).unwrap();
        assert_eq!(&all, b"1\n2\n");
    }

    #[test]
    fn a_closed_peer_ends_the_queue() {
        let (read, writer) = pipe();
        drop(read);
        writer.push(b"1".into());
        writer.flush();
        assert!(writer.is_broken());
        writer.push(b"2".into());
        assert_eq!(writer.unwritten(), 0);
    }
}
