//! The log events of an endpoint, and docs/logs.md, which lists them.

use std::{fs, path::Path, sync::Arc, time::Duration};

use gudgeon::{
    engine::HandlerEvent,
    http::{EndpointConfig, EndpointInput, ExchangeId},
    log_events::page,
    protocol::{Dialect, Method, Principal, Question, json::to_raw},
    router::Reply,
    session::asking::AskId,
};
use serde_json::{Value, json};

use crate::support::{fixture, visitor::Visitor};

/// The line of docs/logs.md after which the catalogue follows.
const CATALOGUE: &str = "## All events\n\n";

fn visitor() -> Visitor {
    with(EndpointConfig::default())
}

fn with(config: EndpointConfig) -> Visitor {
    let mut visitor = Visitor::new(fixture::components_in(vec![Dialect::Bare]), config);
    visitor.remote = Some([192, 0, 2, 7].into());
    visitor
}

/// Returns the names of the events since the last call, with their fields and texts.
fn take(visitor: &mut Visitor) -> Vec<(String, Value, String)> {
    let events = std::mem::take(&mut visitor.events);
    let described = events.iter().map(|event| {
        let mut fields = event.fields();
        let name = fields.remove("event").unwrap().as_str().unwrap().to_owned();
        (name, Value::Object(fields), event.to_string())
    });
    described.collect()
}

fn names(visitor: &mut Visitor) -> Vec<(String, String)> {
    let reason = |fields: &Value| fields["reason"].as_str().unwrap_or_default().to_owned();
    take(visitor).into_iter().map(|(name, fields, _)| (name, reason(&fields))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect()
}

#[test]
fn the_documentation_lists_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/logs.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, listed) = text.split_once(CATALOGUE).unwrap();
    if std::env::var_os("UPDATE_LOGS_PAGE").is_some() {
        fs::write(path, format!("{before}{CATALOGUE}{}\n", page().trim_end())).unwrap();
        return;
    }
    assert_eq!(listed.trim_end(), page().trim_end(), "run this test with UPDATE_LOGS_PAGE=1");
}

#[test]
fn the_life_of_a_session_is_logged_under_its_digest() {
    let mut visitor = visitor();
    visitor.principal = Some(Arc::new(Principal::new("ada")));
    let session = visitor.open("2025-11-25", json!({}));
    let [(name, fields, text)] = &take(&mut visitor)[..] else { panic!() };
    assert_eq!(name, "session.opened");
    let digest = fields["session"].as_str().unwrap();
    assert_eq!(digest.len(), 8);
    assert_eq!(
        *fields,
        json!({"session": digest, "client": "c", "principal": "ada", "remote": "192.0.2.7"})
    );
    assert_eq!(*text, format!("opened session {digest} for the client \"c\""));
    assert!(!text.contains(&session) && !fields.to_string().contains(&session));
    visitor.get(&session, "");
    visitor.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(
        names(&mut visitor),
        pairs(&[
            ("stream.opened", ""),
            ("stream.closed", "session_ended"),
            ("session.ended", "deleted")
        ])
    );
}

#[test]
fn a_client_that_leaves_its_stream_and_a_server_that_stops_are_the_reasons() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    let stream = visitor.get(&session, "");
    visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
    visitor.get(&session, "");
    take(&mut visitor);
    visitor.handle(EndpointInput::ShutDown);
    visitor.handle(EndpointInput::Closed);
    assert_eq!(
        names(&mut visitor),
        pairs(&[("stream.closed", "server_stopped"), ("session.ended", "server_stopped")])
    );
}

#[test]
fn a_subscription_is_a_stream() {
    let mut visitor = visitor();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let stream = visitor.modern("subscriptions/listen", listen.clone());
    visitor.handle(EndpointInput::Disconnected(ExchangeId(stream)));
    visitor.modern("subscriptions/listen", listen);
    visitor.handle(EndpointInput::ShutDown);
    assert_eq!(
        names(&mut visitor),
        pairs(&[
            ("stream.opened", ""),
            ("stream.closed", "client_left"),
            ("stream.opened", ""),
            ("stream.closed", "server_stopped"),
        ])
    );
}

#[test]
fn a_session_that_makes_room_names_the_option() {
    let mut visitor = with(EndpointConfig { max_sessions: 1, ..EndpointConfig::default() });
    let session = visitor.open("2025-11-25", json!({}));
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 9, "method": "resources/subscribe", "params": {"uri": "fixture://about"},
    });
    visitor.legacy(&session, &subscribe);
    take(&mut visitor);
    visitor.open("2025-11-25", json!({}));
    let events = take(&mut visitor);
    assert_eq!(events[0].0, "session.evicted");
    assert_eq!(events[0].1["limit"], "max_sessions");
    assert!(events[0].2.ends_with("to make room for another one: option max_sessions"));
    assert_eq!(events[1].0, "session.opened");
}

