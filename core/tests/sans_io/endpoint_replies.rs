//! The form of a response, JSON or a stream of events, and the messages that come before it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::http::EndpointConfig;
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{BOTH, Request, message, notification},
    visitor::{Answered, Visitor},
};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn opened() -> (Visitor, String) {
    let mut visitor = Visitor::new(fixture::components(), EndpointConfig::default());
    let session = visitor.open("2025-11-25", json!({}));
    (visitor, session)
}

/// A call that reports its progress three times, in each era.
fn counts(session: &str, token: &Value) -> [Request; 2] {
    let mut params = json!({"name": "count", "arguments": {"steps": 3}});
    if !token.is_null() {
        params["_meta"] = json!({ "progressToken": token });
    }
    let modern = Request::modern("tools/call", params.clone());
    [modern, Request::of_session(session, &message("tools/call", params))]
}

fn methods(reply: &Answered) -> Vec<Value> {
    reply.messages().iter().map(|message| message["method"].clone()).collect()
}

#[test]
fn a_response_without_notifications_is_one_line_of_json() {
    let (mut visitor, session) = opened();
    let params = json!({
        "name": "echo", "arguments": {"text": "hi"}, "_meta": {"progressToken": "t"},
    });
    let requests = [
        Request::modern("tools/call", params.clone()),
        Request::of_session(&session, &message("tools/call", params)),
    ];
    for request in requests {
        let reply = visitor.ask(&request);
        assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
        assert!(!reply.body.contains('\n') && !reply.body.contains(r#"": "#), "{reply:?}");
        assert_eq!(reply.json()["result"]["content"][0]["text"], "hi");
        assert_eq!(visitor.endpoint.in_flight(), 0);
    }
}

#[test]
fn progress_makes_a_stream_that_ends_with_the_result() {
    let (mut visitor, session) = opened();
    for token in [json!("t"), json!(""), json!(7), json!(9_007_199_254_740_993_u64)] {
        for request in counts(&session, &token) {
            let reply = visitor.ask(&request);
            assert!(reply.is_stream() && reply.complete, "{reply:?}");
            assert_eq!(reply.header("x-accel-buffering"), "no");
            assert_eq!(reply.header("cache-control"), "no-cache, no-transform");
            let messages = reply.messages();
            let sent: Vec<_> = messages[..3]
                .iter()
                .map(|message| {
                    (&message["params"]["progressToken"], &message["params"]["progress"])
                })
                .collect();
            assert_eq!(sent, [(&token, &json!(1)), (&token, &json!(2)), (&token, &json!(3))]);
            assert_eq!((messages.len(), &messages[3]["id"]), (4, &json!(1)));
            assert!(messages[3]["result"].is_object());
        }
    }
}

#[test]
fn only_a_session_that_can_be_resumed_gets_ids_of_events() {
    for (event_store, has_ids) in [(true, true), (false, false)] {
        let config = EndpointConfig { event_store, ..EndpointConfig::default() };
        let mut visitor = Visitor::new(fixture::components(), config);
        let session = visitor.open("2025-11-25", json!({}));
        let [modern, legacy] = counts(&session, &json!("t"));
        let reply = visitor.ask(&legacy);
        // The first event primes: it has an id and no data.
        assert_eq!(reply.body.starts_with("id: "), has_ids, "{reply:?}");
        assert!(reply.events().iter().all(|(id, _)| id.is_empty() != has_ids), "{reply:?}");
        assert_eq!(reply.messages().len(), 4);
        assert!(!visitor.ask(&modern).body.contains("id: "));
    }
}

#[test]
fn without_a_token_nobody_is_told_of_progress() {
    let (mut visitor, session) = opened();
    for request in counts(&session, &json!(null)) {
        let reply = visitor.ask(&request);
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    }
}

#[test]
fn the_accepted_media_types_decide_the_form() {
    let (mut visitor, session) = opened();
    for (accept, streams_progress, streams_result) in [
        (BOTH, true, false),
        ("*/*", true, false),
        ("text/event-stream, */*;q=0.1", true, false),
        ("TEXT/EVENT-STREAM , Application/Json", true, false),
        ("application/json", false, false),
        ("application/json;q=0.9", false, false),
        ("application/*", false, false),
        ("*/*, text/event-stream;q=0", false, false),
        ("text/event-stream", true, true),
        ("application/json;q=0, text/event-stream", true, true),
    ] {
        for request in counts(&session, &json!("t")) {
            let reply = visitor.ask(&request.header("accept", accept));
            assert_eq!((reply.status, reply.is_stream()), (200, streams_progress), "{accept}");
            if !reply.is_stream() {
                assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
            }
        }
        let list = Request::modern("tools/list", json!({})).header("accept", accept);
        assert_eq!(visitor.ask(&list).is_stream(), streams_result, "{accept}");
        visitor.serves(&list);
    }
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = Request::modern("subscriptions/listen", params);
    visitor.refuses(&listen.clone().header("accept", "application/json"), 406, -32600);
    assert!(visitor.ask(&listen.header("accept", "text/event-stream")).is_stream());
}

#[test]
fn failures_of_a_handler_are_no_stream() {
    let (mut visitor, session) = opened();
    let fail = json!({"name": "fail", "arguments": {"message": "no"}});
    for params in
        [fail, json!({"name": "crash"}), json!({"name": "echo", "arguments": {"text": 7}})]
    {
        let modern = Request::modern("tools/call", params.clone());
        for request in [modern, Request::of_session(&session, &message("tools/call", params))] {
            let reply = visitor.ask(&request);
            assert_eq!((reply.status, reply.is_stream()), (200, false), "{reply:?}");
            assert_eq!(reply.json()["result"]["isError"], true);
            assert!(!reply.body.contains("secret"), "{reply:?}");
        }
    }
}

#[test]
fn params_that_do_not_fit_are_400_in_the_modern_era_and_200_in_a_session() {
    let (mut visitor, session) = opened();
    let completion = json!({"ref": {"type": "ref/prompt", "name": "nobody"}, "argument": {"name": "a", "value": ""}});
    for (method, params, code) in [
        ("tools/call", json!({"name": "no_such_tool", "arguments": {}}), -32602),
        ("tools/call", json!({"name": "echo", "arguments": [1]}), -32602),
        ("tools/call", json!({"name": 7}), -32602),
        ("resources/read", json!({"uri": "fixture://nowhere"}), -32602),
        ("prompts/get", json!({"name": "no_such_prompt"}), -32602),
        ("prompts/get", json!({"name": "greet", "arguments": {"style": "only"}}), -32602),
        ("tools/list", json!({"cursor": "garbage"}), -32602),
        ("completion/complete", completion, -32602),
    ] {
        let error = visitor.refuses(&Request::modern(method, params.clone()), 400, code);
        let code = if method == "resources/read" { -32002 } else { code };
        let request = Request::of_session(&session, &message(method, params));
        let legacy = visitor.refuses(&request, 200, code);
        if method == "resources/read" {
            assert_eq!(error["data"]["uri"], "fixture://nowhere");
            assert_eq!(legacy["data"]["uri"], "fixture://nowhere");
        }
    }
}

#[test]
fn log_messages_come_from_the_level_on_that_was_asked_for() {
    let (mut visitor, session) = opened();
    let say = json!({"name": "say", "arguments": {"level": "warning", "text": "hm"}});
    let legacy = Request::of_session(&session, &message("tools/call", say.clone()));
    let set = |level: &str| {
        Request::of_session(&session, &message("logging/setLevel", json!({ "level": level })))
    };
    visitor.refuses(&set("loud"), 200, -32602);
    for (level, count) in [("error", 0), ("warning", 1), ("debug", 1)] {
        visitor.serves(&set(level));
        let mut call = say.clone();
        call["_meta"] = json!({ LOG_LEVEL: level });
        for request in [&legacy, &Request::modern("tools/call", call)] {
            let reply = visitor.ask(request);
            let logs =
                methods(reply).iter().filter(|method| *method == "notifications/message").count();
            assert_eq!(logs, count, "{level} {reply:?}");
        }
    }
    // None was asked for.
    assert!(!visitor.ask(&Request::modern("tools/call", say.clone())).is_stream());
    let mut loud = say;
    loud["_meta"] = json!({ LOG_LEVEL: "loud" });
    visitor.refuses(&Request::modern("tools/call", loud), 400, -32602);
}

#[test]
fn an_accepted_notification_has_no_body() {
    let (mut visitor, session) = opened();
    for method in ["notifications/cancelled", "notifications/example"] {
        let body = notification(method, json!({"requestId": "nobody"}));
        visitor.accepts(&Request::of_session(&session, &body));
        let modern = Request::post(&body).header("mcp-protocol-version", "2026-07-28");
        visitor.accepts(&modern.header("mcp-method", method));
    }
}

/// Nothing that a client sends ends a header or an event early.
#[test]
fn what_a_client_sends_comes_back_inside_one_value() {
    const EVIL: &str =
        "a\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK\r\n\r\ndata: evil\n\nevent: evil\u{2028}";
    let (mut visitor, session) = opened();
    let encoded = format!("=?base64?{}?=", STANDARD.encode(EVIL));
    let unknown = json!({"name": EVIL, "arguments": {}});
    let modern = Request::modern("tools/call", unknown.clone()).without("mcp-name");
    visitor.refuses(&modern.header("mcp-name", &encoded), 400, -32602);
    visitor.refuses(&Request::of_session(&session, &message("tools/call", unknown)), 200, -32602);
    let echo = json!({"name": "echo", "arguments": {"text": EVIL}});
    let result = visitor.serves(&Request::modern("tools/call", echo));
    assert_eq!(result["content"][0]["text"], EVIL);
    for request in counts(&session, &json!(EVIL)) {
        let mut body: Value = serde_json::from_slice(&request.body).unwrap();
        body["id"] = json!(EVIL);
        let reply = visitor.ask(&request.body(body.to_string()));
        assert_eq!(reply.headers.get("x-evil"), None);
        let is_ours = |line: &str| match line.split_once(':') {
            Some(("data", value)) => value.trim().is_empty() || value.starts_with(" {"),
            Some((field, _)) => field == "id",
            None => line.is_empty(),
        };
        assert!(reply.body.split(['\r', '\n']).all(is_ours), "{reply:?}");
        let messages = reply.messages();
        assert_eq!((messages.len(), &messages[3]["id"]), (4, &json!(EVIL)));
        assert!(messages[..3].iter().all(|message| message["params"]["progressToken"] == EVIL));
    }
}
