//! Batches over HTTP: 2024-11-05 and 2025-03-26 have them, no other revision does.

use gudgeon::{
    engine::HandlerEvent,
    http::{EndpointConfig, EndpointInput},
    router::Reply,
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

const WITH: [&str; 2] = ["2024-11-05", "2025-03-26"];

fn opened(revision: &str) -> (Visitor, String) {
    let mut visitor = Visitor::new(fixture::components(), EndpointConfig::default());
    let session = visitor.open(revision, json!({}));
    (visitor, session)
}

fn request(id: &Value, method: &str, params: Value) -> Value {
    let mut request = message(method, params);
    request["id"] = id.clone();
    request
}

fn ping(id: u64) -> Value {
    request(&json!(id), "ping", json!({}))
}

fn wait(id: u64) -> Value {
    request(&json!(id), "tools/call", json!({"name": "wait", "arguments": {}}))
}

fn ids(array: &Value) -> Vec<Value> {
    array.as_array().unwrap().iter().map(|response| response["id"].clone()).collect()
}

#[test]
fn responses_come_in_one_array_in_the_order_of_the_requests() {
    for revision in WITH {
        let (mut visitor, session) = opened(revision);
        let example = notification("notifications/example", json!({}));
        let unknown = request(&json!("x"), "nobody/knows", json!({}));
        let batch = json!([wait(1), example, ping(2), unknown]);
        let id = visitor.request(&Request::of_session(&session, &batch));
        assert!(!visitor.replies.contains_key(&id), "one is not done");
        visitor.finish(Ok(Reply::Text("done".into())));
        let reply = visitor.reply(id);
        assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
        assert_eq!(ids(&reply.json()), [json!(1), json!(2), json!("x")]);
        assert_eq!(reply.json()[1]["result"], json!({}));
        assert_eq!(reply.json()[2]["error"]["code"], -32601);
    }
}

#[test]
fn progress_comes_before_the_array() {
    for revision in WITH {
        let (mut visitor, session) = opened(revision);
        let count =
            json!({"name": "count", "arguments": {"steps": 3}, "_meta": {"progressToken": "t"}});
        let batch = json!([request(&json!(1), "tools/call", count), ping(2)]);
        let reply = visitor.ask(&Request::of_session(&session, &batch));
        let mut messages = reply.messages();
        let array = messages.pop().unwrap();
        let progress: Vec<_> =
            messages.iter().map(|message| message["params"]["progress"].clone()).collect();
        assert_eq!(
            (progress, ids(&array)),
            (vec![json!(1), json!(2), json!(3)], vec![json!(1), json!(2)])
        );
    }
}

#[test]
fn a_batch_without_a_response_is_accepted() {
    for revision in WITH {
        let (mut visitor, session) = opened(revision);
        let example = notification("notifications/example", json!({}));
        let answer = json!({"jsonrpc": "2.0", "id": "never-asked", "result": {}});
        for batch in [json!([example, example, example]), json!([answer, example])] {
            visitor.accepts(&Request::of_session(&session, &batch));
        }
        // The only request is cancelled.
        let id = visitor.request(&Request::of_session(&session, &json!([wait(1)])));
        let cancel = notification("notifications/cancelled", json!({"requestId": 1}));
        visitor.accepts(&Request::of_session(&session, &cancel));
        assert_eq!((visitor.reply(id).status, &*visitor.reply(id).body), (202, ""));
        let run = visitor.runs[0].id;
        visitor.handle(EndpointInput::Handler(run, HandlerEvent::Done(Ok(Reply::Nothing))));
    }
}

#[test]
fn a_batch_has_one_to_a_thousand_messages() {
    let (mut visitor, session) = opened("2025-03-26");
    let pings = |count: u64| Request::of_session(&session, &(0..count).map(ping).collect());
    assert_eq!(visitor.ask(&pings(1_000)).json().as_array().unwrap().len(), 1_000);
    for count in [0, 1_001] {
        visitor.refuses(&pings(count), 400, -32600);
    }
}

#[test]
fn a_member_that_is_no_message_has_its_error_in_the_array() {
    let (mut visitor, session) = opened("2025-03-26");
    let reply = visitor.ask(&Request::of_session(&session, &json!([7, ping(1)])));
    assert_eq!(reply.json()[0]["error"]["code"], -32600);
    assert_eq!(reply.json()[1]["result"], json!({}));
}

#[test]
fn initialize_is_not_part_of_a_batch() {
    let (mut visitor, session) = opened("2025-03-26");
    let batch = Request::post(json!([initialize("2025-03-26"), ping(2)]));
    visitor.refuses(&batch, 400, -32600);
    assert_eq!(visitor.ask(&batch).header("mcp-session-id"), "");
    visitor.refuses(&batch.header("mcp-session-id", &session), 400, -32600);
    visitor.serves(&Request::of_session(&session, &ping(1)));
}

#[test]
fn revisions_without_batches_refuse_them() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let (mut visitor, session) = opened(revision);
        for batch in [json!([]), json!([ping(1)])] {
            visitor.refuses(&Request::of_session(&session, &batch), 400, -32600);
        }
        visitor.serves(&Request::of_session(&session, &ping(1)));
        let modern = Request::modern("tools/list", json!({}));
        let body: Value = serde_json::from_slice(&modern.body).unwrap();
        for batch in [json!([]), json!([body]), json!([body, body])] {
            let error = visitor.refuses(&modern.clone().body(batch.to_string()), 400, -32600);
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("2026-07-28 does not support batches"), "{message}");
        }
    }
}
