//! Stateless requests over HTTP (2026-07-28, Streamable HTTP): the sans-IO endpoint.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    engine::HandlerEvent,
    http::{ConnectionId, EndpointConfig, EndpointInput, ExchangeId, Part, Refused},
    protocol::Revision,
    router::{Failure, Reply},
    session::server::{ListKind, Progress},
};
use serde_json::json;

use crate::support::{
    fixture,
    visitor::{self, Visitor},
};

fn visitor() -> Visitor {
    Visitor::new(fixture::components(), EndpointConfig::default())
}

fn wait() -> serde_json::Value {
    json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": "t"}})
}

fn step(progress: f64) -> Progress {
    Progress { progress, total: None, message: None }
}

#[test]
fn an_answer_without_notifications_is_one_json_body() {
    let mut visitor = visitor();
    let id = visitor.modern("tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}));
    visitor.finish(Ok(Reply::Text("hi".into())));
    let reply = visitor.reply(id);
    assert_eq!(
        (reply.status, reply.header("content-type"), reply.complete),
        (200, "application/json", true)
    );
    assert_eq!(reply.json()["result"]["content"][0]["text"], "hi");
    assert!(!reply.body.contains('\n'), "one line");
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn the_first_notification_makes_a_stream_of_it() {
    let mut visitor = visitor();
    let id = visitor.modern("tools/call", wait());
    let call = visitor.runs[0].id;
    visitor.handle(EndpointInput::Handler(call, HandlerEvent::Progress(step(1.0))));
    assert!(visitor.reply(id).is_stream());
    assert_eq!(visitor.reply(id).header("x-accel-buffering"), "no");
    assert!(!visitor.reply(id).complete);
    visitor.finish(Ok(Reply::Text("done".into())));
    let messages = visitor.reply(id).messages();
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages[1]["id"], 1);
    assert!(visitor.reply(id).complete);
}

#[test]
fn a_client_that_accepts_no_stream_gets_only_the_response() {
    let mut visitor = visitor();
    let id = visitor.modern_with("tools/call", wait(), &[("accept", "application/json")]);
    let call = visitor.runs[0].id;
    visitor.handle(EndpointInput::Handler(call, HandlerEvent::Progress(step(1.0))));
    visitor.advance(Duration::from_secs(60));
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(id).json()["result"]["resultType"], "complete");
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let id = visitor.modern_with("subscriptions/listen", listen, &[("accept", "application/json")]);
    assert_eq!(visitor.reply(id).status, 406);
}

#[test]
fn an_error_that_a_handler_raises_still_sets_the_status() {
    let mut visitor = visitor();
    let id = visitor.modern("tools/call", wait());
    visitor.finish(Err(Failure::MissingCapability {
        message: "sampling is needed".into(),
        data: Some(gudgeon::protocol::json::raw(
            r#"{"requiredCapabilities":{"sampling":{}}}"#.into(),
        )),
    }));
    assert_eq!((visitor.reply(id).status, visitor.reply(id).error()), (400, -32021));
    let id = visitor.modern("tools/call", wait());
    visitor.finish(Err(Failure::Protocol { code: 7, message: "no".into(), data: None }));
    assert_eq!((visitor.reply(id).status, visitor.reply(id).error()), (200, 7));
}

#[test]
fn disconnecting_is_cancelling() {
    let mut visitor = visitor();
    let id = visitor.modern("tools/call", wait());
    visitor.handle(EndpointInput::Disconnected(ExchangeId(id)));
    assert_eq!(visitor.cancelled, [visitor.runs[0].id.0]);
    visitor.finish(Ok(Reply::Text("too late".into())));
    assert!(visitor.replies.is_empty());
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn a_quiet_answer_becomes_a_stream_after_fifteen_seconds_and_carries_comments() {
    let mut visitor = visitor();
    let id = visitor.modern("tools/call", wait());
    visitor.advance(Duration::from_secs(11));
    assert!(visitor.replies.is_empty());
    visitor.advance(Duration::from_secs(4));
    assert!(visitor.reply(id).is_stream());
    visitor.advance(Duration::from_secs(30));
    let comments = visitor.reply(id).body.lines().filter(|it| it.starts_with(':')).count();
    assert!((3..=5).contains(&comments), "{comments} in 45 s");
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(id).messages().len(), 1);
}

