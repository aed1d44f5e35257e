//! Sessions over HTTP (2025-03-26 to 2025-11-25, Transports) and HTTP+SSE of 2024-11-05: the sans-IO endpoint.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    engine::HandlerEvent,
    http::{ConnectionId, EndpointConfig, EndpointInput, ExchangeId, Reader},
    protocol::{Frame, Method, Question, json::to_raw},
    router::Reply,
    session::{
        asking::AskId,
        server::{ListKind, Progress},
    },
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize},
    visitor::{Visitor, modern_body},
};

fn visitor() -> Visitor {
    Visitor::new(fixture::components(), EndpointConfig::default())
}

fn with(config: EndpointConfig) -> Visitor {
    Visitor::new(fixture::components(), config)
}

fn ping(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

fn step(progress: f64) -> Progress {
    Progress { progress, total: None, message: None }
}

fn change(visitor: &mut Visitor) {
    visitor
        .handle(EndpointInput::Components(Arc::new(fixture::components()), vec![ListKind::Tools]));
}

#[test]
fn pending_requests_of_an_ended_session_get_an_error() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let waiting = visitor.call(&session, 1, "wait");
    visitor.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(visitor.reply(waiting).status, 404);
    assert_eq!(visitor.reply(waiting).json()["id"], 1);
    assert!(visitor.reply(waiting).complete);
    assert_eq!(visitor.cancelled.len(), 1);
    let session = visitor.open("2025-11-25", json!({}));
    let waiting = visitor.call(&session, 1, "wait");
    visitor.handle(EndpointInput::Closed);
    assert_eq!(visitor.reply(waiting).status, 503);
    assert!(visitor.reply(waiting).complete);
}

#[test]
fn what_a_session_holds_goes_when_it_is_idle() {
    let config =
        EndpointConfig { session_idle: Duration::from_secs(60), ..EndpointConfig::default() };
    let mut visitor = with(config);
    let [idle, used, listening, calling] = [0; 4].map(|_| visitor.open("2025-11-25", json!({})));
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 9, "method": "resources/subscribe", "params": {"uri": "fixture://about"},
    });
    for session in [&idle, &used, &listening, &calling] {
        visitor.legacy(session, &subscribe);
    }
    let stream = visitor.get(&listening, "");
    visitor.call(&calling, 1, "wait");
    for _ in 0..3 {
        visitor.advance(Duration::from_secs(40));
        visitor.legacy(&used, &ping(1));
    }
    let held = |visitor: &Visitor| {
        [&idle, &used, &listening, &calling].map(|session| visitor.endpoint.holds_session(session))
    };
    assert_eq!(held(&visitor), [false, true, true, true]);
    visitor.finish(Ok(Reply::Nothing));
    visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
    visitor.advance(Duration::from_secs(61));
    assert_eq!(held(&visitor), [false; 4]);
    for session in [&idle, &used, &listening, &calling] {
        let id = visitor.legacy(session, &ping(2));
        assert_eq!(visitor.reply(id).status, 200, "its client goes on with it");
    }
}

#[test]
fn a_message_goes_on_one_stream_only() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let (first, second) = (visitor.get(&session, ""), visitor.get(&session, ""));
    let call = visitor.call(&session, 1, "wait");
    let running = visitor.runs[0].id;
    change(&mut visitor);
    visitor.handle(EndpointInput::Handler(running, HandlerEvent::Progress(step(1.0))));
    visitor.finish(Ok(Reply::Text("done".into())));
    let sent: usize =
        [first, second].iter().map(|stream| visitor.reply(*stream).messages().len()).sum();
    assert_eq!(sent, 1);
    let methods: Vec<_> =
        visitor.reply(call).messages().iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("notifications/progress"), Value::Null]);
}

