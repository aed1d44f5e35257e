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

use crate::support::{fixture, visitor::Visitor};

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
    let comments = visitor.reply(id).body.lines().filter(|line| line.starts_with(':')).count();
    assert!((3..=5).contains(&comments), "{comments} in 45 s");
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(id).messages().len(), 1);
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
        messages
            .iter()
            .map(|message| message["method"].as_str().unwrap_or("result").to_owned())
            .collect()
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
    assert!(visitor.reply(third).body.contains("max_in_flight"));
    visitor.finish(Ok(Reply::Nothing));
    let fourth = visitor.modern("tools/call", wait());
    assert!(!visitor.replies.contains_key(&fourth));
}
