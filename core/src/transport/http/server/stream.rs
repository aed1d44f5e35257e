//! Writes a long-lived response without hyper's per-connection buffers, because there may be many such connections.

use std::{future::poll_fn, io, pin::pin};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::watch::Receiver,
};

use super::{
    answer::AnswerBody,
    watch::{Watch, Watched},
};
use crate::{
    clock,
    transport::listen::{Stage, closed},
};

/// The response owns the connection until its end.
const FRAMING: &[u8] = b"transfer-encoding: chunked\r\nconnection: close\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Encodes the head of a response.
pub(super) fn head(answer: &Response<AnswerBody>) -> Vec<u8> {
    let mut head = lines(answer);
    head.extend_from_slice(b"\r\n");
    head
}

fn lines(answer: &Response<AnswerBody>) -> Vec<u8> {
    let status = answer.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let date = httpdate::fmt_http_date(clock::date());
    let mut head =
        format!("HTTP/1.1 {} {reason}\r\ndate: {date}\r\n", status.as_str()).into_bytes();
    for (name, value) in answer.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head
}

/// Writes the response until it is complete or the client disconnects.
pub(super) async fn write<S>(
    mut io: Watched<S>,
    answer: Response<AnswerBody>,
    watch: &Watch,
    stage: &mut Receiver<Stage>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut bytes = lines(&answer);
    bytes.extend_from_slice(FRAMING);
    bytes.extend_from_slice(b"\r\n");
    let mut body = pin!(answer.into_body());
    let mut expired = pin!(watch.expired());
    let mut ignored = [0; 64];
    loop {
        tokio::select! {
            biased;
            frame = poll_fn(|context| body.as_mut().poll_frame(context)) => {
                // Kept until it is written, because so long it is counted.
                let data = match frame {
                    Some(Ok(frame)) => frame.into_data().ok(),
                    Some(Err(_)) => return,
                    None => None,
                };
                let is_last = data.is_none();
                match &data {
                    Some(data) => push_chunk(data, &mut bytes),
                    None => bytes.extend_from_slice(LAST_CHUNK),
                }
                let written = async {
                    io.write_all(&std::mem::take(&mut bytes)).await?;
                    if is_last { io.shutdown().await } else { io.flush().await }
                };
                let written: io::Result<()> = tokio::select! {
                    written = written => written,
                    () = expired.as_mut() => return,
                    () = closed(stage) => return,
                };
                if is_last || written.is_err() {
                    return;
                }
            }
            // A client sends nothing more on the connection of a stream; reading detects that it disconnected.
            read = io.read(&mut ignored) => if !matches!(read, Ok(1..)) {
                return;
            },
            () = expired.as_mut() => return,
            () = closed(stage) => return,
        }
    }
}

fn push_chunk(data: &Bytes, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"\r\n");
}
