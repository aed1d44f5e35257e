//! Any pair of byte streams, one message a line.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{Notify, mpsc},
    task::JoinHandle,
};

use crate::framing::{DEFAULT_LINE_LIMIT, LineDecoder, encode_line};

/// With more than this unwritten, nothing more is read: a peer that only talks is not listened to.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;
const CHUNK: usize = 64 * 1024;

/// Two halves of a wire.
pub struct Link {
    input: Box<dyn AsyncRead + Send + Unpin>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Link {
    /// Reads from `input` and writes to `output`.
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { input: Box::new(input), output: Box::new(output) }
    }

    /// The two halves: what to read from, and what to write to.
    pub fn into_halves(
        self,
    ) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        (self.input, self.output)
    }

    pub(crate) fn split(self, limit: usize) -> (LineReader, LineWriter) {
        (LineReader::new(self.input, limit), LineWriter::start(self.output))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// Reads chunks; the decoder cuts frames out of them.
pub(crate) struct LineReader {
    input: Box<dyn AsyncRead + Send + Unpin>,
    buffer: Vec<u8>,
    pub(crate) decoder: LineDecoder,
}

impl LineReader {
    fn new(input: Box<dyn AsyncRead + Send + Unpin>, limit: usize) -> Self {
        let limit = if limit == 0 { DEFAULT_LINE_LIMIT } else { limit };
        Self { input, buffer: vec![0; CHUNK], decoder: LineDecoder::new(limit) }
    }

    /// How many bytes of [`Self::parts`] are new; 0 at the end. Loses nothing when dropped half-way.
    pub(crate) async fn read(&mut self) -> io::Result<usize> {
        self.input.read(&mut self.buffer).await
    }

    pub(crate) fn parts(&mut self, read: usize) -> (&mut LineDecoder, &[u8]) {
        (&mut self.decoder, &self.buffer[..read])
    }
}

/// Writes in a task of its own, so that reading goes on while the peer is slow to read.
pub(crate) struct LineWriter {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    unwritten: Arc<AtomicUsize>,
    drained: Arc<Notify>,
    task: JoinHandle<()>,
}

impl LineWriter {
    fn start(mut output: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        let (frames, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let drained = Arc::new(Notify::new());
        let (count, wake) = (Arc::clone(&unwritten), Arc::clone(&drained));
        let task = tokio::spawn(async move {
            let mut waiting = Vec::new();
            let mut lines = Vec::new();
            while queue.recv_many(&mut waiting, 256).await > 0 {
                let bytes = waiting.iter().map(Vec::len).sum::<usize>();
                waiting.drain(..).for_each(|frame| encode_line(&frame, &mut lines));
                let written = async {
                    output.write_all(&lines).await?;
                    output.flush().await
                };
                // Who reads learns that the peer is gone; here there is nobody to tell.
                let is_gone = written.await.is_err();
                lines.clear();
                lines.shrink_to(CHUNK);
                count.fetch_sub(bytes, Ordering::AcqRel);
                wake.notify_one();
                if is_gone {
                    break;
                }
            }
            let _ = output.shutdown().await;
        });
        Self { frames, unwritten, drained, task }
    }

    /// Queues one frame.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let bytes = frame.len();
        self.unwritten.fetch_add(bytes, Ordering::AcqRel);
        if self.frames.send(frame).is_err() {
            self.unwritten.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Waits until not too much is unwritten.
    pub(crate) async fn room(&self) {
        while self.unwritten.load(Ordering::Acquire) > MAX_UNWRITTEN && !self.task.is_finished() {
            self.drained.notified().await;
        }
    }

    /// Writes what is queued, for a while, and closes.
    pub(crate) async fn close(self, grace: std::time::Duration) {
        drop(self.frames);
        let mut task = self.task;
        if tokio::time::timeout(grace, &mut task).await.is_err() {
            task.abort();
        }
    }
}
