//! Sessions before 2026-07-28 whose ids say what they consist of: no memory while nothing is under way, and any process with
//! the same keys goes on with them (2025-11-25, Transports, "Session Management").

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::{HandlerEvent, Start},
    http::{EndpointConfig, EndpointInput, ExchangeId},
    protocol::{Method, Principal, Question, json::to_raw},
    router::{Components, Reply},
    session::{asking::AskId, server::ListKind},
};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

const YEAR: u64 = 365 * 24 * 60 * 60;

/// A process that started at this time, in seconds after 1970; all have the keys of the fixture.
fn process_at(number: u8, unix: u64) -> Visitor {
    process_of(fixture::components(), number, unix)
}

fn process_of(components: Components, number: u8, unix: u64) -> Visitor {
    let start = Start { now: Instant::now(), unix, seed: [number; 32], test_mode: None };
    Visitor::started(components, EndpointConfig::default(), &start)
}

fn process(number: u8) -> Visitor {
    process_at(number, 50 * YEAR)
}

fn ping(session: &str) -> Request {
    Request::of_session(session, &message("ping", json!({})))
}

fn post(visitor: &mut Visitor, session: &str, method: &str, params: Value) -> Value {
    let reply = visitor.ask(&Request::of_session(session, &message(method, params)));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

fn change(visitor: &mut Visitor) {
    visitor
        .handle(EndpointInput::Components(Arc::new(fixture::components()), vec![ListKind::Tools]));
}

fn messages_of_new_stream(visitor: &mut Visitor, session: &str) -> Vec<Value> {
    let stream = visitor.get(session, "");
    visitor.reply(stream).messages().into_iter().map(|message| message["method"].clone()).collect()
}

#[test]
fn another_process_with_the_same_keys_goes_on() {
    let mut first = process(1);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = first.open(revision, json!({"roots": {}, "sampling": {}}));
        let mut second = process(2);
        visit(&mut second, &session, revision);
        visit(&mut first, &session, revision);
    }
}

