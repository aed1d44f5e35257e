//! Handlers of notifications over HTTP, and questions after the client has disconnected: the sans-IO endpoint.

use std::time::Duration;

use gudgeon::{
    engine::{HandlerEvent, Run, RunId},
    http::{ConnectionId, EndpointConfig, EndpointInput, ExchangeId, Reader},
    protocol::{Frame, LoggingLevel, Method, Question, json::to_raw},
    router::{Components, Definition, Reply},
    session::{
        asking::AskId,
        server::{Log, Progress},
    },
};
use serde_json::json;

use crate::support::{
    Handler, fixture, kept,
    visitor::{BOTH, Visitor, modern_body},
};

const OVER: &str = "the call is over: a handler can ask its client only while its call runs";
const GONE: &str = "the client disconnected: this question gets no answer";

fn components() -> Components {
    let mut components = fixture::components();
    components.add(Definition::Notification("acme/changed".into()), kept(Handler::Plain)).unwrap();
    components
}

fn visitor() -> Visitor {
    Visitor::new(components(), EndpointConfig::default())
}

fn ask(call: RunId, number: u64) -> EndpointInput<'static> {
    let params = to_raw(&json!({}));
    let question = Question { key: format!("k{number}"), method: Method::ListRoots, params };
    EndpointInput::Handler(call, HandlerEvent::Ask { ask: AskId(number), question })
}

/// Returns the handler of a notification that this session sent.
fn receive(visitor: &mut Visitor, session: &str) -> Run {
    let body = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    let id = visitor.legacy(session, &body);
    assert_eq!(visitor.reply(id).status, 202);
    let run = visitor.runs.pop().expect("a handler runs");
    assert!(run.is_notification);
    run
}

fn done(visitor: &mut Visitor, run: &Run) {
    visitor.handle(EndpointInput::Handler(run.id, HandlerEvent::Done(Ok(Reply::Nothing))));
}

#[test]
fn a_handler_of_notifications_asks_on_the_sessions_own_stream() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({"roots": {}}));
    let run = receive(&mut visitor, &session);
    visitor.handle(ask(run.id, 1));
    // The question waits for a stream.
    let stream = visitor.get(&session, "");
    let question = visitor.reply(stream).messages()[0].clone();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    visitor.legacy(&session, &answer);
    assert_eq!(visitor.answers, [(1, Ok(r#"{"roots":[]}"#.into()))]);
    let data = to_raw(&json!("heard"));
    let (call, level) = (run.id, LoggingLevel::Info);
    visitor
        .handle(EndpointInput::Handler(call, HandlerEvent::Log(Log { level, logger: None, data })));
    assert_eq!(visitor.reply(stream).messages()[1]["params"]["data"], "heard");
    done(&mut visitor, &run);
    visitor.answers.clear();
    visitor.handle(ask(run.id, 2));
    assert_eq!(visitor.answers, [(2, Err(OVER.into()))]);
}

#[test]
fn a_handler_of_notifications_is_informed_of_the_end_of_its_session() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({"roots": {}}));
    let run = receive(&mut visitor, &session);
    visitor.handle(ask(run.id, 1));
    visitor.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    visitor.handle(ask(run.id, 2));
    assert_eq!(visitor.answers, [(1, Err(GONE.into())), (2, Err(GONE.into()))]);
    done(&mut visitor, &run);
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn over_a_message_connection_a_handler_of_notifications_asks_until_the_end() {
    let mut visitor = visitor();
    let connection = ConnectionId(3);
    visitor.handle(EndpointInput::Opened(connection, None, None));
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
    ] {
        visitor.handle(EndpointInput::Message(
            connection,
            Frame::parse(message.to_string().as_bytes()),
        ));
    }
    let run = visitor.runs.pop().unwrap();
    visitor.handle(ask(run.id, 1));
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}).to_string();
    visitor.handle(EndpointInput::Message(connection, Frame::parse(answer.as_bytes())));
    visitor.handle(ask(run.id, 2));
    visitor.handle(EndpointInput::ConnectionClosed(connection));
    visitor.handle(ask(run.id, 3));
    let answers = [(1, Ok(r#"{"roots":[]}"#.into())), (2, Err(GONE.into())), (3, Err(GONE.into()))];
    assert_eq!(visitor.answers, answers);
}

#[test]
fn a_modern_notification_has_nothing_that_could_carry_a_question() {
    let mut visitor = visitor();
    let mut body = modern_body("acme/changed", json!({}));
    body.as_object_mut().unwrap().remove("id");
    let headers = [
        ("content-type", "application/json"),
        ("accept", BOTH),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "acme/changed"),
    ];
    let id = visitor.send("POST", "/mcp", &headers, &body.to_string());
    assert_eq!(visitor.reply(id).status, 202);
    let run = visitor.runs.pop().unwrap();
    visitor.handle(ask(run.id, 1));
    let (_, answer) = visitor.answers.pop().unwrap();
    assert!(answer.unwrap_err().starts_with("a handler of notifications can't ask in 2026-07-28"));
    done(&mut visitor, &run);
}

#[test]
fn a_handler_whose_client_has_disconnected_gets_an_error_when_it_asks() {
    // A request that was given up, of either era.
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({"roots": {}}));
    visitor.call(&session, 1, "wait");
    let legacy = visitor.runs.pop().unwrap();
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    visitor.legacy(&session, &cancelled);
    let params = json!({"name": "wait", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    }});
    let id = visitor.modern("tools/call", params);
    let modern = visitor.runs.pop().unwrap();
    visitor.handle(EndpointInput::Disconnected(ExchangeId(id)));
    // And one whose session has ended.
    visitor.call(&session, 2, "wait");
    let ended = visitor.runs.pop().unwrap();
    visitor.handle(ask(ended.id, 1));
    visitor.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(visitor.answers, [], "who waits is stopped, and told nothing");
    assert!(visitor.cancelled.contains(&ended.id.0));
    for (number, run) in [(2, &legacy), (3, &modern), (4, &ended)] {
        visitor.answers.clear();
        visitor.handle(ask(run.id, number));
        assert_eq!(visitor.answers, [(number, Err(OVER.into()))]);
        done(&mut visitor, run);
    }
}

