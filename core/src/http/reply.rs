//! The form of an HTTP response: JSON or a stream of events, decided as late as possible, because the status of an
//! error that a handler raises is lost once a stream has begun.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::{
    error::Fault,
    protocol::{Id, code, json::ObjectWriter},
    wire::{self, Lowered, Wire},
};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The media ranges of `Accept` that matter here: how specific each is, and whether it includes JSON and streams.
const RANGES: [(&[u8], u8, bool, bool); 5] = [
    (b"application/json", 3, true, false),
    (b"text/event-stream", 3, false, true),
    (b"application/*", 2, true, false),
    (b"text/*", 2, false, true),
    (b"*/*", 1, true, true),
];

/// The media types that the client accepts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) stream: bool,
}

impl Accepts {
    /// Reads `Accept`. Without it everything is accepted; the most specific range counts (RFC 9110, "Accept").
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let (mut json, mut stream) = (None, None);
        let mut said = false;
        for value in headers.get_all(header::ACCEPT) {
            said = true;
            for range in parts(value.as_bytes(), b',') {
                let mut parts = parts(range, b';');
                let media = parts.next().unwrap_or_default();
                let takes = !parts.any(is_never);
                for (range, rank, is_for_json, is_for_stream) in RANGES {
                    if media.eq_ignore_ascii_case(range) {
                        json = json.max(is_for_json.then_some((rank, takes)));
                        stream = stream.max(is_for_stream.then_some((rank, takes)));
                    }
                }
            }
        }
        let takes = |range: Option<(u8, bool)>| range.map_or(!said, |(_, takes)| takes);
        Self { json: takes(json), stream: takes(stream) }
    }
}

/// Returns the parts of a header's value, without the white space around each.
fn parts(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    value.split(move |byte| *byte == separator).map(<[u8]>::trim_ascii)
}

/// Returns whether a parameter of a media range excludes it.
fn is_never(parameter: &[u8]) -> bool {
    let [b'q' | b'Q', b'=', weight @ ..] = parameter else { return false };
    let weight = weight.trim_ascii();
    weight.starts_with(b"0") && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Returns whether `Content-Type` is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        let media = parts(value.as_bytes(), b';').next();
        media.is_some_and(|media| media.eq_ignore_ascii_case(b"application/json"))
    })
}

/// Returns whether a body is compressed, or encoded in another way.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|encodings| {
        parts(encodings.as_bytes(), b',')
            .any(|encoding| !(encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity")))
    })
}

pub(super) fn json_head() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers
}

pub(super) fn stream_head() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    headers
}

/// Returns the body of a refusal without a request id.
pub(super) fn refusal_body(message: &str) -> Vec<u8> {
    error_body(code::INVALID_REQUEST, None, message)
}

/// Returns the body of a refusal after the request was read; the error names its id (Overview, "Error Responses").
pub(super) fn refusal_of(request: Option<&Id>, message: &str) -> Vec<u8> {
    error_body(code::INVALID_REQUEST, request, message)
}

/// Returns the body of the answer to a request that fails with an internal error.
pub(super) fn failure_body(message: &str) -> Vec<u8> {
    error_body(code::INTERNAL_ERROR, None, message)
}

fn error_body(code: i64, request: Option<&Id>, message: &str) -> Vec<u8> {
    let mut error = ObjectWriter::with_capacity(message.len() + 32);
    error.member("code", &code).member("message", message);
    let mut body = ObjectWriter::with_capacity(message.len() + 64);
    body.raw("jsonrpc", r#""2.0""#);
    if let Some(id) = request {
        body.raw("id", id.as_json());
    }
    body.raw("error", &error.finish());
    body.finish().into_bytes()
}

/// Returns the status and body of the answer to a fault; `None` if the fault has no answer.
pub(super) fn fault(
    wire: &'static Wire,
    request: Option<&Id>,
    fault: Fault,
) -> Option<(StatusCode, Vec<u8>)> {
    let Lowered::Error(error) = wire::lower_fault(wire, None, fault) else { return None };
    Some((wire::status(error.code), wire::error_frame(wire, request, &error)))
}

/// Returns the status of a reply in a session: errors of a request have status 200, like results.
pub(super) fn legacy_status(error: Option<i64>) -> StatusCode {
    match error {
        Some(code::PARSE_ERROR | code::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_takes_is_the_most_specific_of_what_it_says() {
        let accepts = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT, value.parse().expect("a value"));
            }
            let Accepts { json, stream } = Accepts::from_headers(&headers);
            (json, stream)
        };
        assert_eq!(accepts(&[]), (true, true));
        assert_eq!(accepts(&["*/*"]), (true, true));
        assert_eq!(accepts(&["application/json", "Text/Event-Stream ; q=0.1"]), (true, true));
        assert_eq!(accepts(&["application/json;charset=utf-8"]), (true, false));
        assert_eq!(accepts(&["text/*, image/png"]), (false, true));
        assert_eq!(accepts(&["text/html"]), (false, false));
        assert_eq!(accepts(&[""]), (false, false));
        assert_eq!(accepts(&["application/json;q=0, text/event-stream"]), (false, true));
        assert_eq!(accepts(&["*/*, text/event-stream;q=0.000"]), (true, false));
        assert_eq!(accepts(&["text/event-stream;q=0", "*/*;q=0.8"]), (true, false));
        assert_eq!(accepts(&["application/json;q=0.001, */*;q=0"]), (true, false));
        assert_eq!(accepts(&["application/json; q=0"]), (false, false));
    }
}
