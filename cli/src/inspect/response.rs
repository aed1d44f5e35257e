//! Responses and their bodies.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde::Serialize;
use tokio::sync::mpsc;

use super::guard::protect;

/// A body in pieces that are there, or that come.
pub enum Pieces {
    Ready(std::vec::IntoIter<Bytes>),
    Coming(mpsc::Receiver<Bytes>),
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Ready(pieces) => pieces.next(),
            Self::Coming(pieces) => ready!(pieces.poll_recv(context)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Ready(pieces) => {
                SizeHint::with_exact(pieces.as_slice().iter().map(|piece| piece.len() as u64).sum())
            }
            Self::Coming(_) => SizeHint::new(),
        }
    }
}

/// Returns a response with the headers that each has.
pub fn response(status: StatusCode, media_type: &'static str, body: Pieces) -> Response<Pieces> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    protect(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Returns a response with this text. Unless it is an HTML page, browsers do not run it.
pub fn text(
    status: StatusCode,
    media_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Pieces> {
    response(status, media_type, Pieces::Ready(vec![text.into()].into_iter()))
}

pub fn json(status: StatusCode, value: &impl Serialize) -> Response<Pieces> {
    text(status, "application/json", serde_json::to_vec(value).unwrap_or_default())
}