#[test]
fn a_reader_that_lags_gets_no_progress_until_it_has_read() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let in_session = visitor.call(&session, 1, "wait");
    let wait = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": "t"}});
    let alone = visitor.modern("tools/call", wait.clone());
    let connection = ConnectionId(9);
    visitor.handle(EndpointInput::Opened(connection, None, None));
    let message = modern_body("tools/call", wait).to_string();
    visitor.handle(EndpointInput::Message(connection, Frame::parse(message.as_bytes())));
    let calls: Vec<_> = visitor.runs.iter().map(|run| run.id).collect();
    let readers = [in_session, alone].map(|id| Reader::Exchange(ExchangeId(id)));
    let readers = [readers[0], readers[1], Reader::Connection(connection)];
    for (reader, call) in readers.into_iter().zip(calls) {
        for (amount, is_lagging) in [(1.0, false), (2.0, true), (3.0, false)] {
            visitor.handle(EndpointInput::Lagging(reader, is_lagging));
            visitor.handle(EndpointInput::Handler(call, HandlerEvent::Progress(step(amount))));
        }
        let sent = match reader {
            Reader::Exchange(id) => visitor.reply(id.0).messages(),
            Reader::Connection(_) => visitor.frames.iter().map(|frame| frame.1.clone()).collect(),
        };
        let told: Vec<_> =
            sent.iter().map(|message| message["params"]["progress"].clone()).collect();
        assert_eq!(told, [json!(1), json!(3)], "{reader:?}");
    }
}

#[test]
fn a_change_is_sent_to_each_session_on_a_stream_that_is_open() {
    let mut visitor = visitor();
    let (one, other) =
        (visitor.open("2025-11-25", json!({})), visitor.open("2025-11-25", json!({})));
    let (first, second, theirs) =
        (visitor.get(&one, ""), visitor.get(&one, ""), visitor.get(&other, ""));
    let head = visitor.reply(first);
    assert_eq!(
        (head.status, head.is_stream(), head.header("x-accel-buffering")),
        (200, true, "no")
    );
    visitor.handle(EndpointInput::Disconnected(ExchangeId(first)));
    change(&mut visitor);
    for stream in [second, theirs] {
        let messages = visitor.reply(stream).messages();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0]["method"], "notifications/tools/list_changed");
    }
    assert!(visitor.reply(first).messages().is_empty());
}

#[test]
fn what_was_sent_to_a_broken_stream_is_replayed() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let stream = visitor.get(&session, "");
    change(&mut visitor);
    let (last, _) = visitor.reply(stream).events().remove(0);
    visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
    change(&mut visitor);
    let resumed = visitor.get(&session, &last);
    assert_eq!(visitor.reply(resumed).messages().len(), 1);
    change(&mut visitor);
    assert_eq!(visitor.reply(resumed).messages().len(), 2, "it goes on");
}

#[test]
fn notifications_wait_for_a_stream() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    change(&mut visitor);
    let stream = visitor.get(&session, "");
    assert_eq!(visitor.reply(stream).messages().len(), 1);
    let later = visitor.get(&session, "");
    assert_eq!(visitor.reply(later).messages().len(), 0);
}

#[test]
fn disconnecting_does_not_cancel_and_streams_can_be_resumed() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let (one, two) = (visitor.call(&session, 1, "wait"), visitor.call(&session, 2, "wait"));
    let calls: Vec<_> = visitor.runs.iter().map(|run| run.id).collect();
    for (call, amount) in [(calls[0], 1.0), (calls[1], 1.0), (calls[0], 2.0)] {
        visitor.handle(EndpointInput::Handler(call, HandlerEvent::Progress(step(amount))));
    }
    // The first event primes: it has an id and no data.
    assert!(
        visitor.reply(one).body.starts_with("id: ") || visitor.reply(one).body.starts_with("id:")
    );
    let events = visitor.reply(one).events();
    assert_eq!(events.len(), 2);
    visitor.handle(EndpointInput::Disconnected(ExchangeId(one)));
    assert!(visitor.cancelled.is_empty());
    visitor.handle(EndpointInput::Handler(calls[0], HandlerEvent::Progress(step(3.0))));
    let resumed = visitor.get(&session, &events[0].0);
    visitor.handle(EndpointInput::Handler(
        calls[0],
        HandlerEvent::Done(Ok(Reply::Text("one".into()))),
    ));
    let messages = visitor.reply(resumed).messages();
    let seen: Vec<_> =
        messages.iter().map(|message| message["params"]["progress"].clone()).collect();
    assert_eq!(seen, [json!(2), json!(3), Value::Null], "{messages:?}");
    assert!(visitor.reply(resumed).complete);
    // The completed part can still be read again; the other stream is unaffected.
    let again = visitor.get(&session, &events[1].0);
    assert_eq!(visitor.reply(again).messages().len(), 2);
    assert!(visitor.reply(again).complete);
    assert_eq!(visitor.reply(two).messages().len(), 1);
    let mut events = visitor.reply(resumed).events().split_off(1);
    events.extend([one, two].iter().flat_map(|call| visitor.reply(*call).events()));
    let mut ids: Vec<_> = events.into_iter().map(|(id, _)| id).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are unique within the session");
    for unknown in ["0-99", "99-1", "x", "", "18446744073709551616-1"] {
        let id = visitor.get(&session, if unknown.is_empty() { "-" } else { unknown });
        assert_eq!(visitor.reply(id).status, 400, "{unknown}");
    }
}

