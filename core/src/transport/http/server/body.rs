//! Reads the body of a request, with limits of size and time.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body, Frame};
use tokio::time::error::Elapsed;

use crate::{driver::Holding, http::Refused, transport::timeouts::Timeouts};

/// The time to keep reading a body over the limit, so that the client can read the error response.
const DRAIN: Duration = Duration::from_secs(1);
/// The number of bytes to keep reading, as a multiple of the limit.
const DRAIN_FACTOR: usize = 4;

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
    let mut begun = None;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let read = first.len() + rest.len();
        let time_limit =
            || timeouts.for_rest(read, begun.get_or_insert_with(Instant::now).elapsed());
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
