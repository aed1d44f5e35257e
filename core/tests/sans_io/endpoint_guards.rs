//! `Host` and `Origin`, which are checked before everything else, and CORS. The names that match, and the ones that
//! don't, are tested with the guard itself.

use gudgeon::http::{Cors, EndpointConfig, GuardConfig, Part};
use serde_json::json;

use crate::support::{
    fixture,
    request::{Request, initialize, message},
    visitor::Visitor,
};

const EVIL: &str = "http://evil.example.com";
const APP: &str = "https://app.example";

fn guarded(guard: GuardConfig) -> Visitor {
    let config = EndpointConfig { guard, legacy_sse: true, ..EndpointConfig::default() };
    Visitor::new(fixture::components(), config)
}

fn opened() -> (Visitor, String) {
    let mut visitor = guarded(GuardConfig::default());
    let session = visitor.open("2025-11-25", json!({}));
    (visitor, session)
}

/// Every kind of request.
fn requests(session: &str) -> Vec<Request> {
    let get = Request::new("GET", "/sse").header("accept", "text/event-stream");
    let preflight = Request::new("OPTIONS", "/mcp").header("access-control-request-method", "POST");
    vec![
        Request::modern("server/discover", json!({})),
        Request::post(initialize("2025-11-25")),
        Request::of_session(session, &message("ping", json!({}))),
        Request::of_session(session, &json!(null)).body("{"),
        Request::bare("GET", session),
        Request::bare("DELETE", session),
        Request::new("PUT", "/mcp"),
        Request::new("POST", "/elsewhere"),
        preflight,
        get,
        Request::post(message("ping", json!({}))).at("/sse?session_id=nobody"),
    ]
}

#[test]
fn a_foreign_page_reaches_nothing() {
    let (mut visitor, session) = opened();
    for request in requests(&session) {
        for origin in [EVIL, "null", ""] {
            let request = request.clone().header("origin", origin);
            visitor.rejects(&request, 403, "allowed_origins");
            let reply = visitor.ask(&request);
            assert_eq!(reply.header("access-control-allow-origin"), "");
        }
        for host in ["evil.example.com", "localhost.evil.example.com:80", "0x7f.1", "a b"] {
            let request = request.clone().header("host", host);
            visitor.rejects(&request, 421, "allowed_hosts");
        }
    }
    // An absolute target counts as a host, whatever the header says.
    for (target, host) in [
        ("evil.example.com", "localhost"),
        ("localhost", "evil.example.com"),
        ("evil.example.com", "evil.example.com"),
    ] {
        for method in ["POST", "GET"] {
            let target = format!("http://{target}/mcp");
            let request = Request::new(method, &target).header("host", host);
            visitor.rejects(&request, 421, "allowed_hosts");
        }
    }
    visitor.serves(&Request::of_session(&session, &message("ping", json!({}))));
}

#[test]
fn a_message_connection_is_checked_like_a_request() {
    let (visitor, _) = opened();
    for (host, origin, path, status) in [
        ("localhost", "http://localhost", "/mcp", None),
        ("localhost", EVIL, "/mcp", Some(403)),
        ("localhost", "null", "/mcp", Some(403)),
        ("localhost", "https://localhost.evil.example.com", "/mcp", Some(403)),
        ("evil.example.com", "http://localhost", "/mcp", Some(421)),
        ("localhost", "http://localhost", "/sse", Some(404)),
    ] {
        let request = http::Request::get(path).header("host", host).header("origin", origin);
        let (head, ()) = request.body(()).unwrap().into_parts();
        let refused = visitor.endpoint.admit_upgrade(&head).err().map(|part| match part {
            Part::Head { status, .. } => status.as_u16(),
            part => panic!("{part:?}"),
        });
        assert_eq!(refused, status, "{host} {origin} {path}");
    }
}

#[test]
fn pages_and_programs_of_this_machine_are_served() {
    let (mut visitor, _) = opened();
    for host in ["127.0.0.1:80", "localhost:80", "LocalHost:80", "[::1]:80"] {
        let eras = [
            Request::modern("server/discover", json!({})),
            Request::post(initialize("2025-11-25")),
        ];
        for request in eras.map(|request| request.header("host", host)) {
            visitor.serves(&request);
            visitor.serves(&request.clone().header("origin", &format!("http://{host}")));
            visitor.serves(&request.header("origin", "HTTP://LOCALHOST:80"));
        }
    }
    let absolute = Request::modern("server/discover", json!({})).at("http://localhost/mcp");
    visitor.serves(&absolute);
}

#[test]
fn without_cors_no_header_of_it_is_sent() {
    let (mut visitor, _) = opened();
    let request = Request::modern("server/discover", json!({}));
    for request in [request.clone(), request.header("origin", "http://localhost")] {
        let reply = visitor.ask(&request);
        assert_eq!(reply.status, 200);
        let is_cors = |name: &&http::HeaderName| name.as_str().starts_with("access-control");
        assert_eq!(reply.headers.keys().find(is_cors), None);
    }
}

#[test]
fn with_cors_a_page_may_call_and_read_every_response() {
    let cors = Cors::Origins(vec![APP.into()]);
    let mut visitor = guarded(GuardConfig { cors, ..GuardConfig::default() });
    let session = visitor.open("2025-11-25", json!({}));
    let progress =
        json!({"name": "count", "arguments": {"steps": 1}, "_meta": {"progressToken": 1}});
    let stream = Request::modern("tools/call", progress);
    let is_preflight = |request: &Request| {
        request.headers.iter().any(|(name, _)| name == "access-control-request-method")
    };
    let mut requests = requests(&session);
    requests.retain(|request| !is_preflight(request));
    requests.push(stream);
    for request in requests {
        let reply = visitor.ask(&request.clone().header("origin", APP));
        assert_eq!(reply.header("access-control-allow-origin"), APP, "{request:?}");
        assert_eq!(reply.header("vary"), "Origin", "{request:?}");
        let exposed = reply.header("access-control-expose-headers");
        assert!(exposed.contains("Mcp-Session-Id"), "{request:?} {exposed}");
        visitor.rejects(&request.header("origin", EVIL), 403, "allowed_origins");
    }
    let preflight = Request::new("OPTIONS", "/mcp")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "mcp-method, mcp-param-region");
    let reply = visitor.ask(&preflight.clone().header("origin", APP));
    assert_eq!((reply.status, &*reply.body), (204, ""));
    assert_eq!(reply.header("access-control-allow-origin"), APP);
    assert!(reply.header("access-control-allow-headers").contains("mcp-param-region"));
    visitor.rejects(&preflight.header("origin", EVIL), 403, "allowed_origins");
}

#[test]
fn cors_for_everybody_shares_no_credentials() {
    let mut visitor = guarded(GuardConfig { cors: Cors::Any, ..GuardConfig::default() });
    let reply = visitor.ask(&Request::modern("server/discover", json!({})).header("origin", EVIL));
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, "*"));
    assert_eq!(reply.header("access-control-allow-credentials"), "");
}
