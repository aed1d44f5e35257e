//! Event streams: read until they end, and resumed when their connection breaks.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use tokio::sync::oneshot;

use super::{
    Shared, TaskReport,
    message::answers,
    reply::{HttpReply, Media, has_ended, next_chunk, rest},
};
use crate::{
    clock,
    error::{Error, ErrorKind},
    framing::{SseDecoder, SseItem},
    transport::off_thread::beside_other_tasks,
};

/// The delay before a stream is resumed, unless the server sets another one.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// The bounds of the delay that a server may set: a stream that ends at once must not make a client busy, nor keep it away
/// for days.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(5 * 60);
/// The maximum to which the delay grows by itself.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The maximum number of consecutive attempts without an event.
const MAX_ATTEMPTS: u32 = 5;
/// A stream that lived this long counts as a success, even without an event.
const MIN_STREAM_LIFETIME: Duration = Duration::from_secs(5);

/// A stream that may span several connections.
struct Events<'a> {
    shared: &'a Shared,
    /// The id of the request that the stream answers; `None` for the server's own stream.
    request: Option<u64>,
    decoder: SseDecoder,
    retry: Duration,
    /// The number of consecutive attempts without an event.
    attempts: u32,
}

/// The reason that a connection of a stream ended.
enum Ended {
    /// The response was received and forwarded.
    Answered,
    /// The response exceeds the size limit.
    TooLong,
    /// The connection ended before the response, with the reason.
    Early(String),
}

/// An item that ends a stream.
enum Found {
    Answer(Bytes),
    TooLong,
}

/// The outcome of an attempt to resume a stream.
enum Resumed {
    Stream(HttpReply),
    /// The server rejected the attempt.
    Refused(StatusCode),
    GivenUp(String),
}

/// Reads the stream of a request until the response arrives, and resumes it when the connection breaks.
pub(super) async fn answer(
    shared: &Shared,
    request: u64,
    reply: HttpReply,
    is_stateless: bool,
) -> Result<(), Error> {
    let mut events = Events::new(shared, Some(request));
    let mut reply = reply;
    loop {
        let why = match events.read(reply).await {
            Ended::Answered => return Ok(()),
            Ended::TooLong => return Err(super::too_long(shared.limit)),
            Ended::Early(why) => why,
        };
        let lost = |message: String| Err(Error::new(ErrorKind::Lost, message));
        if is_stateless || events.decoder.last_event_id().is_none() {
            return lost(format!("the response stream ended before the result: {why}"));
        }
        reply = match events.resume().await {
            Resumed::Stream(reply) => reply,
            Resumed::Refused(status) => {
                return lost(format!(
                    "the response stream broke before the result ({why}) and can't be resumed: HTTP {status}"
                ));
            }
            Resumed::GivenUp(why) => {
                return lost(format!("the response stream broke and could not be resumed: {why}"));
            }
        };
    }
}

/// Keeps a legacy server's stream for unsolicited messages open, if the server has one. `opened` is signalled after
/// the first attempt.
pub(super) async fn standalone(shared: Arc<Shared>, opened: oneshot::Sender<()>) {
    let session = shared.session();
    let mut events = Events::new(&shared, None);
    let first = shared.get(None).await;
    let _ = opened.send(());
    let mut reply = match first {
        Ok(reply) if reply.status.is_success() && reply.media() == Media::Events => reply,
        Ok(reply) if !reply.status.is_server_error() => {
            tracing::debug!(status = %reply.status, "the server offers no stream for notifications");
            return reply.discard().await;
        }
        _ => match events.resume().await {
            Resumed::Stream(reply) => reply,
            Resumed::Refused(_) | Resumed::GivenUp(_) => return,
        },
    };
    loop {
        let start = clock::now();
        events.read(reply).await;
        if clock::since(start) > MIN_STREAM_LIFETIME {
            events.attempts = 0;
        }
        reply = match (events.resume().await, session.clone()) {
            (Resumed::Stream(reply), _) => reply,
            (Resumed::Refused(StatusCode::NOT_FOUND), Some(session)) => {
                return shared.report(TaskReport::StreamGone(session)).await;
            }
            (Resumed::Refused(status), _) => {
                let why = format!(
                    "the server's stream for notifications broke and can't be reopened: HTTP {status}"
                );
                return shared.report(TaskReport::StreamLost(why)).await;
            }
            (Resumed::GivenUp(why), _) => {
                tracing::warn!(
                    why,
                    "the server's stream for notifications is lost, so changes are no longer reported"
                );
                let why = format!(
                    "the server's stream for notifications broke and could not be resumed: {why}"
                );
                return shared.report(TaskReport::StreamLost(why)).await;
            }
        };
    }
}

/// Opens the stream of an HTTP+SSE server. Returns the URL for messages, which its first event contains, and a future
/// that reads the rest.
pub(super) async fn endpoint(
    shared: &Arc<Shared>,
    reply: HttpReply,
) -> Result<(String, impl Future<Output = String> + use<>), String> {
    let HttpReply { mut body, lease, .. } = reply;
    let mut decoder = SseDecoder::new(shared.limit);
    let mut rest = Bytes::new();
    let address = loop {
        let mut chunk = &*rest;
        match decoder.next(&mut chunk) {
            Some(SseItem::Event { event: Some(event), data, .. }) if event == "endpoint" => {
                let used = rest.len() - chunk.len();
                rest = rest.slice(used..);
                break data;
            }
            Some(SseItem::Event { .. } | SseItem::TooLong) => {
                return Err("its stream does not begin with an endpoint event".into());
            }
            Some(SseItem::Retry(_)) => {
                let used = rest.len() - chunk.len();
                rest = rest.slice(used..);
            }
            None => match next_chunk(&mut body).await {
                Ok(Some(more)) => rest = more,
                Ok(None) => return Err("its stream ends before the endpoint event".into()),
                Err(error) => return Err(format!("its stream broke: {error}")),
            },
        }
    };
    let shared = Arc::clone(shared);
    let follow = async move {
        // Dropping the lease would close the connection.
        let _lease = lease;
        let mut events = Events { decoder, ..Events::new(&shared, None) };
        loop {
            events.take(&rest).await;
            rest = match next_chunk(&mut body).await {
                Ok(Some(more)) => more,
                Ok(None) => return "the server ended its stream of events".to_owned(),
                Err(error) => return format!("the stream of events broke: {error}"),
            };
        }
    };
    Ok((address, follow))
}

