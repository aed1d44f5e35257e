//! Reads the body of a request, with limits of size and time.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame};
use tokio::time::error::Elapsed;

use crate::{clock, driver::Holding, http::Refused, transport::timeouts::Timeouts};

/// The time to keep reading a body over the limit, so that the client can read the error response.
const DRAIN: Duration = Duration::from_secs(1);
/// The number of bytes to keep reading, as a multiple of the limit.
const DRAIN_FACTOR: usize = 4;
/// The number of bytes after which the other connections of the thread come first, those with new input among them.
const TURN: usize = 128 * 1024;
/// The memory that is allocated ahead for the announced rest of a body, as a multiple of what has arrived.
const AHEAD_FACTOR: usize = 8;

/// Reads the body, whose bytes `unfinished` counts. Errors if it exceeds the limit, stalls, is slower than the minimum rate, or if
/// too much is being received.
pub(super) async fn read<B>(
    body: B,
    limit: usize,
    timeouts: Timeouts,
    waits_for_leave: bool,
    unfinished: &mut Holding,
) -> Result<Bytes, Refused>
where
    B: Body,
{
    let mut body = pin!(body);
    if body.size_hint().lower() > limit as u64 {
        // A client that waits for `100 Continue` has not sent the body.
        if !waits_for_leave {
            drain(body.as_mut(), limit).await;
        }
        return Err(Refused::BodyTooLarge);
    }
    // Within the limit; 0 if it is not announced.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut begun = None;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut turn_began_at = 0;
    loop {
        let read = first.len() + rest.len();
        if read - turn_began_at >= TURN {
            turn_began_at = read;
            yield_to_others().await;
        }
        let time_limit =
            || timeouts.for_rest(read, clock::since(*begun.get_or_insert_with(clock::now)));
        let frame = match next(body.as_mut(), time_limit).await {
            Err(_) => return Err(Refused::BodyTooSlow),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Refused::BodyBroken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(mut data) = frame.into_data() else { continue };
        if data.remaining() > limit - read {
            drop((first, rest));
            unfinished.clear();
            drain(body, limit).await;
            return Err(Refused::BodyTooLarge);
        }
        if !unfinished.set(read + data.remaining()) {
            drop((first, rest));
            unfinished.clear();
            drain(body, limit).await;
            return Err(Refused::TooMuchInput);
        }
        if read == 0 {
            first = data.copy_to_bytes(data.remaining());
        } else {
            if rest.capacity() < read + data.remaining() {
                // Growing moves all bytes to new memory.
                let ahead = announced.saturating_sub(read).min(AHEAD_FACTOR * read);
                rest.reserve(read - rest.len() + ahead.max(data.remaining()));
            }
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            while data.has_remaining() {
                let chunk = data.chunk();
                rest.extend_from_slice(chunk);
                let length = chunk.len();
                data.advance(length);
            }
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Yields until the thread has polled for input and run its other tasks. While a body is always ready to be read, tokio polls
/// for input only after 61 tasks. This waits for another task, because hyper wakes the present one at once.
async fn yield_to_others() {
    // The task does not panic, and the runtime cancels it only with this task.
    let _ = tokio::spawn(tokio::task::yield_now()).await;
}

/// Reads the next frame; `limit` returns the time to wait for one. What has arrived needs no timer.
async fn next<B: Body>(
    mut body: Pin<&mut B>,
    limit: impl FnOnce() -> Duration,
) -> Result<Option<Result<Frame<B::Data>, B::Error>>, Elapsed> {
    let mut frame = poll_fn(|context| body.as_mut().poll_frame(context));
    let arrived = poll_fn(|context| match Pin::new(&mut frame).poll(context) {
        Poll::Ready(frame) => Poll::Ready(Some(frame)),
        Poll::Pending => Poll::Ready(None),
    });
    if let Some(frame) = arrived.await {
        return Ok(frame);
    }
    tokio::time::timeout(limit(), frame).await
}

/// Reads the body of a request that was refused, so that the client can read the error response. A client that waits for
/// `100 Continue` sends none.
pub(super) async fn discard<B: Body>(body: B, limit: usize, waits_for_leave: bool) {
    if !waits_for_leave && !body.is_end_stream() {
        drain(pin!(body), limit).await;
    }
}

async fn drain<B: Body>(mut body: Pin<&mut B>, limit: usize) {
    let drained = async {
        let mut left = limit.saturating_mul(DRAIN_FACTOR);
        while let Some(Ok(frame)) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let length = frame.data_ref().map_or(0, Buf::remaining);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // The response is the same whether or not the rest was read.
    let _ = tokio::time::timeout(DRAIN, drained).await;
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        convert::Infallible,
        io,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Context,
    };

    use http::Request;
    use http_body::SizeHint;
    use hyper::body::Incoming;
    use tokio::{
        io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
        net::UnixStream,
        sync::Notify,
    };

    use super::{
        super::{AnswerBody, Answered, HeadLimits, Watch, serve_requests},
        *,
    };
    use crate::{driver::ledger::Ledger, http::Part};

    const SIZE: usize = 3 * 1024 * 1024;
    const LIMIT: usize = 4 * 1024 * 1024;
    const MINUTE: Duration = Duration::from_secs(60);
    const TIMEOUTS: Timeouts = Timeouts { header: MINUTE, idle: MINUTE, body: MINUTE };

    /// A body that is ready to be read all the time, with the number of its bytes that were read.
    struct Ready {
        read: Arc<AtomicUsize>,
        piece: usize,
        is_announced: bool,
    }

    impl Body for Ready {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let from = self.read.load(Ordering::Relaxed);
            let to = SIZE.min(from + self.piece);
            self.read.store(to, Ordering::Relaxed);
            let piece: Vec<u8> = (from..to).map(byte).collect();
            Poll::Ready((from < SIZE).then(|| Ok(Frame::data(piece.into()))))
        }

        fn size_hint(&self) -> SizeHint {
            match self.is_announced {
                true => SizeHint::with_exact(SIZE as u64),
                false => SizeHint::default(),
            }
        }
    }

    /// Returns the byte at this place.
    fn byte(at: usize) -> u8 {
        u8::try_from(at % 251).unwrap_or_default()
    }

    async fn read_all(body: impl Body) -> Bytes {
        let ledger = Ledger::new(LIMIT, 0);
        let mut unfinished = Holding::new(&ledger, None);
        read(body, LIMIT, TIMEOUTS, false, &mut unfinished).await.expect("a body within the limit")
    }

    #[tokio::test]
    async fn bodies_arrive_whole_in_pieces_of_any_size_announced_or_not() {
        for piece in [1_000, 64 * 1024, 200_000, SIZE] {
            for is_announced in [false, true] {
                let body = read_all(Ready { read: Arc::default(), piece, is_announced }).await;
                assert_eq!(body.len(), SIZE);
                assert!(body.iter().enumerate().all(|(at, actual)| *actual == byte(at)));
            }
        }
    }

    /// A connection on which the rest of a request with a large body is ready to be read all the time.
    struct Upload {
        head: &'static [u8],
        read: Arc<AtomicUsize>,
    }

    impl AsyncRead for Upload {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            buffer.put_slice(std::mem::take(&mut self.head));
            let piece = buffer.remaining().min(SIZE - self.read.load(Ordering::Relaxed));
            if buffer.filled().is_empty() && piece == 0 {
                return Poll::Pending;
            }
            buffer.put_slice(&vec![b'x'; piece]);
            self.read.fetch_add(piece, Ordering::Relaxed);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Upload {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn input_of_other_connections_is_read_between_the_pieces_of_a_large_body() {
        let (mut client, mut connection) = UnixStream::pair().expect("a connection");
        client.write_all(b"x").await.expect("sent");
        let read = Arc::new(AtomicUsize::new(0));
        let of_large = Arc::clone(&read);
        let other = tokio::spawn(async move {
            connection.read_u8().await.expect("input");
            of_large.load(Ordering::Relaxed)
        });
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3145728\r\n\r\n";
        let upload = Box::new(Upload { head, read: Arc::clone(&read) });
        let limits = HeadLimits { head: 64 * 1024, buffer: 64 * 1024 };
        let done = Arc::new(Notify::new());
        let respond = {
            let done = Arc::clone(&done);
            move |request: Request<Incoming>| -> Answered {
                let done = Arc::clone(&done);
                Box::pin(async move {
                    assert_eq!(read_all(request.into_body()).await.len(), SIZE);
                    done.notify_one();
                    Ok(AnswerBody::response(Part::End))
                })
            }
        };
        tokio::spawn(serve_requests(upload, &Watch::new(TIMEOUTS), limits, respond));
        let read_before = other.await.expect("a task without a panic");
        assert!(read_before <= SIZE / 4, "{read_before} bytes came first");
        done.notified().await;
    }
}
