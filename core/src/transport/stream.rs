//! Any pair of byte streams, one message a line.

use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::writer::Writer;
use crate::framing::{DEFAULT_LINE_LIMIT, LineDecoder, encode_line};

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

    pub(crate) fn split(self, limit: usize) -> (LineReader, Writer) {
        (LineReader::new(self.input, limit), write_lines(self.output))
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

/// Writes lines, many at once.
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
            // Who reads learns that the peer is gone; here there is nobody to tell.
            let is_gone = written.await.is_err();
            lines.clear();
            lines.shrink_to(CHUNK);
            queue.wrote(bytes);
            if is_gone {
                break;
            }
        }
        let _ = output.shutdown().await;
    })
}
