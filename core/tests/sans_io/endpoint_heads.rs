//! Heads that are refused before the body is read: media types, methods and paths.

use gudgeon::http::EndpointConfig;
use serde_json::json;

use crate::support::{
    fixture,
    request::{BOTH, Request, message},
    visitor::Visitor,
};

fn opened() -> (Visitor, String) {
    let mut visitor = Visitor::new(fixture::components(), EndpointConfig::default());
    let session = visitor.open("2025-11-25", json!({}));
    (visitor, session)
}

/// A request of each era that is served.
fn lists(session: &str) -> [Request; 2] {
    let modern = Request::modern("tools/list", json!({}));
    [modern, Request::of_session(session, &message("tools/list", json!({})))]
}

#[test]
fn a_message_is_json() {
    let (mut visitor, session) = opened();
    for (media_type, is_json) in [
        ("application/json", true),
        ("application/json; charset=utf-8", true),
        ("Application/JSON", true),
        (r#"application/json;charset="UTF-8""#, true),
        ("text/plain", false),
        ("application/jsonx", false),
        ("application/x-www-form-urlencoded", false),
        ("json", false),
        ("", false),
    ] {
        for request in lists(&session) {
            let request = request.header("content-type", media_type);
            match is_json {
                true => assert!(visitor.serves(&request)["tools"].is_array()),
                false => visitor.rejects(&request, 415, "application/json"),
            }
        }
    }
    for request in lists(&session) {
        visitor.rejects(&request.without("content-type"), 415, "application/json");
    }
}

/// RFC 9110, 15.5.16: the response to a body in an unknown encoding names those that are known.
#[test]
fn a_body_that_is_compressed_is_refused_by_name() {
    let (mut visitor, session) = opened();
    for request in lists(&session) {
        for encoding in ["gzip", "identity, GZIP", "br", "deflate", "zstd", "other"] {
            let request = request.clone().header("content-encoding", encoding);
            visitor.rejects(&request, 415, "Content-Encoding");
        }
        for encoding in ["identity", "Identity", ""] {
            let request = request.clone().header("content-encoding", encoding);
            assert!(visitor.serves(&request)["tools"].is_array());
        }
    }
}

#[test]
fn a_client_accepts_json_or_event_streams() {
    let (mut visitor, session) = opened();
    for accept in ["text/html", "image/png, text/plain", "application/json;q=0", ""] {
        for request in lists(&session) {
            visitor.rejects(&request.header("accept", accept), 406, "Accept");
        }
    }
    for accept in [BOTH, "application/json", "text/event-stream", "*/*", "text/*;q=0.1"] {
        for request in lists(&session) {
            visitor.serves(&request.header("accept", accept));
        }
    }
    for request in lists(&session) {
        visitor.serves(&request.without("accept"));
    }
    for accept in ["application/json", "text/html"] {
        let get = Request::bare("GET", &session).header("accept", accept);
        visitor.rejects(&get, 406, "text/event-stream");
    }
}

#[test]
fn messages_are_posted_and_sessions_have_a_stream_and_an_end() {
    let (mut visitor, _) = opened();
    for method in ["PUT", "PATCH", "HEAD", "PROPFIND"] {
        let request = Request::new(method, "/mcp").header("accept", BOTH);
        visitor.rejects(&request, 405, "POST");
        assert_eq!(visitor.ask(&request).header("allow"), "GET, POST, DELETE, OPTIONS");
    }
    let options = visitor.ask(&Request::new("OPTIONS", "/mcp"));
    assert_eq!((options.status, &*options.body), (204, ""));
    assert_eq!(options.header("allow"), "GET, POST, DELETE, OPTIONS");
    let cors = |name: &&http::HeaderName| name.as_str().starts_with("access-control");
    assert_eq!(options.headers.keys().find(cors), None);
}

#[test]
fn only_the_endpoint_is_served() {
    let (mut visitor, session) = opened();
    for path in ["/", "/mcpx", "/mcp/more", "/../mcp", "/%6dcp/..", "/elsewhere", "*"] {
        for request in lists(&session) {
            visitor.rejects(&request.at(path), 404, "path");
        }
        visitor.rejects(&Request::bare("GET", &session).at(path), 404, "path");
        visitor.rejects(&Request::bare("DELETE", &session).at(path), 404, "path");
    }
    for path in ["/mcp/", "/mcp?a=b"] {
        for request in lists(&session) {
            visitor.serves(&request.at(path));
        }
    }
}

#[test]
fn without_a_session_there_is_nothing_to_get_or_delete() {
    let (mut visitor, _) = opened();
    for method in ["GET", "DELETE"] {
        let request = Request::new(method, "/mcp").header("accept", "text/event-stream");
        visitor.rejects(&request, 400, "session");
        visitor.rejects(&request.header("mcp-protocol-version", "2026-07-28"), 400, "session");
    }
}
