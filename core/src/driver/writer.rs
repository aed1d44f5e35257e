//! Many frames, one write: a queue of bytes that whoever has time writes out.

use std::{
    collections::HashSet,
    fs::File,
    io::Write,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::framing::encode_line;

/// A pipe that says it has room takes at least this much without blocking (`PIPE_BUF`; the least that POSIX allows).
const SURE_WRITE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };
/// A buffer that grew beyond this is given back.
const KEPT_CAPACITY: usize = 256 * 1024;
/// How long a wait for room lasts at most before the state is looked at again.
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
    bytes: Vec<u8>,
    /// Frames among these that tell of changes.
    changes: HashSet<Vec<u8>>,
    /// Bytes of these.
    changed: usize,
    /// What the present writer took and has not written yet.
    taken: usize,
    writing: bool,
    broken: bool,
}

impl Queue {
    fn forget_changes(&mut self) {
        self.changes.clear();
        self.changed = 0;
    }
}

impl BatchWriter {
    pub(super) fn new(output: File) -> Self {
        let shared = Shared { output, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn push(&self, frame: &[u8]) {
        let mut queue = self.shared.lock();
        if !queue.broken {
            encode_line(frame, &mut queue.bytes);
        }
    }

    /// Nothing is added while an equal frame waits.
    pub(super) fn push_change(&self, frame: &[u8]) {
        let mut queue = self.shared.lock();
        if !queue.broken && queue.changes.insert(frame.to_vec()) {
            queue.changed += frame.len();
            encode_line(frame, &mut queue.bytes);
        }
    }

    /// Bytes of changes that nobody has begun to write.
    pub(super) fn changes(&self) -> usize {
        self.shared.lock().changed
    }

    pub(super) fn unwritten(&self) -> usize {
        let queue = self.shared.lock();
        queue.bytes.len() + queue.taken
    }

    pub(super) fn is_broken(&self) -> bool {
        self.shared.lock().broken
    }

    /// Blocks until something was written, for a short while at most.
    pub(super) fn wait_for_change(&self) {
        let queue = self.shared.lock();
        drop(self.shared.changed.wait_timeout(queue, WAIT));
    }

    pub(super) fn flush(&self) {
        if let Some(bytes) = self.shared.begin() {
            self.shared.write_on(bytes);
        }
    }

    pub(super) fn try_flush(&self) {
        let Some(bytes) = self.shared.begin() else { return };
        let mut written = 0;
        while written < bytes.len() && has_room(&self.shared.output) {
            let end = bytes.len().min(written + SURE_WRITE);
            match (&self.shared.output).write(&bytes[written..end]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => (),
                Err(_) => return self.shared.break_off(),
            }
        }
        if written == bytes.len() && self.shared.end_if_empty() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let rest = bytes[written..].to_vec();
        let name = std::thread::Builder::new().name("gudgeon-writer".into());
        if name.spawn(move || shared.write_on(rest)).is_err() {
            self.shared.break_off();
        }
    }
}

impl Shared {
    /// Becomes the writer, unless somebody is or there is nothing to write.
    fn begin(&self) -> Option<Vec<u8>> {
        let mut queue = self.lock();
        if queue.writing || queue.bytes.is_empty() {
            return None;
        }
        queue.writing = true;
        queue.taken = queue.bytes.len();
        queue.forget_changes();
        Some(std::mem::take(&mut queue.bytes))
    }

    /// Writes these bytes and all that comes meanwhile.
    fn write_on(&self, mut bytes: Vec<u8>) {
        loop {
            if (&self.output).write_all(&bytes).is_err() {
                return self.break_off();
            }
            let mut queue = self.lock();
            self.changed.notify_all();
            if queue.bytes.is_empty() {
                queue.writing = false;
                queue.taken = 0;
                bytes.clear();
                if bytes.capacity() <= KEPT_CAPACITY {
                    queue.bytes = bytes;
                }
                return;
            }
            queue.taken = queue.bytes.len();
            queue.forget_changes();
            bytes.clear();
            std::mem::swap(&mut queue.bytes, &mut bytes);
        }
    }

    fn end_if_empty(&self) -> bool {
        let mut queue = self.lock();
        queue.taken = 0;
        self.changed.notify_all();
        queue.writing = !queue.bytes.is_empty();
        !queue.writing
    }

    /// The peer closed its end: what is still to be said is said to nobody.
    fn break_off(&self) {
        let mut queue = self.lock();
        *queue = Queue { broken: true, ..Queue::default() };
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
fn has_room(output: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(output, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
fn has_room(_: &File) -> bool {
    false
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
        writer.push(b"1");
        writer.push(b"2");
        writer.flush();
        writer.push(b"3");
        writer.try_flush();
        let lines: Vec<_> = BufReader::new(read).lines().take(3).map(Result::unwrap).collect();
        assert_eq!(lines, ["1", "2", "3"]);
        assert_eq!(writer.unwritten(), 0);
    }

    #[test]
    fn try_flush_never_blocks_on_a_peer_that_does_not_read() {
        let (mut read, writer) = pipe();
        let frame = vec![b'x'; 1_000_000];
        writer.push(&frame);
        writer.try_flush();
        writer.push(&frame);
        writer.try_flush();
        assert!(writer.unwritten() > 1_000_000);
        let mut all = vec![0; 2_000_002];
        read.read_exact(&mut all).unwrap();
        assert_eq!((all[1_000_000], all[2_000_001]), (b'\n', b'\n'));
    }

    #[test]
    fn a_closed_peer_ends_the_queue() {
        let (read, writer) = pipe();
        drop(read);
        writer.push(b"1");
        writer.flush();
        assert!(writer.is_broken());
        writer.push(b"2");
        assert_eq!(writer.unwritten(), 0);
    }
}
