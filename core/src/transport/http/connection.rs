//! A connection on which a client sends HTTP requests. All clients use the same types, because hyper's code is compiled
//! once for each.

use std::{future::poll_fn, pin::Pin};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, SendRequest},
};
use tokio::task::AbortHandle;

use super::{HyperIo, body::Whole};
use crate::{driver::boxed, transport::ByteStream};

/// Sends requests on a stream. `max_head` is the maximum size of a response's head, in bytes.
///
/// The task that the handle aborts reads and writes. It ends with the sender, or once the stream has another protocol.
pub(crate) async fn open(
    stream: Box<dyn ByteStream>,
    max_head: usize,
) -> Result<(SendRequest<Whole>, AbortHandle), hyper::Error> {
    let (sender, connection) =
        Builder::new().max_buf_size(max_head).handshake(HyperIo::new(stream)).await?;
    let task = tokio::spawn(boxed(async move {
        if let Err(error) = connection.with_upgrades().await {
            // Pending requests on the connection get the error as well.
            tracing::trace!(%error, "a connection ended");
        }
    }));
    Ok((sender, task.abort_handle()))
}

/// Returns the stream after a response that ends HTTP on it, and the bytes that followed the response.
pub(crate) async fn upgraded(
    response: Response<Incoming>,
) -> Result<(Box<dyn ByteStream>, Bytes), hyper::Error> {
    let upgraded = hyper::upgrade::on(response).await?;
    match upgraded.downcast::<HyperIo<Box<dyn ByteStream>>>() {
        Ok(parts) => Ok((parts.io.into_inner(), parts.read_buf)),
        Err(_) => unreachable!("`open` makes all connections, from this type of stream"),
    }
}

/// The end of a body that was read.
#[derive(Debug)]
pub(crate) enum BodyEnd {
    Complete,
    /// The body is larger than the limit.
    TooLarge,
    Broken(hyper::Error),
}

/// Appends a body to `read`, which is at most `limit` bytes long afterwards.
pub(crate) async fn read_body(mut body: Incoming, limit: usize, read: &mut Vec<u8>) -> BodyEnd {
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let data = match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(_)) => continue,
            Err(error) => return BodyEnd::Broken(error),
        };
        let room = limit - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return BodyEnd::TooLarge;
        }
    }
    BodyEnd::Complete
}
