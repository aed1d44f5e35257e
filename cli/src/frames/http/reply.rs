//! HTTP responses: JSON, or a stream of events that lasts until the response to a request.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use gudgeon::{framing::sse, protocol::code};
use hyper::{
    Response, StatusCode,
    body::{Body, Bytes, Frame},
    header,
};
use tokio::sync::mpsc;

use super::channel::{Event, Pending};
use crate::frames::message::{RawObject, error};

pub(super) type Reply = Response<ReplyBody>;

/// The body of a response.
pub(super) enum ReplyBody {
    /// Nothing is left.
    Empty,
    Whole(Bytes),
    Events {
        /// An event that was received before the stream began.
        first: Option<Event>,
        events: Events,
    },
}

/// The source of a stream.
pub(super) enum Events {
    Request(Pending),
    Own(mpsc::UnboundedReceiver<Event>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = match &mut *self {
            Self::Empty => return Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Self::Events { first, events } => match first.take() {
                Some(event) => Some(event),
                None => match events.receiver().poll_recv(context) {
                    Poll::Ready(event) => event,
                    Poll::Pending => return Poll::Pending,
                },
            },
        };
        let Some(event) = event else {
            *self = Self::Empty;
            return Poll::Ready(None);
        };
        let mut bytes = Vec::new();
        match event {
            Event::Message(frame) => sse::event(&mut bytes, None, &frame),
            Event::Response(frame) => {
                sse::event(&mut bytes, None, &frame);
                *self = Self::Empty;
            }
        }
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }
}

impl Events {
    fn receiver(&mut self) -> &mut mpsc::UnboundedReceiver<Event> {
        match self {
            Self::Request(pending) => &mut pending.events,
            Self::Own(events) => events,
        }
    }
}

/// Returns the response to a request: JSON if the server's first message is the response, or if the client accepts nothing
/// else, otherwise a stream.
pub(super) async fn answer(mut pending: Pending, accepts_stream: bool, is_modern: bool) -> Reply {
    loop {
        match pending.events.recv().await {
            Some(Event::Response(frame)) => {
                let status = if is_modern { status(&frame) } else { StatusCode::OK };
                return json(status, frame);
            }
            Some(event) if accepts_stream => {
                return stream(Some(event), Events::Request(pending));
            }
            // A client that accepts no stream gets no notifications.
            Some(Event::Message(_)) => (),
            None => return refuse(StatusCode::BAD_GATEWAY, None, "the server has ended"),
        }
    }
}

/// Returns a stream of events.
pub(super) fn stream(first: Option<Event>, events: Events) -> Reply {
    let mut reply = Response::new(ReplyBody::Events { first, events });
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache"));
    reply
}

pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(ReplyBody::Whole(body.into()));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    reply
}

/// Returns a response without a body.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::Empty);
    *reply.status_mut() = status;
    reply
}

/// Returns a rejection, with a JSON-RPC error for the request with this id.
pub(super) fn refuse(status: StatusCode, id: Option<&str>, why: &str) -> Reply {
    let code = match status {
        StatusCode::BAD_GATEWAY => code::INTERNAL_ERROR,
        _ => code::INVALID_REQUEST,
    };
    json(status, error(id.unwrap_or("null"), code, why))
}

/// Returns the status of a response of the revisions from 2026-07-28 on (spec: Streamable HTTP, "Status codes").
fn status(response: &[u8]) -> StatusCode {
    let error = RawObject::parse(response).and_then(|response| response.object("error"));
    let number = error.and_then(|error| error.get("code")?.get().parse().ok());
    match number {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::INVALID_PARAMS
            | code::HEADER_MISMATCH
            | code::MISSING_REQUIRED_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION,
        ) => StatusCode::BAD_REQUEST,
        Some(code::INTERNAL_ERROR) => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    }
}