#[test]
fn a_subscription_that_falls_behind_ends_its_stream() {
    let mut visitor = visitor();
    let notifications = json!({"resourceSubscriptions": ["fixture://about"]});
    let id = visitor.modern("subscriptions/listen", json!({"notifications": notifications}));
    let other = visitor.modern("tools/call", json!({"name": "wait", "arguments": {}}));
    visitor.handle(EndpointInput::Updated("fixture://about"));
    for id in [id, other] {
        visitor.handle(EndpointInput::CutSubscriptions(Reader::Exchange(ExchangeId(id))));
    }
    let reply = visitor.reply(id);
    assert!(reply.complete);
    let sent: Vec<_> = reply.messages().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(
        sent,
        [
            "notifications/subscriptions/acknowledged",
            "notifications/resources/updated",
            "notifications/cancelled"
        ]
    );
    let last = reply.messages()[2]["params"].clone();
    assert_eq!(last["requestId"], last["_meta"]["io.modelcontextprotocol/subscriptionId"]);
    visitor.handle(EndpointInput::Updated("fixture://about"));
    // Other requests continue.
    visitor.finish(Ok(Reply::Text("done".into())));
    assert_eq!(visitor.reply(other).json()["result"]["content"][0]["text"], "done");
    assert_eq!(visitor.endpoint.in_flight(), 0);
}

#[test]
fn notifications_without_a_stream_are_merged() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "fixture://about"}});
    visitor.legacy(&session, &subscribe);
    for _ in 0..1_000 {
        visitor.handle(EndpointInput::Updated("fixture://about"));
    }
    let stream = visitor.get(&session, "");
    assert_eq!(visitor.reply(stream).messages().len(), 1);
}

#[test]
fn progress_that_steps_back_is_reported() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    visitor.call(&session, 1, "wait");
    let call = visitor.runs[0].id;
    for progress in [2.0, 1.0, 0.0] {
        visitor.handle(EndpointInput::Handler(
            call,
            HandlerEvent::Progress(Progress { progress, total: None, message: None }),
        ));
    }
    assert_eq!(visitor.reports.len(), 1);
    assert!(visitor.reports[0].contains("1 came after 2"), "{:?}", visitor.reports);
    visitor.advance(Duration::from_secs(1));
}

#[test]
fn dropped_log_messages_are_reported_later() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let stream = visitor.get(&session, "");
    let call = visitor.call(&session, 1, "wait");
    let log = |visitor: &mut Visitor| {
        let run = visitor.runs.last().unwrap().id;
        for _ in 0..1_200 {
            let (level, data) = (LoggingLevel::Info, to_raw(&json!("x")));
            visitor.handle(EndpointInput::Handler(
                run,
                HandlerEvent::Log(Log { level, logger: None, data }),
            ));
        }
    };
    log(&mut visitor);
    assert_eq!(visitor.reply(call).messages().len(), 1_000);
    assert!(visitor.reply(stream).messages().is_empty());
    visitor.advance(Duration::from_secs(8));
    let sent = visitor.reply(stream).messages();
    assert_eq!(sent.len(), 1);
    let text = sent[0]["params"]["data"].as_str().unwrap();
    assert!(text.starts_with("200 log messages were left out"), "{text}");
    visitor.advance(Duration::from_secs(60));
    assert_eq!(visitor.reply(stream).messages().len(), 1, "once");
}
