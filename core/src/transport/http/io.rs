//! An adapter between tokio and hyper: byte streams.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum number of bytes per read.
const PIECE: usize = 16 * 1024;
/// The maximum for connections that have had much to read, for which hyper then has room.
const LARGE_PIECE: usize = 64 * 1024;

/// A tokio stream that implements hyper's I/O traits.
#[derive(Debug)]
pub struct HyperIo<T>(pub T);

impl<T: AsyncRead + Unpin> Read for HyperIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = Pin::new(&mut self.0);
        match cursor.remaining() > PIECE {
            true => read::<_, LARGE_PIECE>(stream, context, cursor),
            false => read::<_, PIECE>(stream, context, cursor),
        }
    }
}

/// Not inlined, so that a short read does not have the stack frame of a long one.
#[inline(never)]
fn read<T: AsyncRead, const MAX: usize>(
    stream: Pin<&mut T>,
    context: &mut Context<'_>,
    mut cursor: ReadBufCursor<'_>,
) -> Poll<io::Result<()>> {
    let mut piece = [MaybeUninit::uninit(); MAX];
    let room = cursor.remaining().min(MAX);
    let mut buffer = ReadBuf::uninit(&mut piece[..room]);
    ready!(stream.poll_read(context, &mut buffer))?;
    cursor.put_slice(buffer.filled());
    Poll::Ready(Ok(()))
}

impl<T: AsyncWrite + Unpin> Write for HyperIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }
}
