//! HTTP responses: media type, body, and errors.

use std::{future::Future, task::Poll, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use hyper::body::{Body, Incoming};

use super::{pool::Lease, unauthorized::Credentials};
use crate::{
    error::{Error, ErrorKind, Language},
    protocol::{ErrorObject, Frame, Message, code},
};

/// The limits for reading the body of an error response: bytes and time.
const MAX_REFUSAL: usize = 64 * 1024;
const REFUSAL_TIME: Duration = Duration::from_secs(5);
/// The limits for reading the unused rest of a body, so that the connection can be reused: bytes and time.
const MAX_REST: usize = 64 * 1024;
const REST_TIME: Duration = Duration::from_secs(1);
/// The maximum number of bytes that are allocated before they arrive.
const MAX_RESERVED: usize = 1024 * 1024;
/// The number of characters of an error response that a message quotes.
const SHOWN: usize = 200;

/// A response whose body is not read yet.
#[derive(Debug)]
pub(super) struct HttpReply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Incoming,
    pub(super) lease: Lease,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Media {
    Json,
    Events,
    Other,
}

/// The reason that a body could not be read.
#[derive(Debug)]
pub(super) enum Unread {
    TooLong,
    Broken(hyper::Error),
}

impl HttpReply {
    pub(super) fn media(&self) -> Media {
        let value = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Media::Json
        } else if essence.eq_ignore_ascii_case("text/event-stream") {
            Media::Events
        } else {
            Media::Other
        }
    }

    /// Reads the complete body, up to `limit` bytes.
    pub(super) async fn collect(self, limit: usize) -> Result<Bytes, Unread> {
        let Self { mut body, lease, .. } = self;
        if body.size_hint().lower() > limit as u64 {
            return Err(Unread::TooLong);
        }
        // The server may name any length.
        let length = usize::try_from(body.size_hint().lower()).unwrap_or_default();
        let (mut whole, mut rest) = (Bytes::new(), Vec::new());
        while let Some(chunk) = next_chunk(&mut body).await.map_err(Unread::Broken)? {
            if whole.len() + rest.len() + chunk.len() > limit {
                return Err(Unread::TooLong);
            }
            // Most bodies consist of one chunk, which is then not copied.
            if whole.is_empty() && rest.is_empty() {
                whole = chunk;
            } else {
                if rest.is_empty() {
                    rest.reserve(length.min(MAX_RESERVED));
                }
                rest.extend_from_slice(&std::mem::take(&mut whole));
                rest.extend_from_slice(&chunk);
            }
        }
        lease.give_back().await;
        Ok(if rest.is_empty() { whole } else { rest.into() })
    }

    /// Reads and drops the body.
    pub(super) async fn discard(self) {
        rest(self.body, self.lease).await;
    }

    /// Reads an error response to a request with these credentials. Returns its JSON-RPC error, if it has one, and the error for the caller.
    pub(super) async fn refusal(self, sent: Credentials) -> (Option<ErrorObject>, Error) {
        let (status, headers) = (self.status, self.headers.clone());
        let body = tokio::time::timeout(REFUSAL_TIME, self.collect(MAX_REFUSAL)).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        let mut error = refused(status, &headers, &body, sent);
        if let Some(wait) = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()) {
            error = error.with_hint(format!("the server asks to retry after {wait} s"));
        }
        (json_rpc_error(&body), error)
    }
}

/// Reads a body to its end within limits, so that its connection can be reused.
pub(super) async fn rest(mut body: Incoming, lease: Lease) {
    let read = async {
        let mut size = 0;
        loop {
            match next_chunk(&mut body).await {
                Ok(Some(chunk)) if size + chunk.len() <= MAX_REST => size += chunk.len(),
                Ok(Some(_)) | Err(_) => return false,
                Ok(None) => return true,
            }
        }
    };
    if tokio::time::timeout(REST_TIME, read).await == Ok(true) {
        lease.give_back().await;
    }
}

/// Returns whether a body has ended already. Bytes that are available instead are dropped.
pub(super) async fn has_ended(body: &mut Incoming) -> bool {
    std::future::poll_fn(|context| {
        let next = std::pin::pin!(next_chunk(body)).poll(context);
        Poll::Ready(matches!(next, Poll::Ready(Ok(None))))
    })
    .await
}

/// Returns the next bytes of a body, or `None` at its end.
pub(super) async fn next_chunk(body: &mut Incoming) -> Result<Option<Bytes>, hyper::Error> {
    loop {
        let frame =
            std::future::poll_fn(|context| std::pin::Pin::new(&mut *body).poll_frame(context))
                .await;
        match frame {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame?.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn json_rpc_error(body: &[u8]) -> Option<ErrorObject> {
    match Frame::parse(body) {
        Frame::One(Ok(Message::Response { outcome: Err(error), .. })) => Some(error),
        _ => None,
    }
}

/// Returns whether only modern servers return this error.
pub(super) fn is_modern(error: Option<&ErrorObject>) -> bool {
    error.is_some_and(|error| code::is_modern(error.code))
}

/// Returns the error for an HTTP status other than success.
pub(crate) fn refused(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    sent: Credentials,
) -> Error {
    let kind = match status.as_u16() {
        401 | 403 => ErrorKind::Auth,
        408 | 429 | 500.. => ErrorKind::Lost,
        _ => ErrorKind::Protocol,
    };
    let mut message = format!("HTTP {status}");
    let said = match json_rpc_error(body) {
        Some(error) => words(error.message.as_bytes()),
        None => words(body),
    };
    if !said.is_empty() {
        message = format!("{message}: {said}");
    }
    if status == StatusCode::UNAUTHORIZED && sent == Credentials::Given {
        message.push_str("; the server rejected the credentials");
    }
    let hint = match status.as_u16() {
        401 => Some(sent.hint(Language::of_build())),
        404 | 405 => Some("check the path: many servers use /mcp, older ones /sse"),
        300..=399 => Some("connect to the URL that the server redirects to"),
        _ => None,
    };
    let error = Error::new(kind, message).with(|details| {
        details.http_status = Some(status.as_u16());
        details.www_authenticate = challenges(headers);
    });
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Returns all `WWW-Authenticate` headers as one, as RFC 9110 allows to combine them.
fn challenges(headers: &HeaderMap) -> Option<String> {
    let all =
        headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    Some(all.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

/// Returns the beginning of a body on one line.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN * 4)]);
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = joined.chars().filter(|character| !character.is_control());
    let mut shown: String = plain.clone().take(SHOWN).collect();
    if plain.count() > SHOWN {
        shown.push('…');
    }
    shown
}
