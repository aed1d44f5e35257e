//! Serves connections with one message per line, over any pair of byte streams.

use std::{io, pin::pin, time::Duration};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::send_queue::{Connected, SendQueue};
use crate::framing::{LineDecoder, encode_line};

const CHUNK: usize = 16 * 1024;
/// A buffer that grew beyond this capacity is freed.
const KEPT_CAPACITY: usize = 64 * 1024;
/// The time for a peer to read what is queued at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings for the lines of a connection.
pub(crate) struct Lines<T> {
    /// The maximum length of a line in bytes.
    pub(crate) limit: usize,
    /// The time limits for writing.
    pub(crate) write_timeout: T,
    /// The time after the end of input for pending calls to be answered and for the peer to read the answers.
    pub(crate) grace: Duration,
    /// If true, clients of other protocols are disconnected.
    pub(crate) refuses_other_protocols: bool,
}

impl<T: Fn(usize) -> Duration> Lines<T> {
    /// Serves until the input has ended and all calls are answered, or either side closes the connection. A client
    /// that closes only its sending direction still gets its answers; a closed connection is recognised by a failed
    /// write.
    pub(crate) async fn serve<R, W>(self, connected: Connected, reader: R, writer: W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let send_queue = connected.send_queue();
        let mut writing = pin!(self.write(&send_queue, writer));
        let reading = async {
            if self.read(&connected, reader).await.is_ok() {
                connected.finish(self.grace).await;
            }
        };
        tokio::select! {
            () = reading => (),
            () = &mut writing => return,
        }
        drop(connected);
        let _ = tokio::time::timeout(self.grace.max(FLUSH_TIMEOUT), writing).await;
    }

    async fn read<R: AsyncRead + Unpin>(
        &self,
        connected: &Connected,
        mut reader: R,
    ) -> io::Result<()> {
        let mut decoder = LineDecoder::new(self.limit);
        let mut chunk = vec![0; CHUNK];
        let mut has_begun = !self.refuses_other_protocols;
        loop {
            let count = match reader.read(&mut chunk).await? {
                0 => break,
                count => count,
            };
            if !has_begun && let Some(first) = first_byte(&chunk[..count]) {
                has_begun = true;
                if let Some(protocol) = other_protocol(first) {
                    tracing::warn!(
                        "closing a connection whose client speaks {protocol}; this address takes one JSON-RPC message \
                         per line"
                    );
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            connected.take_lines(&mut decoder, &chunk[..count]);
            connected.has_room().await;
        }
        // A last line without a newline counts as well.
        if let Some(frame) = decoder.finish() {
            connected.take(&frame);
        }
        Ok(())
    }

    /// Writes queued lines in batches until the queue is closed.
    async fn write<W: AsyncWrite + Unpin>(&self, send_queue: &SendQueue, mut writer: W) {
        let mut frames = Vec::new();
        let mut bytes = Vec::new();
        while send_queue.take(&mut frames).await {
            let taken = frames.iter().map(Vec::len).sum();
            frames.drain(..).for_each(|frame| encode_line(&frame, &mut bytes));
            let written = async {
                writer.write_all(&bytes).await?;
                writer.flush().await
            };
            match tokio::time::timeout((self.write_timeout)(bytes.len()), written).await {
                Ok(Ok(())) => send_queue.wrote(taken),
                Ok(Err(_)) | Err(_) => return,
            }
            bytes.clear();
            bytes.shrink_to(KEPT_CAPACITY);
        }
        let _ = writer.shutdown().await;
    }
}

fn first_byte(chunk: &[u8]) -> Option<u8> {
    chunk.iter().copied().find(|it| !it.is_ascii_whitespace())
}

/// Returns the name of another protocol that begins with this byte. A web page can make a browser send an HTTP request
/// to any local port, and the lines of its body would be read as messages.
fn other_protocol(first: u8) -> Option<&'static str> {
    match first {
        b'A'..=b'Z' => Some("HTTP"),
        // The type of a handshake record (RFC 8446, section 5.1).
        0x16 => Some("TLS"),
        _ => None,
    }
}
