//! Connections over any pair of byte streams, with one message per line.

use std::{fmt, io};

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::writer::Writer;
use crate::framing::{DEFAULT_LINE_LIMIT, LineDecoder, encode_line};

const CHUNK: usize = 64 * 1024;

/// A bidirectional connection: a reader and a writer.
pub struct Link {
    input: Box<dyn AsyncRead + Send + Unpin>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Link {
    /// Creates a connection that reads from `input` and writes to `output`.
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { input: Box::new(input), output: Box::new(output) }
    }

    /// Returns the reader and the writer.
    pub fn into_halves(
        self,
    ) -> (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) {
        (self.input, self.output)
    }

    pub(crate) fn split(self, limit: usize) -> (LineReader, Writer) {
        (LineReader::new(self.input, limit), write_lines(self.output))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// A reader that fills a buffer, from which the decoder takes frames.
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

    /// Reads into the buffer; returns the number of new bytes in [`Self::parts`], 0 at the end. Cancel safe.
    pub(crate) async fn read(&mut self) -> io::Result<usize> {
        self.input.read(&mut self.buffer).await
    }

    /// Reads what has arrived already; `None` if that is nothing yet.
    pub(crate) fn read_now(&mut self) -> Option<io::Result<usize>> {
        self.read().now_or_never()
    }

    pub(crate) fn parts(&mut self, read: usize) -> (&mut LineDecoder, &[u8]) {
        (&mut self.decoder, &self.buffer[..read])
    }
}

/// Writes queued lines in batches.
fn write_lines(mut output: Box<dyn AsyncWrite + Send + Unpin>) -> Writer {
    Writer::start(async move |mut queue| {
        let mut waiting = Vec::new();
        let mut lines = Vec::new();
        while queue.take(&mut waiting).await {
            let bytes = waiting.iter().map(Vec::len).sum();
            waiting.drain(..).for_each(|frame| encode_line(&frame, &mut lines));
            let written = async {
                output.write_all(&lines).await?;
                output.flush().await
            };
            if let Err(error) = written.await {
                return tracing::debug!(%error, "messages could not be sent");
            }
            lines.clear();
            lines.shrink_to(CHUNK);
            queue.wrote(bytes);
        }
        let _ = output.shutdown().await;
    })
}
