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

/// The number of bytes after which a read waits until other tasks have run. hyper skips interim responses and parses pipelined
/// requests for as long as there is something to read.
const TURN: usize = 128 * 1024;

/// A tokio stream that implements hyper's I/O traits.
#[derive(Debug)]
pub struct HyperIo<T> {
    stream: T,
    /// The number of bytes read since other tasks could run.
    read: usize,
}

impl<T> HyperIo<T> {
    /// Wraps a stream.
    pub fn new(stream: T) -> Self {
        Self { stream, read: 0 }
    }

    /// Returns the stream.
    pub fn into_inner(self) -> T {
        self.stream
    }
}

impl<T: AsyncRead + Unpin> Read for HyperIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN {
            self.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let stream = Pin::new(&mut self.stream);
        let read = match cursor.remaining() > PIECE {
            true => read::<_, LARGE_PIECE>(stream, context, cursor),
            false => read::<_, PIECE>(stream, context, cursor),
        };
        self.read = match &read {
            Poll::Ready(Ok(read)) => self.read + read,
            _ => 0,
        };
        read.map_ok(drop)
    }
}

/// Returns the number of bytes. Not inlined, so that a short read does not have the stack frame of a long one.
#[inline(never)]
fn read<T: AsyncRead, const MAX: usize>(
    stream: Pin<&mut T>,
    context: &mut Context<'_>,
    mut cursor: ReadBufCursor<'_>,
) -> Poll<io::Result<usize>> {
    let mut piece = [MaybeUninit::uninit(); MAX];
    let room = cursor.remaining().min(MAX);
    let mut buffer = ReadBuf::uninit(&mut piece[..room]);
    ready!(stream.poll_read(context, &mut buffer))?;
    cursor.put_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}

impl<T: AsyncWrite + Unpin> Write for HyperIo<T> {
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

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use hyper::rt::ReadBuf as HyperBuf;
    use tokio::io::{empty, join, repeat};

    use super::*;

    /// Reads until a read is pending; returns the bytes that were read.
    fn read_on<T: AsyncRead + Unpin>(io: &mut HyperIo<T>) -> usize {
        let (mut space, mut total) = (vec![0; PIECE], 0);
        loop {
            let mut buffer = HyperBuf::new(&mut space);
            let mut context = Context::from_waker(Waker::noop());
            match Pin::new(&mut *io).poll_read(&mut context, buffer.unfilled()) {
                Poll::Ready(read) => read.expect("it never fails"),
                Poll::Pending => return total,
            }
            total += buffer.filled().len();
        }
    }

    #[test]
    fn other_tasks_run_although_there_is_always_something_to_read() {
        let mut io = HyperIo::new(join(repeat(1), empty()));
        assert_eq!([read_on(&mut io), read_on(&mut io)], [TURN, TURN]);
    }
}