fn visit(process: &mut Visitor, session: &str, revision: &str) {
    let listed = post(process, session, "tools/list", json!({}));
    assert!(!listed["result"]["tools"].as_array().unwrap().is_empty());
    process.call(session, 1, "wait");
    let context = process.runs.last().unwrap().context.clone();
    assert_eq!(context.spoken(), revision);
    let client = context.client;
    assert_eq!(client.info.as_ref().unwrap().get(), r#"{"name":"c","version":"1"}"#);
    assert_eq!(client.capabilities.as_ref().unwrap().get(), r#"{"roots":{},"sampling":{}}"#);
    assert_eq!(context.http.unwrap().session_id.as_deref(), Some(session));
    process.finish(Ok(Reply::Nothing));
}

#[test]
fn an_id_that_this_server_did_not_make_for_this_caller_is_unknown() {
    let mut process = process(1);
    let session = process.open("2025-11-25", json!({}));
    let mut wrong: Vec<String> = (0..session.len())
        .step_by(7)
        .map(|at| {
            let mut changed = session.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            String::from_utf8(changed).unwrap()
        })
        .collect();
    wrong.extend([&session[1..], &session[..session.len() - 1]].map(str::to_owned));
    wrong.extend([format!("{session}A"), format!("{session}="), "A".repeat(8 * 1024)]);
    for id in &wrong {
        process.refuses(&ping(id), 404, -32600);
        process.rejects(&Request::bare("GET", id), 404, "session");
        process.rejects(&Request::bare("DELETE", id), 404, "session");
    }
    process.serves(&ping(&session));
    let with_other = |change: fn(&mut gudgeon::router::ServerFacts)| {
        let mut components = fixture::components();
        change(Arc::make_mut(&mut components.server));
        process_of(components, 1, 50 * YEAR)
    };
    let mut of_other_key = with_other(|facts| {
        facts.request_state_keys = vec![b"another key, which is long too".to_vec()];
    });
    of_other_key.refuses(&ping(&session), 404, -32600);
    let mut of_other_name = with_other(|facts| facts.info.name = "another".into());
    of_other_name.refuses(&ping(&session), 404, -32600);
    let mut rotated = with_other(|facts| {
        facts.request_state_keys.insert(0, b"the newest key, which is long too".to_vec());
    });
    rotated.serves(&ping(&session));
    let mut modern =
        with_other(|facts| facts.revisions = vec![gudgeon::protocol::Revision::V2025_06_18]);
    modern.refuses(&ping(&session), 404, -32600);
}

#[test]
fn a_session_belongs_to_the_principal_that_opened_it() {
    let ada = || Some(Arc::new(Principal::new("ada")));
    let callers = [None, ada(), Some(Arc::new(Principal::new("bob")))];
    for owner in &callers {
        let mut first = process(1);
        first.principal.clone_from(owner);
        let session = first.open("2025-11-25", json!({}));
        for caller in &callers {
            let mut second = process(2);
            second.principal.clone_from(caller);
            let status = second.ask(&ping(&session)).status;
            assert_eq!(status, if caller == owner { 200 } else { 404 }, "{owner:?} {caller:?}");
        }
    }
}

#[test]
fn an_ended_session_is_not_restored() {
    let mut process = process(1);
    let [in_memory, at_rest] = [0; 2].map(|_| process.open("2025-11-25", json!({})));
    assert_eq!(process.ask(&Request::bare("DELETE", &in_memory)).status, 204);
    process.advance(Duration::from_secs(120));
    assert!(!process.endpoint.holds_session(&at_rest));
    assert_eq!(process.ask(&Request::bare("DELETE", &at_rest)).status, 204);
    for session in [&in_memory, &at_rest] {
        process.refuses(&ping(session), 404, -32600);
        process.rejects(&Request::bare("DELETE", session), 404, "session");
    }
    assert_eq!(process.endpoint.sessions(), 0);
}

#[test]
fn an_id_is_valid_for_thirty_days() {
    let session = process(1).open("2025-11-25", json!({}));
    let day = 24 * 60 * 60;
    for (later, status) in [(30 * day, 200), (30 * day + 1, 404)] {
        assert_eq!(process_at(2, 50 * YEAR + later).ask(&ping(&session)).status, status);
    }
    // The clock of this one is slow.
    assert_eq!(process_at(3, 50 * YEAR - 60).ask(&ping(&session)).status, 200);
}

#[test]
fn abandoned_sessions_hold_no_memory() {
    let mut process = process(1);
    let sessions: Vec<_> = (0..5_000).map(|_| process.open("2025-11-25", json!({}))).collect();
    assert!(process.endpoint.sessions() <= 1_024, "{}", process.endpoint.sessions());
    process.advance(Duration::from_secs(120));
    assert_eq!(process.endpoint.sessions(), 0);
    for session in sessions.iter().step_by(500) {
        process.serves(&ping(session));
    }
}

#[test]
fn sessions_at_rest_need_no_slot() {
    let config = EndpointConfig { max_sessions: 2, ..EndpointConfig::default() };
    let mut visitor = Visitor::new(fixture::components(), config);
    let sessions: Vec<_> = (0..20).map(|_| visitor.open("2025-11-25", json!({}))).collect();
    for session in &sessions {
        visitor.serves(&ping(session));
        assert!(visitor.endpoint.sessions() <= 2);
    }
}

/// Makes a session hold something.
type Hold = fn(&mut Visitor, &str);

const HELD: [(&str, Hold); 7] = [
    ("a stream", |visitor, session| {
        visitor.get(session, "");
    }),
    ("a call", |visitor, session| {
        visitor.call(session, 1, "wait");
    }),
    ("a subscription", |visitor, session| {
        post(visitor, session, "resources/subscribe", json!({"uri": "fixture://about"}));
    }),
    ("a log level", |visitor, session| {
        post(visitor, session, "logging/setLevel", json!({"level": "error"}));
    }),
    ("values of handlers", |visitor, session| {
        visitor.call(session, 1, "wait");
        visitor.runs.last().unwrap().context.client.keep_values();
        visitor.finish(Ok(Reply::Nothing));
    }),
    ("events that can be sent again", |visitor, session| {
        let call = visitor.call(session, 1, "wait");
        visitor.advance(Duration::from_secs(15));
        visitor.finish(Ok(Reply::Nothing));
        assert!(visitor.reply(call).is_stream());
    }),
    ("a running handler of a notification", |visitor, session| {
        let changed = notification("notifications/roots/list_changed", json!({}));
        visitor.legacy(session, &changed);
        assert!(!visitor.runs.is_empty());
    }),
];

#[test]
fn a_session_that_holds_something_stays_in_memory() {
    for (name, hold) in HELD {
        let mut process = process(1);
        let [holding, resting] = [0; 2].map(|_| process.open("2025-11-25", json!({"roots": {}})));
        hold(&mut process, &holding);
        process.advance(Duration::from_secs(300));
        assert!(process.endpoint.holds_session(&holding), "{name}");
        assert!(!process.endpoint.holds_session(&resting), "{name}");
    }
}

#[test]
fn a_stream_tells_which_lists_changed_while_the_session_was_not_in_memory() {
    let mut first = process(1);
    let session = first.open("2025-11-25", json!({}));
    first.advance(Duration::from_secs(120));
    assert!(messages_of_new_stream(&mut first, &session).is_empty(), "nothing has changed");
    // Another process does not know what the client was told last.
    let all = ["tools", "resources", "prompts"]
        .map(|list| json!(format!("notifications/{list}/list_changed")));
    let mut second = process(2);
    assert_eq!(messages_of_new_stream(&mut second, &session), all);
    assert!(messages_of_new_stream(&mut second, &session).is_empty(), "they are told once");
    let early = first.open("2025-11-25", json!({}));
    first.advance(Duration::from_secs(120));
    change(&mut first);
    first.advance(Duration::from_secs(2));
    let late = first.open("2025-11-25", json!({}));
    first.advance(Duration::from_secs(120));
    assert_eq!(messages_of_new_stream(&mut first, &early), [all[0].clone()]);
    assert!(messages_of_new_stream(&mut first, &late).is_empty());
}

#[test]
fn an_answer_to_an_earlier_question_answers_no_other() {
    let question =
        || Question { key: "asked".into(), method: Method::ListRoots, params: to_raw(&json!({})) };
    let ask = |process: &mut Visitor, session: &str| {
        let call = process.call(session, 1, "wait");
        let event = HandlerEvent::Ask { ask: AskId(5), question: question() };
        process.handle(EndpointInput::Handler(process.runs[0].id, event));
        process.reply(call).messages()[0]["id"].clone()
    };
    let mut first = process(1);
    let session = first.open("2025-11-25", json!({"roots": {}}));
    let asked_before = ask(&mut first, &session);
    let mut second = process(2);
    let asked = ask(&mut second, &session);
    assert_ne!(asked, asked_before);
    for (id, answered) in [(asked_before, 0), (asked, 1)] {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
        second.accepts(&Request::of_session(&session, &answer));
        assert_eq!(second.answers.len(), answered);
    }
}

#[test]
fn a_lost_stream_is_opened_again_and_a_lost_answer_is_reported() {
    let mut first = process(1);
    let session = first.open("2025-11-25", json!({}));
    let stream = first.get(&session, "");
    change(&mut first);
    let (of_stream, _) = first.reply(stream).events().remove(0);
    let call = first.call(&session, 1, "wait");
    first.advance(Duration::from_secs(15));
    first.finish(Ok(Reply::Nothing));
    let (of_call, _) = first.reply(call).events().remove(0);
    let mut second = process(2);
    let resumed = second.get(&session, &of_stream);
    assert_eq!(second.reply(resumed).status, 200);
    assert!(!second.reply(resumed).complete);
    let resumed = second.get(&session, &of_call);
    assert_eq!(second.reply(resumed).status, 400);
    // Where the events are still known, they are sent again.
    first.handle(EndpointInput::Disconnected(ExchangeId(stream)));
    change(&mut first);
    let resumed = first.get(&session, &of_stream);
    assert_eq!(first.reply(resumed).messages().len(), 1);
}

#[test]
fn a_client_that_says_more_than_an_id_holds_stays_in_memory() {
    let mut first = process(1);
    let mut body = initialize("2025-11-25");
    body["params"]["capabilities"] = json!({
        "elicitation": {"form": {}}, "experimental": {"x".repeat(3_000): {}},
    });
    body["params"]["clientInfo"] =
        json!({"name": "long", "version": "2", "title": "y".repeat(3_000)});
    let session = first.ask(&Request::post(body)).header("mcp-session-id").to_owned();
    assert!((1..=1_024).contains(&session.len()), "{}", session.len());
    first.advance(Duration::from_secs(300));
    first.call(&session, 1, "wait");
    assert!(first.runs[0].context.client.info.as_ref().unwrap().get().len() > 3_000);
    // Another process knows the client and what it can be asked.
    let mut second = process(2);
    second.call(&session, 1, "wait");
    let client = &second.runs[0].context.client;
    assert_eq!(client.info.as_ref().unwrap().get(), r#"{"name":"long","version":"2"}"#);
    assert_eq!(client.capabilities.as_ref().unwrap().get(), r#"{"elicitation":{"form":{}}}"#);
}
