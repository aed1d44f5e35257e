//! Questions to the client of an HTTP session: the stream that they are sent on, and clients without a stream.

use gudgeon::{
    engine::HandlerEvent,
    engine::RunId,
    http::{EndpointConfig, EndpointInput, ExchangeId},
    protocol::{Method, Question, json::to_raw},
    router::Reply,
    session::{asking::AskId, server::Progress},
};
use serde_json::json;

use crate::support::{
    fixture,
    visitor::{self, Visitor},
};

fn visitor() -> Visitor {
    Visitor::new(fixture::components(), EndpointConfig::default())
}

#[test]
fn the_client_is_asked_on_the_stream_of_its_call() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({"roots": {}}));
    let stream = visitor.get(&session, "");
    let call = visitor.call(&session, 1, "wait");
    let running = visitor.runs[0].id;
    let ask = |method| {
        EndpointInput::Handler(
            running,
            HandlerEvent::Ask {
                ask: AskId(5),
                question: Question { key: "asked".into(), method, params: to_raw(&json!({})) },
            },
        )
    };
    visitor.handle(ask(Method::ListRoots));
    let question = visitor.reply(call).messages()[0].clone();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": [{"uri": "file:///a"}]}});
    let id = visitor.legacy(&session, &answer);
    assert_eq!(visitor.reply(id).status, 202);
    assert_eq!(visitor.answers, [(5, Ok(r#"{"roots":[{"uri":"file:///a"}]}"#.into()))]);
    visitor.finish(Ok(Reply::Nothing));
    assert!(visitor.reply(call).complete);
    assert!(visitor.reply(stream).messages().is_empty());
}

/// Calls a tool whose client takes an answer in these forms; its handler's call.
fn call_accepting(visitor: &mut Visitor, session: &str, accept: &str) -> (u64, RunId) {
    let params = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": 1}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers =
        [("content-type", "application/json"), ("accept", accept), ("mcp-session-id", session)];
    let call = visitor.send("POST", "/mcp", &headers, &body.to_string());
    (call, visitor.runs.last().unwrap().id)
}

fn ask_for_roots(visitor: &mut Visitor, call: RunId) {
    let question =
        Question { key: "asked".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    visitor.handle(EndpointInput::Handler(call, HandlerEvent::Ask { ask: AskId(5), question }));
}

/// The question comes on this stream, and its answer reaches the handler.
fn is_asked_on(visitor: &mut Visitor, session: &str, stream: u64) {
    let sent = visitor.reply(stream).messages();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": sent[0]["id"], "result": {"roots": []}});
    visitor.legacy(session, &answer);
    assert_eq!(visitor.answers, [(5, Ok(r#"{"roots":[]}"#.into()))]);
}

#[test]
fn a_question_whose_stream_broke_is_sent_on_a_listening_stream() {
    for event_store in [true, false] {
        let mut visitor = Visitor::new(
            fixture::components(),
            EndpointConfig { event_store, ..EndpointConfig::default() },
        );
        let session = visitor.open("2025-11-25", json!({"roots": {}}));
        let (call, running) = call_accepting(&mut visitor, &session, visitor::BOTH);
        if !event_store {
            visitor.handle(EndpointInput::Handler(
                running,
                HandlerEvent::Progress(Progress { progress: 1.0, total: None, message: None }),
            ));
        }
        visitor.handle(EndpointInput::Disconnected(ExchangeId(call)));
        ask_for_roots(&mut visitor, running);
        assert!(visitor.answers.is_empty(), "its client may come back");
        let stream = visitor.get(&session, "");
        is_asked_on(&mut visitor, &session, stream);
    }
}

#[test]
fn a_client_without_event_streams_can_not_be_asked() {
    let problem = "the client can't be asked: its request does not accept text/event-stream, and it has no GET stream open, \
                   so nothing would carry the question: accept text/event-stream, or open a GET stream";
    for event_store in [true, false] {
        let config = EndpointConfig { event_store, ..EndpointConfig::default() };
        let json = "application/json";
        let mut visitor = Visitor::new(fixture::components(), config.clone());
        let session = visitor.open("2025-11-25", json!({"roots": {}}));
        let (call, running) = call_accepting(&mut visitor, &session, json);
        ask_for_roots(&mut visitor, running);
        assert_eq!(visitor.answers.pop(), Some((5, Err(problem.into()))), "{event_store}");
        visitor.handle(EndpointInput::Handler(running, HandlerEvent::Waits { blocks: false }));
        // Returned questions fail the call.
        let asked = json!([
            {"key": "a", "method": "roots/list", "params": {}},
            {"key": "b", "method": "roots/list", "params": {}},
        ]);
        visitor.finish(Ok(Reply::Questions(asked.to_string())));
        let said = visitor.reply(call).json();
        assert_eq!(said["result"]["isError"], true, "{said}");
        assert_eq!(said["result"]["content"][0]["text"], problem);
        assert!(visitor.reply(call).complete);
        assert_eq!(visitor.endpoint.in_flight(), 0);
        // A question that was not asked is not queued.
        let stream = visitor.get(&session, "");
        assert!(visitor.reply(stream).messages().is_empty());

        // A listening client is asked on its stream.
        let (_, running) = call_accepting(&mut visitor, &session, json);
        ask_for_roots(&mut visitor, running);
        is_asked_on(&mut visitor, &session, stream);
        visitor.answers.clear();
        visitor.finish(Ok(Reply::Nothing));
        // A stream that broke may be resumed, where that can be.
        visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
        let (_, running) = call_accepting(&mut visitor, &session, json);
        ask_for_roots(&mut visitor, running);
        if event_store {
            assert!(visitor.answers.is_empty());
            let stream = visitor.get(&session, "");
            is_asked_on(&mut visitor, &session, stream);
        } else {
            assert_eq!(visitor.answers, [(5, Err(problem.into()))]);
        }
    }
}
