//! A server that keeps no sessions for clients before 2026-07-28 (option `sessions`): each request is served by itself
//! (2025-11-25, Transports, "Session Management": a server MAY assign a session id).

use gudgeon::{
    engine::HandlerEvent,
    http::{EndpointConfig, EndpointInput, SessionMode},
    protocol::{LoggingLevel, Method, Question, json::to_raw},
    router::Reply,
    session::{
        asking::AskId,
        server::{Log, Progress},
    },
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn visitor() -> Visitor {
    let config = EndpointConfig { sessions: SessionMode::None, ..EndpointConfig::default() };
    Visitor::new(fixture::components(), config)
}

fn at(revision: &str, method: &str, params: Value) -> Request {
    Request::post(message(method, params)).header("mcp-protocol-version", revision)
}

fn call(revision: &str, tool: &str, arguments: &Value) -> Request {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}});
    at(revision, "tools/call", params)
}

#[test]
fn requests_are_served_without_an_id() {
    let mut visitor = visitor();
    for revision in LEGACY {
        let reply = visitor.ask(&Request::post(initialize(revision)));
        assert_eq!((reply.status, reply.header("mcp-session-id")), (200, ""));
        let result = &reply.json()["result"];
        assert_eq!(result["protocolVersion"], revision);
        // What only a session could do is not declared.
        assert_eq!(result["capabilities"]["tools"], json!({}));
        assert_eq!(result["capabilities"]["resources"], json!({}));
        assert!(result["capabilities"]["logging"].is_null());
        let initialized = notification("notifications/initialized", json!({}));
        visitor.accepts(&Request::post(initialized).header("mcp-protocol-version", revision));
        visitor.serves(&at(revision, "ping", json!({})));
        visitor.serves(&at(revision, "tools/list", json!({})));
        let result = visitor.serves(&call(revision, "add", &json!({"a": 1, "b": 2})));
        assert_eq!(result["content"][0]["text"], "3", "{result}");
    }
    // A client that sends no version, and one that made up an id.
    visitor.serves(&Request::post(message("tools/list", json!({}))));
    visitor.serves(&Request::of_session("made-up", &message("tools/list", json!({}))));
    assert_eq!(visitor.endpoint.sessions(), 0);
    visitor.serves(&Request::modern("tools/list", json!({})));
}

#[test]
fn what_needs_a_session_is_refused_by_name() {
    let mut visitor = visitor();
    for method in ["resources/subscribe", "resources/unsubscribe", "logging/setLevel"] {
        let params = match method {
            "logging/setLevel" => json!({"level": "info"}),
            _ => json!({"uri": "fixture://about"}),
        };
        let error = visitor.refuses(&at("2025-11-25", method, params), 200, -32601);
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(method) && text.contains("sessions"), "{text}");
    }
    for method in ["GET", "DELETE"] {
        visitor.rejects(&Request::bare(method, "any"), 405, "no sessions");
    }
    visitor.refuses(&at("2025-11-25", "no/such", json!({})), 200, -32601);
    visitor.refuses(&Request::post("{").header("mcp-protocol-version", "2025-11-25"), 400, -32700);
    visitor.rejects(
        &at("2020-01-01", "ping", json!({})).header("mcp-session-id", "a"),
        400,
        "not supported",
    );
}

#[test]
fn a_call_sends_progress_and_neither_questions_nor_log_messages() {
    let mut visitor = visitor();
    let id = visitor.request(&call("2025-06-18", "wait", &json!({})));
    let run = visitor.runs[0].id;
    assert!(!visitor.runs[0].context.has_session());
    let progress = Progress { progress: 1.0, total: None, message: None };
    let log = Log { level: LoggingLevel::Error, logger: None, data: to_raw(&json!("heard?")) };
    let question =
        Question { key: "asked".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    for event in [
        HandlerEvent::Progress(progress),
        HandlerEvent::Log(log),
        HandlerEvent::Ask { ask: AskId(5), question },
    ] {
        visitor.handle(EndpointInput::Handler(run, event));
    }
    let (asked, outcome) = visitor.answers.pop().unwrap();
    assert_eq!(asked, 5);
    assert!(outcome.unwrap_err().contains("keeps no sessions (option sessions)"));
    visitor.finish(Ok(Reply::Text("done".into())));
    let methods: Vec<_> =
        visitor.reply(id).messages().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("notifications/progress"), Value::Null]);
}
