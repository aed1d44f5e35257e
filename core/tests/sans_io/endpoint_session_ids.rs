//! The session that a request names: it must exist, and what belongs to it reaches no other.

use std::{collections::HashSet, time::Duration};

use gudgeon::{http::EndpointConfig, router::Reply};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

fn visitor() -> Visitor {
    Visitor::new(fixture::components(), EndpointConfig::default())
}

fn opened() -> (Visitor, String) {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    (visitor, session)
}

fn ping(session: &str) -> Request {
    Request::of_session(session, &message("ping", json!({})))
}

/// Starts a call that waits; returns its exchange.
fn wait(visitor: &mut Visitor, session: &str, id: &Value) -> u64 {
    let mut body = message("tools/call", json!({"name": "wait", "arguments": {}}));
    body["id"] = id.clone();
    visitor.request(&Request::of_session(session, &body))
}

fn cancel(session: &str, params: Value) -> Request {
    Request::of_session(session, &notification("notifications/cancelled", params))
}

#[test]
fn ids_are_long_random_and_visible_ascii() {
    let mut visitor = visitor();
    let ids: HashSet<String> = (0..20).map(|_| visitor.open("2025-11-25", json!({}))).collect();
    assert_eq!(ids.len(), 20);
    let length = ids.iter().map(String::len).min().unwrap();
    assert!(
        length >= 22 && ids.iter().all(|id| id.bytes().all(|byte| byte.is_ascii_graphic())),
        "{ids:?}"
    );
    let is_constant =
        |at: &usize| ids.iter().map(|id| id.as_bytes()[*at]).collect::<HashSet<_>>().len() == 1;
    let constant = (0..length).filter(is_constant).count();
    assert!(constant <= length / 4, "{constant} of {length} characters never change: {ids:?}");
}

#[test]
fn a_request_names_its_session() {
    let (mut visitor, session) = opened();
    visitor.serves(&ping(&session));
    visitor.accepts(
        &ping(&session).body(notification("notifications/example", json!({})).to_string()),
    );
    for method in ["ping", "tools/list"] {
        let request = Request::post(message(method, json!({})));
        visitor.refuses(&request.clone(), 400, -32600);
        visitor.refuses(&request.clone().header("mcp-session-id", ""), 404, -32600);
        for id in ["nobody", "00000000-0000-0000-0000-000000000000", &"x".repeat(4000), "a b"] {
            visitor.refuses(&request.clone().header("mcp-session-id", id), 404, -32600);
        }
    }
    let initialized = Request::post(notification("notifications/initialized", json!({})));
    visitor.refuses(&initialized, 400, -32600);
    let unknown = initialized.header("mcp-session-id", "nobody");
    visitor.refuses(&unknown, 404, -32600);
    assert!(visitor.ask(&unknown).json().get("id").is_none());
    for method in ["GET", "DELETE"] {
        visitor.rejects(&Request::bare(method, "nobody"), 404, "session");
    }
}

#[test]
fn a_deleted_session_is_unknown_and_the_others_stay() {
    let (mut visitor, session) = opened();
    let other = visitor.open("2025-11-25", json!({}));
    let stream = visitor.get(&session, "");
    let delete = Request::bare("DELETE", &session);
    assert_eq!(visitor.ask(&delete).status, 204);
    assert!(visitor.reply(stream).complete);
    visitor.refuses(&ping(&session), 404, -32600);
    visitor.refuses(&cancel(&session, json!({"requestId": 1})), 404, -32600);
    visitor.rejects(&delete, 404, "session");
    visitor.rejects(&Request::bare("GET", &session), 404, "session");
    visitor.serves(&ping(&other));
}

#[test]
fn a_second_initialize_changes_nothing() {
    let (mut visitor, _) = opened();
    let session = visitor.open("2025-06-18", json!({}));
    let again = Request::of_session(&session, &initialize("2024-11-05"));
    visitor.refuses(&again, 400, -32600);
    visitor.serves(&ping(&session));
    // It has no batches still.
    visitor.refuses(&ping(&session).body("[]"), 400, -32600);
}

