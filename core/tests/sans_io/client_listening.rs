//! Subscriptions of a client session: assignment of notifications, ends, and the state that a new session gets.

use std::time::Duration;

use gudgeon::{
    error::ErrorKind,
    framing::TooLong,
    protocol::{Method, SubscriptionFilter},
    session::client::{Change, Input, ListKind, Output, RequestKey, RequestOptions},
};
use serde_json::{Value, json};

use crate::support::wire::Scripted;

const ID: &str = "io.modelcontextprotocol/subscriptionId";
const LISTEN: &str = r#"{"notifications":{"toolsListChanged":true}}"#;

fn options() -> RequestOptions {
    RequestOptions { timeout: Some(Duration::from_secs(3)), ..RequestOptions::default() }
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A client with one subscription, and its id on the wire.
fn listening() -> (Scripted, u64) {
    let mut client = Scripted::modern();
    client.request(7, Method::Listen, LISTEN, options());
    let sent = client.sent();
    assert_eq!(sent["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(sent["params"]["_meta"].get("progressToken"), None, "it makes no progress");
    let id = sent["id"].as_u64().expect("a number");
    (client, id)
}

#[test]
fn a_silent_subscription_does_not_time_out() {
    let (mut client, _) = listening();
    assert!(!client.advance(Duration::from_secs(3600)));
    client.silent();
}

#[test]
fn notifications_are_told_apart_by_the_id_of_their_subscription() {
    let (mut client, id) = listening();
    client.request(8, Method::Listen, LISTEN, options());
    let other = client.sent()["id"].clone();
    for (id, key) in [(json!(id), 7), (other, 8)] {
        client.receive(&notification(
            "notifications/subscriptions/acknowledged",
            &json!({"_meta": {ID: id}, "notifications": {"toolsListChanged": true}}),
        ));
        let Some(Output::Acknowledged(RequestKey(told), kept)) = client.session.poll() else {
            panic!("it was acknowledged")
        };
        assert_eq!((told, kept), (key, SubscriptionFilter::default().tools()));
        client.receive(&notification(
            "notifications/tools/list_changed",
            &json!({"_meta": {ID: id}}),
        ));
        assert!(matches!(
            client.session.poll(),
            Some(Output::ChangeNotified(Some(RequestKey(told)), Change::List(ListKind::Tools))) if told == key
        ));
        client.receive(&notification(
            "notifications/resources/updated",
            &json!({"_meta": {ID: id}, "uri": "a:b"}),
        ));
        let Some(Output::ChangeNotified(Some(RequestKey(told)), Change::Updated(uri))) =
            client.session.poll()
        else {
            panic!("it was told")
        };
        assert_eq!((told, uri.as_str()), (key, "a:b"));
    }
}

#[test]
fn notifications_of_unknown_subscriptions_are_ignored() {
    let (mut client, id) = listening();
    client.request(8, Method::ListTools, "{}", RequestOptions::default());
    let listing = client.sent()["id"].clone();
    for id in [listing, json!(id + 70), json!(-1), json!("x"), json!({}), json!(null), json!(1.5)] {
        client.receive(&notification(
            "notifications/subscriptions/acknowledged",
            &json!({"_meta": {ID: id}, "notifications": {}}),
        ));
        client.receive(&notification("notifications/cancelled", &json!({"requestId": id})));
    }
    for params in
        [json!({"_meta": {ID: id}}), json!({"_meta": {ID: id}, "notifications": 3}), json!({})]
    {
        client.receive(&notification("notifications/subscriptions/acknowledged", &params));
    }
    client.receive(&notification("notifications/resources/updated", &json!({"_meta": {ID: id}})));
    client.receive(&notification(
        "notifications/tools/list_changed",
        &json!({"_meta": {ID: id + 70}}),
    ));
    client.silent();
    client.receive(&notification("notifications/tools/list_changed", &json!({})));
    assert!(matches!(
        client.session.poll(),
        Some(Output::ChangeNotified(None, Change::List(ListKind::Tools)))
    ));
}

#[test]
fn a_failed_subscription_reports_the_reason() {
    for (reason, message) in [
        (json!("too many"), "the server ended the subscription: too many"),
        (json!(null), "the server ended the subscription without a reason"),
        (json!(""), "the server ended the subscription without a reason"),
    ] {
        let (mut client, id) = listening();
        let params = json!({"requestId": id, "reason": reason});
        client.receive(&notification("notifications/cancelled", &params));
        let (key, outcome) = client.done();
        let error = outcome.expect_err("it ended");
        assert_eq!((key, error.kind, error.message.as_str()), (7, ErrorKind::Cancelled, message));
        client.receive(&notification("notifications/cancelled", &params));
        client.receive(&notification(
            "notifications/tools/list_changed",
            &json!({"_meta": {ID: id}}),
        ));
        client.silent();
    }
}

#[test]
fn a_graceful_end_is_a_result() {
    let (mut client, id) = listening();
    let result = json!({"resultType": "complete", "_meta": {ID: id}});
    client.receive(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    assert!(matches!(client.done(), (7, Ok(_))));
}

#[test]
fn an_overlong_message_does_not_end_a_subscription() {
    let (mut client, _) = listening();
    client.feed(Input::TooLong(TooLong { limit: 10, beginning: b"", end: b"" }));
    client.silent();
    client.request(8, Method::ListTools, "{}", RequestOptions::default());
    client.sent();
    client.feed(Input::TooLong(TooLong { limit: 10, beginning: b"", end: b"" }));
    let (key, outcome) = client.done();
    assert_eq!((key, outcome.expect_err("too long").kind), (8, ErrorKind::Protocol));
}

#[test]
fn a_new_session_gets_the_log_level_again() {
    let mut client = Scripted::legacy();
    client.feed(Input::Renewed);
    assert!(matches!(client.session.poll(), Some(Output::Renewed)));
    client.silent();
    for level in ["debug", "warning"] {
        let params = format!(r#"{{"level":{level:?}}}"#);
        client.request(1, Method::SetLevel, &params, RequestOptions::default());
        client.sent();
    }
    client.feed(Input::Renewed);
    let sent = client.sent();
    assert_eq!(
        (&sent["method"], &sent["params"]),
        (&json!("logging/setLevel"), &json!({"level": "warning"}))
    );
    assert!(matches!(client.session.poll(), Some(Output::Renewed)));
    client.receive(&json!({"jsonrpc": "2.0", "id": sent["id"], "result": {}}));
    client.silent();
}