#[test]
fn a_handler_may_close_its_stream_for_polling() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let call = visitor.call(&session, 1, "wait");
    let running = visitor.runs[0].id;
    visitor.handle(EndpointInput::CloseStream(running, Some(Duration::from_millis(100))));
    let reply = visitor.reply(call);
    assert!(
        reply.complete && reply.body.contains("retry: 100") || reply.body.contains("retry:100")
    );
    let primed =
        reply.body.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned();
    visitor.finish(Ok(Reply::Text("late".into())));
    let polled = visitor.get(&session, &primed);
    assert_eq!(visitor.reply(polled).messages()[0]["result"]["content"][0]["text"], "late");
    assert!(visitor.reply(polled).complete);
    // A revision that knows no priming is not left without an answer.
    let session = visitor.open("2025-03-26", json!({}));
    let call = visitor.call(&session, 1, "wait");
    let running = visitor.runs[0].id;
    visitor.handle(EndpointInput::CloseStream(running, None));
    visitor.finish(Ok(Reply::Text("here".into())));
    assert_eq!(visitor.reply(call).json()["id"], 1);
}

#[test]
fn subscribing_brings_updates_until_unsubscribing() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let stream = visitor.get(&session, "");
    let other = visitor.open("2025-11-25", json!({}));
    let quiet = visitor.get(&other, "");
    let mut ask = |method: &str, uri: &str| {
        let id = visitor.legacy(
            &session,
            &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": uri}}),
        );
        let sent = visitor.reply(id).json();
        visitor.handle(EndpointInput::Updated("fixture://about"));
        visitor.handle(EndpointInput::Updated("fixture://bytes"));
        assert!(visitor.reply(quiet).messages().is_empty());
        (sent["error"]["code"].clone(), visitor.reply(stream).messages().len())
    };
    assert_eq!(ask("resources/subscribe", "fixture://nothing"), (json!(-32002), 0));
    assert_eq!(ask("resources/subscribe", "fixture://about"), (Value::Null, 1));
    assert_eq!(ask("resources/unsubscribe", "fixture://about"), (Value::Null, 1));
}

#[test]
fn sessions_and_streams_are_limited() {
    let config = EndpointConfig { max_sessions: 1, max_streams: 2, ..EndpointConfig::default() };
    let mut visitor = with(config);
    let session = visitor.open("2025-11-25", json!({}));
    let (first, second, third) =
        (visitor.get(&session, ""), visitor.get(&session, ""), visitor.get(&session, ""));
    assert_eq!((visitor.reply(first).status, visitor.reply(second).status), (200, 200));
    assert_eq!(
        (visitor.reply(third).status, visitor.reply(third).header("retry-after")),
        (503, "1")
    );
    assert!(visitor.reply(third).body.contains("max_streams"));
    visitor.handle(EndpointInput::Disconnected(ExchangeId(first)));
    let fourth = visitor.get(&session, "");
    assert_eq!(visitor.reply(fourth).status, 200);
    // A session with a request under way is never evicted.
    visitor.call(&session, 1, "wait");
    let another = Request::post(initialize("2025-11-25"));
    let reply = visitor.ask(&another);
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    assert_eq!(reply.header("mcp-session-id"), "");
    assert!(reply.body.contains("max_sessions"));
    // The modern era needs no session.
    visitor.serves(&Request::modern("tools/list", json!({})));
    visitor.finish(Ok(Reply::Nothing));
    // Without one, its streams end: their client can open them again.
    visitor.serves(&another);
    assert!(visitor.reply(fourth).complete);
    let again = visitor.get(&session, "");
    assert_eq!(visitor.reply(again).status, 200);
}

