//! Streams and message connections end with the access token that they were opened with; calls that run are answered.

use std::time::Duration;

use gudgeon::{
    http::{ConnectionId, EndpointConfig, EndpointInput},
    protocol::Frame,
    router::Reply,
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    visitor::{Visitor, modern_body},
};

const SECOND: Duration = Duration::from_secs(1);

/// A client whose tokens expire in ten seconds. Nothing else happens in that time.
fn visitor() -> Visitor {
    let keep_alive = Duration::from_secs(3_000);
    let config = EndpointConfig { keep_alive, legacy_sse: true, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(fixture::components(), config);
    visitor.expires = Some(visitor.now + 10 * SECOND);
    visitor
}

fn call() -> Value {
    json!({ "name": "echo", "arguments": { "text": "hi" } })
}

/// Advances to the time at which tokens expire; before it, these answers are not complete.
#[track_caller]
fn expire(visitor: &mut Visitor, streams: &[u64]) {
    visitor.advance(Duration::from_millis(9_999));
    for id in streams {
        assert!(visitor.reply(*id).is_stream() && !visitor.reply(*id).complete, "{id}");
    }
    visitor.advance(Duration::from_millis(1));
}

#[test]
fn a_stream_of_a_session_ends_and_its_session_stays() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let (first, second) = (visitor.get(&session, ""), visitor.get(&session, ""));
    expire(&mut visitor, &[first, second]);
    assert!(visitor.reply(first).complete && visitor.reply(second).complete);
    visitor.expires = Some(visitor.now + 10 * SECOND);
    let renewed = visitor.get(&session, "");
    expire(&mut visitor, &[renewed]);
    assert!(visitor.reply(renewed).complete);
    let id = visitor.legacy(&session, &json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }));
    assert_eq!(visitor.reply(id).status, 200);
    assert!(visitor.expired.is_empty());
}

#[test]
fn a_subscription_ends_with_its_result() {
    let mut visitor = visitor();
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let id = visitor.modern("subscriptions/listen", params);
    expire(&mut visitor, &[id]);
    assert!(visitor.reply(id).complete);
    assert!(visitor.reply(id).messages().last().unwrap()["result"].is_object());
}

#[test]
fn a_stream_without_an_expiring_token_stays() {
    let mut visitor = visitor();
    visitor.expires = None;
    let session = visitor.open("2025-11-25", json!({}));
    let id = visitor.get(&session, "");
    visitor.advance(1_000 * SECOND);
    assert!(!visitor.reply(id).complete);
}

#[test]
fn a_call_that_runs_is_answered() {
    let mut visitor = visitor();
    let modern = visitor.modern("tools/call", call());
    let session = visitor.open("2025-11-25", json!({}));
    let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call() });
    let legacy = visitor.legacy(&session, &body);
    visitor.advance(20 * SECOND);
    assert_eq!((visitor.runs.len(), visitor.cancelled.len()), (2, 0));
    for id in [legacy, modern] {
        visitor.finish(Ok(Reply::Text("done".into())));
        let reply = visitor.reply(id);
        assert!(reply.complete && reply.body.contains("done"), "{reply:?}");
    }
}

/// The only stream of a session of 2024-11-05 ends when no call runs, and its session with it.
#[test]
fn the_only_stream_of_a_session_ends_when_no_call_runs() {
    for runs in [false, true] {
        let mut visitor = visitor();
        let stream = visitor.send("GET", "/sse", &[("accept", "text/event-stream")], "");
        let post = visitor.reply(stream).messages()[0].as_str().unwrap().to_owned();
        let send = |visitor: &mut Visitor, message: &Value| {
            let headers = [("content-type", "application/json")];
            let id = visitor.send("POST", &post, &headers, &message.to_string());
            visitor.reply(id).status
        };
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } } });
        send(&mut visitor, &hello);
        send(&mut visitor, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        if runs {
            let request = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": call() });
            assert_eq!(send(&mut visitor, &request), 202);
        }
        expire(&mut visitor, &[stream]);
        assert_eq!(visitor.reply(stream).complete, !runs);
        if runs {
            visitor.finish(Ok(Reply::Text("done".into())));
            assert!(visitor.reply(stream).body.contains("done"));
            visitor.advance(1_000 * SECOND);
            assert!(visitor.reply(stream).complete);
        }
        assert_eq!(send(&mut visitor, &hello), 404);
    }
}

#[test]
fn a_message_connection_ends_once_its_calls_are_answered() {
    let mut visitor = visitor();
    let (idle, busy) = (ConnectionId(1), ConnectionId(2));
    for connection in [idle, busy] {
        visitor.handle(EndpointInput::Opened(connection, None, None));
        visitor.handle(EndpointInput::ExpiresAt(connection, visitor.now + 10 * SECOND));
    }
    let say = |visitor: &mut Visitor, method: &str, params: Value| {
        let text = modern_body(method, params).to_string();
        visitor.handle(EndpointInput::Message(busy, Frame::parse(text.as_bytes())));
    };
    say(&mut visitor, "tools/call", call());
    visitor.advance(Duration::from_millis(9_999));
    assert!(visitor.expired.is_empty());
    visitor.advance(Duration::from_millis(1));
    assert_eq!(visitor.expired, [idle]);
    say(&mut visitor, "tools/call", call());
    say(&mut visitor, "tools/list", json!({}));
    assert_eq!((visitor.runs.len(), visitor.frames.len()), (1, 0), "nothing more is begun");
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.frames.len(), 1);
    assert_eq!(visitor.expired, [idle, busy]);
    visitor.advance(SECOND);
    assert_eq!(visitor.expired.len(), 2, "each ends once");
    for connection in [idle, busy] {
        visitor.handle(EndpointInput::ConnectionClosed(connection));
    }
    assert!(visitor.endpoint.keeps_no_call());
}

#[test]
fn a_subscription_on_a_message_connection_ends_with_its_token() {
    let mut visitor = visitor();
    let connection = ConnectionId(1);
    visitor.handle(EndpointInput::Opened(connection, None, None));
    visitor.handle(EndpointInput::ExpiresAt(connection, visitor.now + 10 * SECOND));
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let text = modern_body("subscriptions/listen", params).to_string();
    visitor.handle(EndpointInput::Message(connection, Frame::parse(text.as_bytes())));
    visitor.advance(10 * SECOND);
    assert!(visitor.frames.last().unwrap().1["result"].is_object());
    assert_eq!(visitor.expired, [connection]);
}
