//! Serves connections with one message per line, over any pair of byte streams.

use std::{io, pin::pin, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout_at,
};

use super::{
    send_queue::{Connected, SendQueue},
    timeouts::Timeouts,
};
use crate::{
    clock,
    driver::Holding,
    framing::{LineDecoder, encode_line},
};

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
    /// The limits for clients on the network; `None` for trusted peers.
    pub(crate) guard: Option<LineGuard>,
}

/// The limits for clients on the network. Clients of other protocols are disconnected as well.
pub(crate) struct LineGuard {
    pub(crate) timeouts: Timeouts,
    pub(crate) unfinished: Holding,
}

impl<T: Fn(usize) -> Duration> Lines<T> {
    /// Serves until the input has ended and all calls are answered, or either side closes the connection. A client
    /// that closes only its sending direction still gets its answers; a closed connection is recognised by a failed
    /// write.
    pub(crate) async fn serve<R, W>(mut self, connected: Connected, reader: R, writer: W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let send_queue = connected.send_queue();
        let guard = self.guard.take();
        let mut writing = pin!(self.write(&send_queue, writer));
        let reading = async {
            if self.read(&connected, reader, guard).await.is_ok() {
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
        mut guard: Option<LineGuard>,
    ) -> io::Result<()> {
        let mut decoder = LineDecoder::new(self.limit);
        let mut chunk = vec![0; CHUNK];
        let mut has_begun = guard.is_none();
        // The time at which the incomplete line began, or the connection whose first message did not begin yet.
        let mut since = clock::now();
        loop {
            let limit =
                guard.as_ref().and_then(|guard| guard.time_limit(decoder.held(), has_begun));
            let count = match limit {
                None => reader.read(&mut chunk).await?,
                Some(limit) => {
                    timeout_at((since + limit).into(), reader.read(&mut chunk)).await??
                }
            };
            if count == 0 {
                break;
            }
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
            let was_within = decoder.held() > 0;
            connected.take_lines(&mut decoder, &mut chunk, count).await;
            if let Some(guard) = &mut guard
                && !guard.unfinished.set(decoder.held())
            {
                tracing::warn!("closing a connection, because too much is being received");
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            let waited = clock::now();
            connected.has_room().await;
            if was_within && decoder.held() > count {
                since += clock::since(waited);
            } else if has_begun {
                since = clock::now();
            }
        }
        connected.take_last_line(&mut decoder);
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

impl LineGuard {
    /// Returns the time for the next bytes, since the line began of which so many are there, or since the connection was
    /// opened. A client that has sent whole messages may be silent for as long as it likes.
    fn time_limit(&self, held: usize, has_begun: bool) -> Option<Duration> {
        match held {
            0 if has_begun => None,
            0 => Some(self.timeouts.header),
            held => Some(self.timeouts.for_received(held)),
        }
    }
}

fn first_byte(chunk: &[u8]) -> Option<u8> {
    chunk.iter().copied().find(|byte| !byte.is_ascii_whitespace())
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