#[test]
fn an_answer_that_nobody_waits_for_is_logged_unless_it_is_late() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({"roots": {}}));
    let call = visitor.call(&session, 1, "wait");
    let question =
        Question { key: "asked".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    let run = visitor.runs[0].id;
    let ask = HandlerEvent::Ask { ask: AskId(5), question };
    visitor.handle(EndpointInput::Handler(run, ask));
    let asked = visitor.reply(call).messages()[0]["id"].clone();
    visitor.finish(Ok(Reply::Nothing));
    take(&mut visitor);
    let answer = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
    let late = visitor.legacy(&session, &answer(&asked));
    assert!(take(&mut visitor).is_empty());
    for id in [&json!(77), &json!("a")] {
        let elsewhere = visitor.legacy(&session, &answer(id));
        let [(name, fields, text)] = &take(&mut visitor)[..] else { panic!() };
        assert_eq!((&**name, &fields["client"]), ("answer.lost", &json!("c")));
        assert!(text.contains("nobody here has asked: share a store"), "{text}");
        for posted in [late, elsewhere] {
            assert_eq!(visitor.reply(posted).status, 202);
        }
    }
    // Another process may have asked.
    visitor.endpoint.share();
    visitor.legacy(&session, &answer(&json!(77)));
    assert!(take(&mut visitor).is_empty() && visitor.published.len() == 1);
}

#[test]
fn refused_requests_have_a_reason_a_status_and_their_sender() {
    let mut visitor = with(EndpointConfig { max_in_flight: 1, ..EndpointConfig::default() });
    let session = visitor.open("2025-11-25", json!({}));
    take(&mut visitor);
    visitor.call("nobody's", 1, "wait");
    let (name, fields, text) = take(&mut visitor).remove(0);
    assert_eq!(
        (&*name, &fields["status"], &fields["reason"]),
        ("http.refused", &json!(404), &json!("session"))
    );
    assert_eq!(fields["remote"], "192.0.2.7");
    assert!(text.starts_with("refused a request with status 404: no such session"), "{text}");
    visitor.send(
        "POST",
        "/mcp",
        &[
            ("content-type", "application/json"),
            ("accept", "application/json"),
            ("mcp-session-id", &session),
        ],
        "{\"secret\": ",
    );
    let (name, fields, text) = take(&mut visitor).remove(0);
    assert_eq!((&*name, &fields["reason"]), ("call.rejected", &json!("invalid_message")));
    assert!(!text.contains("secret"), "{text}");
    visitor.call(&session, 2, "wait");
    visitor.call(&session, 3, "wait");
    let (name, fields, text) = take(&mut visitor).remove(0);
    assert_eq!((&*name, &fields["limit"]), ("http.overloaded", &json!("max_in_flight")));
    assert_eq!(
        text,
        "refused a request with status 503: too many requests in flight (option max_in_flight)"
    );
}

#[test]
fn calls_with_wrong_names_and_arguments_are_rejected_without_the_arguments() {
    let mut visitor = visitor();
    for (method, params, reason, named) in [
        ("tools/call", json!({"name": "nil"}), "unknown_tool", ("tool", "nil")),
        ("prompts/get", json!({"name": "nil"}), "unknown_prompt", ("prompt", "nil")),
        ("resources/read", json!({"uri": "a://nil"}), "unknown_resource", ("resource", "a://nil")),
        ("prompts/get", json!({"name": "greet"}), "invalid_params", ("prompt", "greet")),
        (
            "tools/call",
            json!({"name": "add", "arguments": {"a": "hunter2"}}),
            "invalid_arguments",
            ("tool", "add"),
        ),
    ] {
        visitor.modern(method, params);
        let [(name, fields, text)] = &take(&mut visitor)[..] else { panic!("{reason}") };
        assert_eq!((&**name, &fields["reason"]), ("call.rejected", &json!(reason)));
        assert_eq!((&fields[named.0], &fields["request_id"]), (&json!(named.1), &json!("1")));
        assert!(text.contains(named.1) && !text.contains("hunter2"), "{text}");
    }
    visitor.modern("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    assert_eq!(take(&mut visitor), [], "a plain call has no event");
}

#[test]
fn timeouts_and_handlers_that_are_cut_are_named_with_their_time() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    take(&mut visitor);
    visitor.call(&session, 7, "slow");
    visitor.advance(Duration::from_secs(60));
    let (name, fields, text) = take(&mut visitor).remove(0);
    assert_eq!(
        (&*name, &fields["tool"], &fields["request_id"]),
        ("call.timed_out", &json!("slow"), &json!("7"))
    );
    assert!(fields["duration_ms"].as_u64().unwrap() > 0 && fields["session"].is_string());
    assert!(text.starts_with("tool \"slow\" took longer than its "), "{text}");
    let left = visitor.modern("tools/call", json!({"name": "wait"}));
    visitor.handle(EndpointInput::Disconnected(ExchangeId(left)));
    visitor.call(&session, 8, "wait");
    visitor.send("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    visitor.modern("tools/call", json!({"name": "wait"}));
    visitor.handle(EndpointInput::Closed);
    assert_eq!(
        names(&mut visitor),
        pairs(&[
            ("call.cut", "client_left"),
            ("call.cut", "session_ended"),
            ("session.ended", "deleted"),
            ("call.cut", "server_stopped"),
        ])
    );
}

#[test]
fn an_exception_of_a_handler_is_for_the_host_under_its_reference() {
    let mut visitor = visitor();
    visitor.modern("tools/call", json!({"name": "wait"}));
    let failure = gudgeon::router::Failure::Exception {
        kind: "E".into(),
        message: "no row".into(),
        traceback: "line 1\nline 2".into(),
    };
    let run = visitor.runs.pop().unwrap();
    visitor.handle(EndpointInput::Handler(run.id, HandlerEvent::Done(Err(failure))));
    assert!(visitor.events[0].is_for_host());
    let [(name, fields, text)] = &take(&mut visitor)[..] else { panic!() };
    assert_eq!((&**name, &fields["tool"]), ("call.failed", &json!("wait")));
    assert!(text.contains(fields["reference"].as_str().unwrap()) && text.ends_with("line 2"));
}
