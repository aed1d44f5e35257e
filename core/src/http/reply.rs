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
            let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            for range in text.split(',') {
                let mut parts = range.split(';').map(str::trim);
                let media = parts.next().unwrap_or_default();
                let takes = !parts.any(is_never);
                let found = |rank| Some((rank, takes));
                match media {
                    "application/json" => json = json.max(found(3)),
                    "text/event-stream" => stream = stream.max(found(3)),
                    "application/*" => json = json.max(found(2)),
                    "text/*" => stream = stream.max(found(2)),
                    "*/*" => {
                        json = json.max(found(1));
                        stream = stream.max(found(1));
                    }
                    _ => (),
                }
            }
        }
        let takes = |range: Option<(u8, bool)>| range.map_or(!said, |(_, takes)| takes);
        Self { json: takes(json), stream: takes(stream) }
    }
}

/// Returns whether a parameter of a media range excludes it.
fn is_never(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").map(str::trim);
    weight.is_some_and(|weight| {
        weight.starts_with('0') && weight.trim_end_matches(['0', '.']).is_empty()
    })
}

/// Returns whether `Content-Type` is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    })
}

/// Returns whether a body is compressed, or encoded in another way.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|encodings| {
        let text = String::from_utf8_lossy(encodings.as_bytes());
        text.split(',').any(|encoding| {
            !matches!(encoding.trim().to_ascii_lowercase().as_str(), "" | "identity")
        })
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
