//! The response of a route, made of its handler's reply.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Deserialize;

use super::{Failure, Reply, handler::bad_result};

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// The headers that the server writes itself: those of the connection, and the length.
const OWN: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A response as handlers write it. The body is `body`, or base64 in `blob`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    status: Option<u16>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    blob: Option<String>,
}

/// Converts a reply: a string, bytes and JSON have status 200 and their media type, nothing has 204, and a complete result is
/// `{"status", "headers", "body" or "blob"}`.
pub(super) fn from_reply(reply: Reply) -> Result<Response<Vec<u8>>, Failure> {
    match reply {
        Reply::Nothing => Ok(empty(StatusCode::NO_CONTENT)),
        Reply::Text(text) => Ok(with_type(PLAIN, text.into_bytes())),
        Reply::Json(json) => Ok(with_type(JSON, json.into_bytes())),
        Reply::Blob(base64) => Ok(with_type(BYTES, bytes(&base64)?)),
        Reply::Result(json) => complete(&json),
        Reply::Parts(_) => Err(bad_result("a route does not return content of tools")),
        Reply::Questions(_) => {
            Err(bad_result("a route has no client that could be asked, and returned questions"))
        }
    }
}

/// Returns a response with a text.
pub(super) fn plain(status: StatusCode, text: &str) -> Response<Vec<u8>> {
    let mut response = with_type(PLAIN, text.as_bytes().to_vec());
    *response.status_mut() = status;
    response
}

fn complete(json: &str) -> Result<Response<Vec<u8>>, Failure> {
    let written: Written = serde_json::from_str(json)
        .map_err(|error| bad_result(format!("the response can't be read: {error}")))?;
    let status = written.status.unwrap_or(200);
    let status = match StatusCode::from_u16(status) {
        Ok(code) if (200..=599).contains(&status) => code,
        _ => {
            return Err(bad_result(format!(
                "{status} is not the status of a response; return one from 200 to 599"
            )));
        }
    };
    let (media_type, body) = match (written.body, written.blob) {
        (_, Some(base64)) => (BYTES, bytes(&base64)?),
        (text, None) => (PLAIN, text.unwrap_or_default().into_bytes()),
    };
    let mut response = match has_body(status) && !body.is_empty() {
        true => with_type(media_type, body),
        false => empty(status),
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let has_own_type =
        written.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if has_own_type {
        headers.remove(header::CONTENT_TYPE);
    }
    for (name, value) in &written.headers {
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(bad_result(format!("{name:?} is not the name of a header")));
        };
        if !OWN.contains(&parsed.as_str()) {
            headers.append(parsed, value_of(name, value)?);
        }
    }
    Ok(response)
}

/// Reads the value of a header, whose characters are bytes as in Latin-1.
fn value_of(name: &str, value: &str) -> Result<HeaderValue, Failure> {
    let bytes: Option<Vec<u8>> =
        value.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect();
    let parsed = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
    parsed.ok_or_else(|| {
        bad_result(format!(
            "the header {name:?} has a value with a line break or a character beyond Latin-1"
        ))
    })
}

fn bytes(base64: &str) -> Result<Vec<u8>, Failure> {
    STANDARD.decode(base64).map_err(|error| bad_result(format!("the body is not base64: {error}")))
}

/// Returns whether a response with this status may have a body (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
fn has_body(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}

fn with_type(media_type: HeaderValue, body: Vec<u8>) -> Response<Vec<u8>> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

fn empty(status: StatusCode) -> Response<Vec<u8>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
}