#[test]
fn an_initialize_that_fails_opens_no_session() {
    let mut visitor = visitor();
    for params in [
        json!({}),
        json!({"protocolVersion": 1}),
        json!({"protocolVersion": "2025-11-25", "capabilities": 3}),
    ] {
        let request = Request::post(message("initialize", params));
        visitor.refuses(&request, 200, -32602);
        assert_eq!(visitor.ask(&request).header("mcp-session-id"), "");
    }
}

#[test]
fn equal_ids_of_two_sessions_are_different_requests() {
    let (mut visitor, one) = opened();
    let other = visitor.open("2025-11-25", json!({}));
    let waiting = wait(&mut visitor, &one, &json!("same"));
    let mut body = message("ping", json!({}));
    body["id"] = json!("same");
    visitor.serves(&Request::of_session(&other, &body));
    // In one session an id must not be in use already.
    visitor.refuses(&Request::of_session(&one, &body), 400, -32600);
    // And one session can't cancel the call of another.
    visitor.accepts(&cancel(&other, json!({"requestId": "same"})));
    assert_eq!(visitor.cancelled, [0; 0]);
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(waiting).json()["result"]["content"][0]["text"], "done");
}

#[test]
fn a_cancelled_call_gets_no_response() {
    let (mut visitor, session) = opened();
    let waiting = wait(&mut visitor, &session, &json!("long"));
    // What is unknown, or nonsense, changes nothing.
    for params in [
        json!({"requestId": "nobody"}),
        json!({"requestId": 1}),
        json!({"requestId": null}),
        json!({"requestId": [1]}),
        json!({}),
    ] {
        visitor.accepts(&cancel(&session, params));
    }
    assert_eq!(visitor.cancelled, [0; 0]);
    let reason = json!({"requestId": "long", "reason": "changed my mind"});
    visitor.accepts(&cancel(&session, reason));
    assert_eq!(visitor.cancelled, [visitor.runs[0].id.0]);
    let reply = visitor.reply(waiting);
    assert_eq!((reply.status, &*reply.body, reply.complete), (202, "", true));
    visitor.serves(&ping(&session));
}

/// Over HTTP a stateless request is cancelled by closing its response.
#[test]
fn a_modern_notification_cancels_nothing() {
    let mut visitor = visitor();
    let waiting = visitor.modern("tools/call", json!({"name": "wait", "arguments": {}}));
    let body = notification("notifications/cancelled", json!({"requestId": 1}));
    visitor.accepts(&Request::post(body).header("mcp-protocol-version", "2026-07-28"));
    assert_eq!(visitor.cancelled, [0; 0]);
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(waiting).status, 200);
}

#[test]
fn only_an_event_of_the_session_can_be_resumed() {
    let (mut visitor, session) = opened();
    let other = visitor.open("2025-11-25", json!({}));
    let call = visitor.call(&session, 1, "wait");
    visitor.advance(Duration::from_secs(15));
    visitor.finish(Ok(Reply::Text("done".into())));
    let last = visitor.reply(call).events()[0].0.clone();
    for id in [
        "never-issued",
        "99999999",
        "0",
        "-1",
        "a/b:c_1",
        &"x".repeat(4000),
        "1-99999999999999999999",
    ] {
        let get = Request::bare("GET", &session).header("last-event-id", id);
        visitor.rejects(&get, 400, "Last-Event-ID");
    }
    let get = Request::bare("GET", &other).header("last-event-id", &last);
    visitor.rejects(&get, 400, "Last-Event-ID");
    // After the last event there is nothing.
    let rest = visitor.ask(&Request::bare("GET", &session).header("last-event-id", &last));
    assert_eq!((rest.status, rest.messages(), rest.complete), (200, vec![], true));
}