#[test]
fn checks_come_in_the_order_of_the_specification() {
    let mut visitor = visitor();
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let mut check =
        |params: serde_json::Value, method: &str, more: &[(&str, &str)], status: u16, code: i64| {
            let id = visitor.modern_with(method, params.clone(), more);
            let reply = visitor.reply(id);
            assert_eq!(
                (reply.status, reply.error()),
                (status, code),
                "{method} {params} {more:?} {}",
                reply.body
            );
            assert_eq!(reply.json()["id"], 1);
        };
    // Missing keys come before anything that headers say.
    check(json!({"_meta": {version: 7}}), "tools/list", &[("mcp-method", "x")], 400, -32602);
    check(json!({"_meta": {capabilities: 7}}), "tools/list", &[("mcp-method", "x")], 400, -32602);
    // A mismatch comes before the version's support.
    check(json!({"_meta": {version: "v999.0.0"}}), "server/discover", &[], 400, -32020);
    let unknown = [("mcp-protocol-version", "v999.0.0")];
    check(json!({"_meta": {version: "v999.0.0"}}), "server/discover", &unknown, 400, -32022);
    // Methods of other eras and of nobody.
    check(json!({}), "unknown/method", &[], 404, -32601);
    for legacy in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
    {
        check(json!({}), legacy, &[], 404, -32601);
    }
    check(json!({}), "tools/list", &[("mcp-method", "TOOLS/LIST")], 400, -32020);
    check(json!({}), "tools/list", &[("mcp-method", "-")], 400, -32020);
    check(json!({}), "tools/list", &[("mcp-protocol-version", "-")], 400, -32020);
    check(json!({"name": "echo"}), "tools/call", &[("mcp-name", "-")], 400, -32020);
    check(json!({"name": "echo"}), "tools/call", &[("mcp-name", "other")], 400, -32020);
    check(json!({"name": "nobody"}), "tools/call", &[], 400, -32602);
}

#[test]
fn unsupported_versions_are_rejected_with_the_supported_ones() {
    let mut visitor = visitor();
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "v999.0.0"}});
    let id = visitor.modern_with("server/discover", meta, &[("mcp-protocol-version", "v999.0.0")]);
    let data = &visitor.reply(id).json()["error"]["data"];
    assert_eq!(data["requested"], "v999.0.0");
    assert!(data["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
}

#[test]
fn posted_responses_and_batches_are_rejected() {
    let mut visitor = visitor();
    let headers = [
        ("content-type", "application/json"),
        ("accept", visitor::BOTH),
        ("mcp-protocol-version", "2026-07-28"),
    ];
    let one = visitor::modern_body("tools/list", json!({})).to_string();
    for body in [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "[]", &format!("[{one}]")] {
        let id = visitor.send("POST", "/mcp", &headers, body);
        assert_eq!(visitor.reply(id).status, 400, "{body}");
    }
    let id = visitor.send(
        "POST",
        "/mcp",
        &headers,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    );
    assert_eq!((visitor.reply(id).status, &*visitor.reply(id).body), (202, ""));
}

#[test]
fn a_notification_with_conflicting_headers_is_rejected_without_an_id() {
    type Case<'a> = (&'a [(&'a str, &'a str)], serde_json::Value, u16, i64);
    let mut visitor = visitor();
    let key = "io.modelcontextprotocol/protocolVersion";
    let (ours, unknown) = (("mcp-protocol-version", "2026-07-28"), ("mcp-protocol-version", "v9"));
    let method = |value| ("mcp-method", value);
    let cases: [Case<'_>; 9] = [
        (&[ours], json!({}), 202, 0),
        (&[ours, method("notifications/example")], json!({"_meta": {key: "2026-07-28"}}), 202, 0),
        (&[], json!({"_meta": {key: "2026-07-28"}}), 202, 0),
        (&[ours, method("notifications/other")], json!({}), 400, -32020),
        (&[unknown], json!({"_meta": {key: "2026-07-28"}}), 400, -32020),
        (&[unknown], json!({}), 400, -32022),
        (&[], json!({"_meta": {key: "v9"}}), 400, -32022),
        (&[ours], json!({"_meta": {key: 9}}), 400, -32602),
        (&[ours], json!(9), 400, -32602),
    ];
    for (headers, params, status, code) in cases {
        let headers = [&[("content-type", "application/json")], headers].concat();
        let body = json!({"jsonrpc": "2.0", "method": "notifications/example", "params": params});
        let id = visitor.send("POST", "/mcp", &headers, &body.to_string());
        let reply = visitor.reply(id);
        assert_eq!(reply.status, status, "{headers:?} {params} {}", reply.body);
        if status == 202 {
            assert_eq!(reply.body, "");
        } else {
            assert_eq!(reply.error(), code);
            assert!(reply.json().get("id").is_none(), "{}", reply.body);
        }
    }
}