#[test]
fn answers_are_read_even_at_the_limit_of_pending_requests() {
    let question =
        || Question { key: "asked".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    let config = EndpointConfig { max_in_flight: 2, ..EndpointConfig::default() };
    let mut visitor = with(config);
    let session = visitor.open("2025-11-25", json!({"roots": {}}));
    let (one, _) = (visitor.call(&session, 1, "wait"), visitor.call(&session, 2, "wait"));
    let calls: Vec<_> = visitor.runs.iter().map(|run| run.id).collect();
    assert!(visitor.endpoint.is_full());
    visitor.handle(EndpointInput::Handler(
        calls[0],
        HandlerEvent::Ask { ask: AskId(5), question: question() },
    ));
    assert!(!visitor.endpoint.is_full(), "answers would not be read");
    let third = visitor.call(&session, 3, "wait");
    assert_eq!(visitor.reply(third).status, 503);
    let id = visitor.reply(one).messages()[0]["id"].clone();
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
    let said = visitor.legacy(&session, &answer);
    assert_eq!((visitor.reply(said).status, visitor.answers.len()), (202, 1));
    assert!(visitor.endpoint.is_full());
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    let said = visitor.legacy(&session, &cancelled);
    assert_eq!((visitor.reply(said).status, visitor.cancelled.len()), (202, 1));
    let fourth = visitor.call(&session, 4, "wait");
    assert!(!visitor.replies.contains_key(&fourth));
}

#[test]
fn shutdown_ends_listening_streams_and_keeps_pending_responses() {
    let mut visitor = with(EndpointConfig { legacy_sse: true, ..EndpointConfig::default() });
    let session = visitor.open("2025-11-25", json!({}));
    let stream = visitor.get(&session, "");
    let call = visitor.call(&session, 1, "wait");
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let listening = visitor.modern("subscriptions/listen", listen.clone());
    let pair = visitor.send("GET", "/sse", &[("accept", "text/event-stream")], "");
    visitor.handle(EndpointInput::EndStreams);
    for ended in [stream, listening, pair] {
        assert!(visitor.reply(ended).complete);
    }
    let last = visitor.reply(listening).messages().pop().unwrap();
    assert_eq!(last["result"]["resultType"], "complete");
    assert!(!visitor.replies.contains_key(&call));
    visitor.finish(Ok(Reply::Nothing));
    assert_eq!(visitor.reply(call).status, 200);
    let (again, later) =
        (visitor.get(&session, ""), visitor.modern("subscriptions/listen", listen));
    change(&mut visitor);
    assert_eq!(visitor.reply(again).messages().len(), 1);
    assert_eq!(visitor.reply(later).messages().len(), 2);
}

#[test]
fn streams_that_are_resumed_count_and_answers_to_posts_do_not() {
    let config = EndpointConfig { max_streams: 2, ..EndpointConfig::default() };
    let mut visitor = with(config);
    let session = visitor.open("2025-11-25", json!({}));
    for id in 1..=3 {
        visitor.call(&session, id, "wait");
    }
    let broken: Vec<_> = (0..3)
        .map(|_| {
            let stream = visitor.get(&session, "");
            assert_eq!(visitor.reply(stream).status, 200, "calls in flight are not streams");
            change(&mut visitor);
            visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
            visitor.reply(stream).events()[0].0.clone()
        })
        .collect();
    let resumed: Vec<_> = broken.iter().map(|event| visitor.get(&session, event)).collect();
    let statuses: Vec<_> = resumed.iter().map(|stream| visitor.reply(*stream).status).collect();
    assert_eq!(statuses, [200, 200, 503]);
    assert_eq!(visitor.reply(resumed[2]).header("retry-after"), "1");
    // A client that resumes a stream replaces the previous connection.
    let again = visitor.get(&session, &broken[1]);
    assert_eq!(visitor.reply(again).status, 200);
    assert!(visitor.reply(resumed[1]).complete);
}
