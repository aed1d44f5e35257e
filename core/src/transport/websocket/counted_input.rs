//! A byte stream that counts what arrives of a message before the message is complete.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::Holding;

/// A stream whose reads fail with [`io::ErrorKind::OutOfMemory`] while too much is being received.
pub(super) struct CountedInput<S> {
    pub(super) stream: S,
    pub(super) unfinished: Holding,
    /// The bytes that have arrived since the last message.
    pub(super) arrived: usize,
}

impl<S> CountedInput<S> {
    /// Begins the next message.
    pub(super) fn restart(&mut self) {
        self.arrived = 0;
        // Fewer bytes than before always have room.
        let _ = self.unfinished.set(0);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedInput<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let arrived = self.arrived + (buffer.filled().len() - before);
        if arrived > self.arrived && !self.unfinished.set(arrived) {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        self.arrived = arrived;
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedInput<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