#[test]
fn a_server_without_sessions_says_so() {
    let mut components = fixture::components();
    Arc::make_mut(&mut components.server).revisions = vec![Revision::V2026_07_28];
    let mut visitor =
        Visitor::new(components, EndpointConfig { legacy_sse: true, ..EndpointConfig::default() });
    for method in ["GET", "DELETE"] {
        for session in [&[][..], &[("mcp-session-id", "any")]] {
            let headers = [&[("accept", "text/event-stream")], session].concat();
            let id = visitor.send(method, "/mcp", &headers, "");
            assert_eq!(visitor.reply(id).status, 405);
            assert_eq!(visitor.reply(id).header("allow"), "POST, OPTIONS");
        }
    }
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let id = visitor.legacy("", &initialize);
    let reply = visitor.reply(id);
    assert_eq!((reply.status, reply.error(), reply.header("mcp-session-id")), (400, -32022, ""));
    assert_eq!(reply.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
    for (body, code) in [
        (json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), -32602),
        (json!([]), -32600),
        (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), -32600),
    ] {
        let id = visitor.legacy("any", &body);
        assert_eq!((visitor.reply(id).status, visitor.reply(id).error()), (400, code), "{body}");
    }
    let id = visitor.modern_with("tools/list", json!({}), &[("mcp-session-id", "any")]);
    assert_eq!(visitor.reply(id).json()["result"]["resultType"], "complete");
    assert_eq!(visitor.reply(id).header("mcp-session-id"), "");
    let id = visitor.send("GET", "/sse", &[("accept", "text/event-stream")], "");
    assert_eq!(visitor.reply(id).status, 405);
}

#[test]
fn conflicting_headers_are_rejected_with_the_requests_id() {
    let mut visitor = visitor();
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", visitor::BOTH),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
        ("mcp-method", "tools/call"),
    ];
    let body = visitor::modern_body("tools/list", json!({})).to_string();
    let id = visitor.send("POST", "/mcp", &headers, &body);
    let reply = visitor.reply(id);
    assert_eq!((reply.status, reply.error(), &reply.json()["id"]), (400, -32020, &json!(1)));
    headers.truncate(4);
    let id = visitor.send("POST", "/mcp", &headers, &body);
    assert_eq!(visitor.reply(id).status, 200);
}

#[test]
fn an_error_keeps_its_status_for_clients_that_accept_only_streams() {
    let mut visitor = visitor();
    let more = [("accept", "text/event-stream"), ("mcp-method", "wrong")];
    let id = visitor.modern_with("tools/list", json!({}), &more);
    let reply = visitor.reply(id);
    assert_eq!((reply.status, reply.error(), reply.is_stream()), (400, -32020, false));
}

#[test]
fn the_guard_is_checked_before_everything_else() {
    let visitor = visitor();
    for refused in [Refused::BodyTooLarge, Refused::BodyTooSlow, Refused::BodyBroken] {
        for (origin, forbidden) in [("http://evil.example", true), ("http://localhost", false)] {
            let request = http::Request::post("/mcp").header("host", "localhost");
            let (head, ()) = request.header("origin", origin).body(()).unwrap().into_parts();
            let Part::Head { status, .. } = visitor.endpoint.admission().refuse(&head, &refused)
            else {
                panic!("no head");
            };
            assert_eq!(status == 403, forbidden, "{refused:?} {origin}");
        }
    }
}

