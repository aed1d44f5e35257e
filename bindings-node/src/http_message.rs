//! HTTP messages as JavaScript gives and takes them.

use gudgeon::http::Part;
use http::{HeaderName, HeaderValue, Method, Uri, request::Parts};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

/// A piece of an answer.
#[napi(object)]
pub struct NativePart {
    /// The number of the request.
    pub request: f64,
    /// Present in the first part only, like the headers: names and values in turn.
    pub status: Option<u16>,
    pub headers: Option<Vec<String>>,
    pub body: Option<Buffer>,
    /// `true` if more parts of this response follow.
    pub more: bool,
    /// `true` if the host must report by `unread` how much of the response is not read.
    pub counted: bool,
    /// `true` if the connection must be closed, because there is no room for the rest of the response.
    pub cut: bool,
}

/// Returns the bytes of content in a part.
pub(crate) fn length(part: &Part) -> usize {
    match part {
        Part::Head { body, .. } => body.len(),
        Part::Bytes(bytes) => bytes.len(),
        Part::End => 0,
    }
}

/// Returns the part that tells the host to close the connection.
pub(crate) fn cut(request: f64) -> NativePart {
    NativePart { cut: true, ..piece(request, Part::End, false) }
}

/// Returns a part of the response to a request of the host.
pub(crate) fn piece(request: f64, part: Part, counted: bool) -> NativePart {
    let body = |bytes: Vec<u8>| (!bytes.is_empty()).then(|| bytes.into());
    let none = NativePart {
        request,
        status: None,
        headers: None,
        body: None,
        more: true,
        counted,
        cut: false,
    };
    match part {
        Part::Head { status, headers, body: bytes, more } => {
            let mut lines = Vec::with_capacity(headers.len() * 2);
            for (name, value) in &headers {
                lines.push(name.as_str().to_owned());
                // Bytes beyond ASCII are Latin-1, as everywhere in HTTP.
                lines.push(value.as_bytes().iter().copied().map(char::from).collect());
            }
            let status = Some(status.as_u16());
            NativePart { status, headers: Some(lines), body: body(bytes), more, ..none }
        }
        Part::Bytes(bytes) => NativePart { body: body(bytes), ..none },
        Part::End => NativePart { more: false, ..none },
    }
}

/// Returns the head of a request that the host has already checked; invalid parts are replaced, not dropped.
pub(crate) fn head(method: &str, target: &str, headers: &str) -> Parts {
    let (mut head, ()) = http::Request::new(()).into_parts();
    head.method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::TRACE);
    head.uri = target.parse().unwrap_or_else(|_| Uri::from_static("/"));
    let mut lines = headers.split('\n');
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        let bytes: Vec<u8> =
            value.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect();
        let value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("?"));
        head.headers.append(name, value);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_keeps_every_header_whatever_its_value() {
        let head = head("POST", "/mcp?a=1", "Origin\nevil\u{1}\nX-A\nü\nX-A\n2");
        assert_eq!(head.method, Method::POST);
        assert_eq!((head.uri.path(), head.uri.query()), ("/mcp", Some("a=1")));
        assert_eq!(head.headers["origin"], "?");
        let all: Vec<_> = head.headers.get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(all, [&b"\xfc"[..], b"2"]);
        assert_eq!(super::head("?!\n", "http://[", "").uri.path(), "/");
    }

    #[test]
    fn pieces_tell_whether_more_follows() {
        let first = Part::Head {
            status: http::StatusCode::OK,
            headers: [(http::header::CONTENT_TYPE, HeaderValue::from_static("a/b"))]
                .into_iter()
                .collect(),
            body: Vec::new(),
            more: true,
        };
        let first = piece(3.0, first, false);
        assert_eq!((first.request, first.status, first.more), (3.0, Some(200), true));
        assert_eq!(first.headers.unwrap(), ["content-type", "a/b"]);
        assert!(first.body.is_none());
        assert!(!piece(3.0, Part::End, false).more);
        assert!(cut(3.0).cut);
    }
}
