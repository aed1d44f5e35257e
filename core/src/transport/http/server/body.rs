//! Reads the body of a request, with limits of size and time.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;

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
    let begun = Instant::now();
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let read = first.len() + rest.len();
        let time = timeouts.for_rest(read, begun.elapsed());
        let frame = poll_fn(|context| body.as_mut().poll_frame(context));
        let frame = match tokio::time::timeout(time, frame).await {
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