#[test]
fn message_connections_are_limited() {
    let config = EndpointConfig { max_sessions: 1, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(fixture::components(), config);
    let (head, ()) =
        http::Request::get("/mcp").header("host", "localhost").body(()).unwrap().into_parts();
    assert!(visitor.endpoint.admit_upgrade(&head).is_ok());
    visitor.handle(EndpointInput::Opened(ConnectionId(1), None, None));
    let Err(Part::Head { status, headers, body, .. }) = visitor.endpoint.admit_upgrade(&head)
    else {
        panic!("a second one is let in");
    };
    assert_eq!((status.as_u16(), headers["retry-after"].as_bytes()), (503, &b"1"[..]));
    assert!(String::from_utf8(body).unwrap().contains("max_sessions"));
    visitor.handle(EndpointInput::ConnectionClosed(ConnectionId(1)));
    assert!(visitor.endpoint.admit_upgrade(&head).is_ok());
}

#[test]
fn a_subscription_is_acknowledged_filtered_and_ended() {
    let mut visitor = visitor();
    let tools = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["fixture://about"]}});
    let tools = visitor.modern("subscriptions/listen", tools);
    let prompts = visitor
        .modern("subscriptions/listen", json!({"notifications": {"promptsListChanged": true}}));
    let components = Arc::new(fixture::components());
    visitor.handle(EndpointInput::Components(components, vec![ListKind::Tools]));
    visitor.handle(EndpointInput::Updated("fixture://about"));
    visitor.handle(EndpointInput::Updated("fixture://bytes"));
    let methods = |visitor: &Visitor, id| -> Vec<String> {
        let messages = visitor.reply(id).messages();
        for message in &messages {
            let place = if message["result"].is_null() { "params" } else { "result" };
            assert_eq!(
                message[place]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1,
                "{message}"
            );
        }
        messages.iter().map(|it| it["method"].as_str().unwrap_or("result").to_owned()).collect()
    };
    let acknowledged = "notifications/subscriptions/acknowledged";
    assert_eq!(methods(&visitor, prompts), [acknowledged]);
    visitor.handle(EndpointInput::ShutDown);
    assert_eq!(
        methods(&visitor, tools),
        [
            acknowledged,
            "notifications/tools/list_changed",
            "notifications/resources/updated",
            "result"
        ]
    );
    assert!(visitor.reply(tools).complete && visitor.reply(prompts).complete);
    let late = visitor.modern("tools/list", json!({}));
    assert_eq!((visitor.reply(late).status, visitor.reply(late).header("retry-after")), (503, "1"));
}

#[test]
fn pending_requests_are_limited() {
    let config = EndpointConfig { max_in_flight: 2, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(fixture::components(), config);
    visitor.modern("tools/call", wait());
    visitor.modern("tools/call", wait());
    let third = visitor.modern("tools/call", wait());
    assert_eq!(
        (visitor.reply(third).status, visitor.reply(third).header("retry-after")),
        (503, "1")
    );
    visitor.finish(Ok(Reply::Nothing));
    let fourth = visitor.modern("tools/call", wait());
    assert!(!visitor.replies.contains_key(&fourth));
}

#[test]
fn wrong_media_types_methods_paths_and_json_are_rejected() {
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16);
    let mut visitor = visitor();
    let json = ("content-type", "application/json");
    let accept = ("accept", visitor::BOTH);
    let nested = "[".repeat(100_000);
    let cases: [Case<'_>; 9] = [
        ("POST", "/mcp", &[("content-type", "text/plain"), accept], "{}", 415),
        ("POST", "/mcp", &[accept], "{}", 415),
        ("POST", "/mcp", &[json, ("accept", "text/html")], "{}", 406),
        ("POST", "/mcp", &[json, accept], "", 400),
        ("POST", "/mcp", &[json, accept], "{", 400),
        ("POST", "/mcp", &[json, accept], &nested, 400),
        ("PUT", "/mcp", &[json, accept], "{}", 405),
        ("HEAD", "/mcp", &[], "", 405),
        ("POST", "/elsewhere", &[json, accept], "{}", 404),
    ];
    for (method, path, headers, body, status) in cases {
        let id = visitor.send(method, path, headers, body);
        assert_eq!(visitor.reply(id).status, status, "{method} {path} {headers:?}");
        if status == 400 {
            assert_eq!(visitor.reply(id).error(), -32700);
        }
    }
    let id = visitor.send("OPTIONS", "/mcp", &[], "");
    assert_eq!(
        (visitor.reply(id).status, visitor.reply(id).header("allow")),
        (204, "GET, POST, DELETE, OPTIONS")
    );
    let long = " ".repeat(4 * 1024 * 1024 + 1);
    let id = visitor.send("POST", "/mcp", &[json, accept], &long);
    assert_eq!(visitor.reply(id).status, 413);
}