impl<'a> Events<'a> {
    fn new(shared: &'a Shared, request: Option<u64>) -> Self {
        let decoder = SseDecoder::new(shared.limit);
        Self { shared, request, decoder, retry: DEFAULT_RETRY, attempts: 0 }
    }

    /// Forwards the events of one connection.
    async fn read(&mut self, reply: HttpReply) -> Ended {
        let HttpReply { mut body, lease, .. } = reply;
        loop {
            match next_chunk(&mut body).await {
                Ok(Some(chunk)) => {
                    let Some(found) = self.take(&chunk).await else { continue };
                    // If the stream ends together with the response, the next request can reuse the connection.
                    let over = has_ended(&mut body).await;
                    let unread = match over {
                        true => {
                            lease.give_back().await;
                            None
                        }
                        false => Some((body, lease)),
                    };
                    let ended = match (found, self.request) {
                        (Found::Answer(frame), Some(id)) => {
                            self.shared.report(TaskReport::Answer { id, frame }).await;
                            Ended::Answered
                        }
                        _ => Ended::TooLong,
                    };
                    if let Some((body, lease)) = unread {
                        rest(body, lease).await;
                    }
                    return ended;
                }
                Ok(None) => {
                    lease.give_back().await;
                    return Ended::Early("the server ended the stream".into());
                }
                Err(error) => return Ended::Early(error.to_string()),
            }
        }
    }

    /// Forwards the events of a chunk, except one that ends the stream.
    async fn take(&mut self, mut chunk: &[u8]) -> Option<Found> {
        let mut found = None;
        while let Some(item) = self.decoder.next(&mut chunk) {
            match item {
                SseItem::Retry(wait) => self.retry = wait,
                SseItem::TooLong if self.request.is_some() => found = Some(Found::TooLong),
                SseItem::TooLong if self.shared.is_pair() => {
                    self.shared.report(TaskReport::TooLong).await;
                }
                SseItem::TooLong => {
                    tracing::warn!("dropped a message of the server that is too long");
                }
                SseItem::Event { event, data, .. } => {
                    self.attempts = 0;
                    let is_message = event.as_deref().is_none_or(|name| name == "message");
                    if data.is_empty() || !is_message {
                        continue;
                    }
                    let frame = Bytes::from(data);
                    match self.request {
                        Some(id) if beside_other_tasks(frame.len(), || answers(&frame, id)) => {
                            found = Some(Found::Answer(frame));
                        }
                        _ => self.shared.report(TaskReport::Frame(frame)).await,
                    }
                }
            }
        }
        found
    }

    /// Resumes the stream by a GET with the id of the last event (2025-11-25, "Resumability and Redelivery").
    async fn resume(&mut self) -> Resumed {
        self.decoder.restart();
        let mut why = "it ends repeatedly without an event".to_owned();
        while self.attempts < MAX_ATTEMPTS {
            tokio::time::sleep(delay(self.retry, self.attempts)).await;
            self.attempts += 1;
            match self.shared.get(self.decoder.last_event_id()).await {
                Ok(reply) if reply.status.is_success() && reply.media() == Media::Events => {
                    return Resumed::Stream(reply);
                }
                Ok(reply) if reply.status.is_server_error() => {
                    why = format!("HTTP {}", reply.status);
                    reply.discard().await;
                }
                Ok(reply) => {
                    let status = reply.status;
                    reply.discard().await;
                    return Resumed::Refused(status);
                }
                Err(error) => why = error.into_details().message,
            }
        }
        Resumed::GivenUp(why)
    }
}

/// Returns the delay before the next attempt: the server's, doubled by each attempt without an event.
fn delay(retry: Duration, attempts: u32) -> Duration {
    let retry = retry.clamp(MIN_RETRY, MAX_RETRY);
    retry.saturating_mul(1 << attempts).min(MAX_BACKOFF.max(retry))
}

impl Shared {
    /// Requests an event stream.
    pub(super) async fn get(&self, last_event: Option<&str>) -> Result<HttpReply, Error> {
        let mut headers = self.session_headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Some(id) = last_event {
            let value = HeaderValue::from_str(id).map_err(|_| {
                Error::new(ErrorKind::Protocol, "the server's event id can't be sent in a header")
            })?;
            headers.insert("last-event-id", value);
        }
        self.send(Method::GET, || headers.clone(), Bytes::new(), true).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_makes_a_client_neither_busy_nor_deaf() {
        let seconds = Duration::from_secs;
        for (retry, attempts, wait) in [
            (Duration::ZERO, 0, Duration::from_millis(100)),
            (Duration::ZERO, 4, Duration::from_millis(1_600)),
            (seconds(1), 0, seconds(1)),
            (seconds(1), 2, seconds(4)),
            (seconds(20), 4, seconds(30)),
            (seconds(60), 4, seconds(60)),
            (Duration::from_millis(u32::MAX.into()), 0, seconds(300)),
        ] {
            assert_eq!(delay(retry, attempts), wait, "{retry:?}, {attempts}");
        }
    }
}
