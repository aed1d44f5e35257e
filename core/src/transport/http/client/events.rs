//! Streams of events: read to their end, and taken up again where they broke.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use tokio::sync::oneshot;

use super::{
    News, Shared,
    message::answers,
    reply::{Media, Reply, has_ended, next_chunk, rest},
};
use crate::{
    error::{Error, ErrorKind},
    framing::{SseDecoder, SseItem},
};

/// How long to wait before a stream is taken up again, unless the server says otherwise.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// Nobody is asked again sooner, whatever the server says, nor made to wait longer by our own patience.
const MIN_RETRY: Duration = Duration::from_millis(20);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Attempts in a row that bring nothing.
const MAX_ATTEMPTS: u32 = 5;
/// A stream that lived for so long was worth opening, even if nothing came.
const WORTHWHILE: Duration = Duration::from_secs(5);

/// One stream, across the connections that carry it.
struct Events<'a> {
    shared: &'a Shared,
    /// The request that it answers.
    request: Option<u64>,
    decoder: SseDecoder,
    retry: Duration,
    /// Attempts in a row that brought nothing.
    attempts: u32,
}

/// How one connection of a stream ended.
enum Ended {
    /// With the answer, which was passed on.
    Answered,
    /// The answer is too long to be taken.
    TooLong,
    /// Before the answer, and why.
    Early(String),
}

/// What ends a stream.
enum Found {
    Answer(Bytes),
    TooLong,
}

/// What became of an attempt to take up a stream.
enum Resumed {
    Stream(Reply),
    /// The server will not have it.
    Refused(StatusCode),
    GivenUp(String),
}

/// Reads the stream that answers a request until the answer came, however often the connection breaks.
pub(super) async fn answer(
    shared: &Shared,
    request: u64,
    reply: Reply,
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
            return lost(format!("the reply ended before the answer: {why}"));
        }
        reply = match events.resume().await {
            Resumed::Stream(reply) => reply,
            Resumed::Refused(status) => {
                return lost(format!(
                    "the reply broke before the answer ({why}) and can't be taken up again: HTTP {status}"
                ));
            }
            Resumed::GivenUp(why) => {
                return lost(format!("the reply broke and could not be taken up again: {why}"));
            }
        };
    }
}

/// Keeps the stream open on which a legacy server speaks unasked, if it has one. `opened` hears of the first attempt.
pub(super) async fn standalone(shared: Arc<Shared>, opened: oneshot::Sender<()>) {
    let session = shared.session();
    let mut events = Events::new(&shared, None);
    let first = shared.get(None).await;
    let _ = opened.send(());
    let mut reply = match first {
        Ok(reply) if reply.status.is_success() && reply.media() == Media::Events => reply,
        Ok(reply) if !reply.status.is_server_error() => {
            tracing::debug!(status = %reply.status, "the server has no stream of its own");
            return reply.discard().await;
        }
        _ => match events.resume().await {
            Resumed::Stream(reply) => reply,
            Resumed::Refused(_) | Resumed::GivenUp(_) => return,
        },
    };
    loop {
        let start = Instant::now();
        events.read(reply).await;
        if start.elapsed() > WORTHWHILE {
            events.attempts = 0;
        }
        reply = match (events.resume().await, session.clone()) {
            (Resumed::Stream(reply), _) => reply,
            (Resumed::Refused(StatusCode::NOT_FOUND), Some(session)) => {
                return shared.tell(News::StreamGone(session)).await;
            }
            (Resumed::Refused(status), _) => {
                let why =
                    format!("the server's own stream broke, and it opens no other: HTTP {status}");
                return shared.tell(News::StreamLost(why)).await;
            }
            (Resumed::GivenUp(why), _) => {
                tracing::warn!(why, "the server's own stream is lost: changes go unnoticed");
                let why =
                    format!("the server's own stream broke and could not be taken up again: {why}");
                return shared.tell(News::StreamLost(why)).await;
            }
        };
    }
}

/// The stream of an HTTP+SSE server: its first event names where messages go. The rest is read by the future.
pub(super) async fn endpoint(
    shared: &Arc<Shared>,
    reply: Reply,
) -> Result<(String, impl Future<Output = String> + use<>), String> {
    let Reply { mut body, lease, .. } = reply;
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
        // Held, for dropping it would close the connection.
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

    /// Passes on what one connection brings.
    async fn read(&mut self, reply: Reply) -> Ended {
        let Reply { mut body, lease, .. } = reply;
        loop {
            match next_chunk(&mut body).await {
                Ok(Some(chunk)) => {
                    let Some(found) = self.take(&chunk).await else { continue };
                    // Where the stream ends with the answer, the next call finds its connection free.
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
                            self.shared.tell(News::Answer { id, frame }).await;
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

    /// Passes on the events in a chunk, but for what ends the stream.
    async fn take(&mut self, mut chunk: &[u8]) -> Option<Found> {
        let mut found = None;
        while let Some(item) = self.decoder.next(&mut chunk) {
            match item {
                SseItem::Retry(wait) => self.retry = wait,
                SseItem::TooLong => {
                    self.shared.tell(News::TooLong).await;
                    if self.request.is_some() {
                        found = Some(Found::TooLong);
                    }
                }
                SseItem::Event { event, data, .. } => {
                    self.attempts = 0;
                    let is_message = event.as_deref().is_none_or(|it| it == "message");
                    if data.is_empty() || !is_message {
                        continue;
                    }
                    let frame = Bytes::from(data);
                    match self.request {
                        Some(id) if answers(&frame, id) => {
                            found = Some(Found::Answer(frame));
                        }
                        _ => self.shared.tell(News::Frame(frame)).await,
                    }
                }
            }
        }
        found
    }

    /// Takes the stream up again with a GET that names the last event (2025-11-25, "Resumability and Redelivery").
    async fn resume(&mut self) -> Resumed {
        self.decoder.restart();
        let mut why = "it ends again and again without an event".to_owned();
        while self.attempts < MAX_ATTEMPTS {
            let patience = self.retry.max(MIN_RETRY).saturating_mul(1 << self.attempts);
            tokio::time::sleep(patience.min(MAX_BACKOFF.max(self.retry))).await;
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
                Err(error) => why = error.message,
            }
        }
        Resumed::GivenUp(why)
    }
}

impl Shared {
    /// Asks for a stream of events.
    pub(super) async fn get(&self, last_event: Option<&str>) -> Result<Reply, Error> {
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
