//! The pieces of which answers consist.

use http::{HeaderMap, StatusCode};

use super::{reply, requests};

/// A piece of an answer.
#[derive(Debug)]
pub enum Part {
    /// The first part, sent once. With `more`, a stream follows.
    Head { status: StatusCode, headers: HeaderMap, body: Vec<u8>, more: bool },
    /// More of the stream; on a message connection, one frame.
    Bytes(Vec<u8>),
    /// The stream is complete; a message connection is to be closed.
    End,
}

impl Part {
    /// Returns the answer instead of one for which there is no room, because too many answers are unread.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn without_room(length: usize) -> Self {
        let message = format!(
            "the request was handled, but its answer of {length} bytes can't be sent: too many bytes of answers wait \
             to be read"
        );
        let (headers, body) = (reply::json_head(), reply::refusal_body(&message));
        Self::Head { status: StatusCode::SERVICE_UNAVAILABLE, headers, body, more: false }
    }

    /// Returns the answer to a request that can't be served at the moment.
    pub(crate) fn unavailable(message: &str) -> Self {
        let (headers, body) = (requests::wait_head(), reply::refusal_body(message));
        Self::Head { status: StatusCode::SERVICE_UNAVAILABLE, headers, body, more: false }
    }
}
