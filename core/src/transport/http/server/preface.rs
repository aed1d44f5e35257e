//! The first bytes of a connection of HTTP/2 without TLS: clients that know that the server speaks it begin at once (RFC 9113,
//! section 3.3).

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf, join};

use crate::transport::ByteStream;

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The comparison of the first bytes of a stream with the preface. hyper recognizes it only in one piece.
#[derive(Debug, Default)]
pub(super) struct Preface {
    /// The number of bytes that are those of the preface. They are held back until it is complete or ends otherwise.
    equal: usize,
    is_decided: bool,
}

impl Preface {
    /// Returns whether everything that is read may be passed on.
    #[inline]
    pub(super) fn is_decided(&self) -> bool {
        self.is_decided
    }

    /// Returns whether bytes are held back.
    #[inline]
    pub(super) fn is_begun(&self) -> bool {
        self.equal > 0 && !self.is_decided
    }

    /// Returns whether the stream began with the preface.
    pub(super) fn is_complete(&self) -> bool {
        self.equal == PREFACE.len()
    }

    /// Reads from the stream, and holds back what may become the preface. Errors if the buffer has no room
    /// for it.
    pub(super) fn poll_read(
        &mut self,
        mut stream: Pin<&mut impl AsyncRead>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = buffer.filled().len();
        if buffer.remaining() < PREFACE.len() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        buffer.put_slice(&PREFACE[..self.equal]);
        loop {
            let before = buffer.filled().len();
            let polled = stream.as_mut().poll_read(context, buffer);
            let read = &buffer.filled()[start..];
            let is_end = polled.is_ready() && buffer.filled().len() == before;
            self.equal =
                read.iter().zip(PREFACE).take_while(|(byte, wanted)| byte == wanted).count();
            self.is_decided = is_end || self.equal < read.len() || self.is_complete();
            if self.is_decided {
                return polled;
            }
            if polled.is_pending() {
                buffer.set_filled(start);
                return Poll::Pending;
            }
        }
    }
}

/// Returns a stream that begins with bytes that were read already.
pub(super) fn unread(read: Bytes, stream: Box<dyn ByteStream>) -> Box<dyn ByteStream> {
    let (reader, writer) = tokio::io::split(stream);
    Box::new(join(io::Cursor::new(read).chain(reader), writer))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::time::Duration;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::{
        super::watch::{Watch, Watched},
        *,
    };
    use crate::transport::timeouts::Timeouts;

    const MINUTE: Duration = Duration::from_secs(60);
    const TIMEOUTS: Timeouts = Timeouts { header: MINUTE, idle: MINUTE, body: MINUTE };

    /// Sends pieces, each after the one before was read. Returns all that arrives, and whether it begins with the preface.
    async fn pass(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let (mut client, server) = duplex(1024);
        let mut watched = Watched::new(server, &Watch::new(TIMEOUTS));
        let (mut read, mut buffer) = (Vec::new(), [0; 64]);
        for piece in pieces {
            client.write_all(piece).await.unwrap();
            loop {
                tokio::select! {
                    biased;
                    count = watched.read(&mut buffer) => read.extend_from_slice(&buffer[..count.unwrap()]),
                    () = std::future::ready(()) => break,
                }
            }
        }
        drop(client);
        watched.read_to_end(&mut read).await.unwrap();
        (read, watched.preface.is_complete())
    }

    #[tokio::test]
    async fn the_preface_is_passed_on_whole_however_it_arrives() {
        let all = [&PREFACE[..], b"more"].concat();
        for split in 1..all.len() {
            let (first, rest) = all.split_at(split);
            assert_eq!(pass(&[first, rest]).await, (all.clone(), true), "{split}");
        }
        let bytes: Vec<_> = all.chunks(1).collect();
        assert_eq!(pass(&bytes).await, (all, true));
    }

    #[tokio::test]
    async fn everything_else_arrives_unchanged() {
        for text in
            ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r", "PRI * HTTP/1.1\r\n\r\n", "POST / HTTP/1.1"]
        {
            let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
            assert_eq!(pass(&bytes).await, (text.as_bytes().to_vec(), false), "{text:?}");
            assert_eq!(pass(&[text.as_bytes()]).await, (text.as_bytes().to_vec(), false));
        }
        let later = [b"GET / HTTP/1.1\r\n\r\n", &PREFACE[..]].concat();
        assert_eq!(pass(&[&later]).await, (later, false));
    }

    #[tokio::test]
    async fn bytes_that_were_read_come_first() {
        let (mut client, server) = duplex(1024);
        let mut stream = unread(Bytes::from_static(b"one "), Box::new(server));
        client.write_all(b"two").await.unwrap();
        let mut read = [0; 7];
        stream.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"one two");
        stream.write_all(b"back").await.unwrap();
        client.read_exact(&mut read[..4]).await.unwrap();
        assert_eq!(&read[..4], b"back");
    }
}
