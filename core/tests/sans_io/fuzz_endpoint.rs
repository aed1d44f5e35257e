//! Random HTTP input: the endpoint answers each request once and keeps no state of it.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    engine::HandlerEvent,
    http::{EndpointConfig, EndpointInput, ExchangeId},
    protocol::{Method, Question, json::to_raw},
    router::Reply,
    session::{
        asking::AskId,
        server::{ListKind, Progress},
    },
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{
    fixture,
    visitor::{self, Visitor},
};

const METHODS: [&str; 6] = ["GET", "POST", "POST", "POST", "DELETE", "OPTIONS"];
const PATHS: [&str; 4] = ["/mcp", "/mcp/", "/sse", "/other"];
const VERSIONS: [&str; 5] = ["-", "2026-07-28", "2025-11-25", "2025-03-26", "v999"];
const ACCEPTS: [&str; 4] = ["-", visitor::BOTH, "text/event-stream", "text/html"];
const NAMES: [&str; 10] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "subscriptions/listen",
    "resources/subscribe",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "acme/echo",
];

#[derive(Clone, Debug)]
enum Act {
    Send {
        method: usize,
        path: usize,
        version: usize,
        accept: usize,
        session: usize,
        body: Body,
        last_event: u8,
    },
    Gone(usize),
    Progress(usize),
    Ask(usize),
    AskAgain(usize),
    CloseStream(usize),
    Done(usize),
    Change,
    Advance(u32),
}

#[derive(Clone, Debug)]
enum Body {
    Message { name: usize, id: u8, modern: bool, batch: bool },
    Answer(u8),
    Bytes(String),
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => (0..NAMES.len(), 0..4_u8, any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(name, id, modern, batch)| Body::Message { name, id, modern, batch }),
        1 => (0..4_u8).prop_map(Body::Answer),
        1 => r#"[\[{"a-z:,0-9\]}]{0,20}"#.prop_map(Body::Bytes),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let send = (
        0..METHODS.len(),
        0..PATHS.len(),
        0..VERSIONS.len(),
        0..ACCEPTS.len(),
        0..5_usize,
        body(),
        0..6_u8,
    );
    prop_oneof![
        8 => send.prop_map(|(method, path, version, accept, session, body, last_event)| Act::Send {
            method, path, version, accept, session, body, last_event,
        }),
        1 => (0..20_usize).prop_map(Act::Gone),
        1 => (0..20_usize).prop_map(Act::Progress),
        1 => (0..20_usize).prop_map(Act::Ask),
        1 => (0..20_usize).prop_map(Act::AskAgain),
        1 => (0..20_usize).prop_map(Act::CloseStream),
        2 => (0..20_usize).prop_map(Act::Done),
        1 => Just(Act::Change),
        1 => (0..100_000_u32).prop_map(Act::Advance),
    ]
}

fn text(body: &Body) -> String {
    match body {
        Body::Bytes(text) => text.clone(),
        Body::Answer(id) => {
            json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}).to_string()
        }
        Body::Message { name, id, modern, batch } => {
            let name = NAMES[*name];
            let mut params = json!({
                "name": "wait", "arguments": {}, "uri": "fixture://about", "requestId": id,
                "protocolVersion": "2025-11-25", "capabilities": {"roots": {}, "elicitation": {}},
                "notifications": {"toolsListChanged": true},
                "_meta": {"progressToken": id},
            });
            if *modern {
                params = visitor::modern_body(name, params)["params"].take();
            }
            let mut message = json!({"jsonrpc": "2.0", "id": id, "method": name, "params": params});
            if name.starts_with("notifications/") {
                message.as_object_mut().unwrap().remove("id");
            }
            if *batch { json!([message]).to_string() } else { message.to_string() }
        }
    }
}

fn perform(visitor: &mut Visitor, sent: &mut Vec<u64>, act: &Act) {
    let pick = |runs: &[gudgeon::engine::Run], at: usize| {
        (!runs.is_empty()).then(|| runs[at % runs.len()].id)
    };
    match act {
        Act::Send { method, path, version, accept, session, body, last_event } => {
            let known: Vec<String> = visitor
                .replies
                .values()
                .map(|reply| reply.header("mcp-session-id").to_owned())
                .filter(|session| !session.is_empty())
                .collect();
            let session = known.get(*session).cloned().unwrap_or_else(|| "-".into());
            let last = format!("{}-{}", last_event / 2, last_event % 2 + 1);
            let text = text(body);
            let name = text.split('"').nth(9).unwrap_or("-").to_owned();
            let mut headers = vec![
                ("content-type", "application/json"),
                ("mcp-protocol-version", VERSIONS[*version]),
                ("accept", ACCEPTS[*accept]),
                ("mcp-session-id", &session),
                ("mcp-method", &name),
                ("mcp-name", "wait"),
                ("last-event-id", if *last_event < 4 { &last } else { "-" }),
            ];
            headers.retain(|(_, value)| {
                *value != "-" && value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
            });
            sent.push(visitor.send(METHODS[*method], PATHS[*path], &headers, &text));
        }
        Act::Gone(at) => {
            if let Some(id) = sent.get(*at) {
                visitor.handle(EndpointInput::Disconnected(ExchangeId(*id)));
            }
        }
        Act::Progress(at) => {
            if let Some(call) = pick(&visitor.runs, *at) {
                let progress = f64::from(u32::try_from(*at).unwrap());
                let step = Progress { progress, total: None, message: None };
                visitor.handle(EndpointInput::Handler(call, HandlerEvent::Progress(step)));
            }
        }
        Act::Ask(at) => {
            if let Some(call) = pick(&visitor.runs, *at) {
                let (ask, key) = (AskId(*at as u64), format!("k{at}"));
                let question =
                    Question { key, method: Method::ListRoots, params: to_raw(&json!({})) };
                visitor.handle(EndpointInput::Handler(call, HandlerEvent::Ask { ask, question }));
                visitor.handle(EndpointInput::Handler(
                    call,
                    HandlerEvent::Waits { blocks: at % 2 == 0 },
                ));
            }
        }
        Act::AskAgain(at) => {
            if let Some(call) = pick(&visitor.runs, *at) {
                let (ask, key) = (AskId(*at as u64), format!("again{}", at % 3));
                let fields = json!({"value": {"type": "boolean"}});
                let schema = json!({"type": "object", "properties": fields});
                let form = json!({"mode": "form", "message": "Sure?", "requestedSchema": schema});
                let question = Question { key, method: Method::Elicit, params: to_raw(&form) };
                let problem = "nobody is".into();
                visitor.handle(EndpointInput::Handler(
                    call,
                    HandlerEvent::AskAgain { ask, question, problem },
                ));
                visitor.handle(EndpointInput::Handler(
                    call,
                    HandlerEvent::Waits { blocks: at % 2 == 0 },
                ));
            }
        }
        Act::CloseStream(at) => {
            if let Some(call) = pick(&visitor.runs, *at) {
                visitor.handle(EndpointInput::CloseStream(call, None));
            }
        }
        Act::Done(at) => {
            if !visitor.runs.is_empty() {
                let run = visitor.runs.remove(*at % visitor.runs.len());
                visitor.handle(EndpointInput::Handler(
                    run.id,
                    HandlerEvent::Done(Ok(Reply::Text("x".into()))),
                ));
            }
        }
        Act::Change => {
            let components = Arc::new(fixture::components());
            visitor.handle(EndpointInput::Components(components, vec![ListKind::Tools]));
            visitor.handle(EndpointInput::Updated("fixture://about"));
        }
        Act::Advance(ms) => visitor.advance(Duration::from_millis(u64::from(*ms))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_nothing_is_kept(acts in prop::collection::vec(act(), 1..60)) {
        let config = EndpointConfig {
            legacy_sse: true,
            session_idle: Duration::from_secs(60),
            max_sessions: 8,
            ..EndpointConfig::default()
        };
        let mut visitor = Visitor::new(fixture::components(), config);
        let mut sent = Vec::new();
        for act in &acts {
            perform(&mut visitor, &mut sent, act);
        }
        while let Some(run) = visitor.runs.pop() {
            visitor.handle(EndpointInput::Handler(run.id, HandlerEvent::Done(Ok(Reply::Text("x".into())))));
        }
        prop_assert_eq!(visitor.endpoint.in_flight(), 0);
        let gone: Vec<u64> = acts
            .iter()
            .filter_map(|act| if let Act::Gone(at) = act { sent.get(*at).copied() } else { None })
            .collect();
        for id in &sent {
            prop_assert!(gone.contains(id) || visitor.replies.contains_key(id), "{} was not answered", id);
        }
        for id in &sent {
            visitor.handle(EndpointInput::Disconnected(ExchangeId(*id)));
        }
        visitor.advance(Duration::from_secs(600));
        prop_assert_eq!(visitor.endpoint.deadline(), None, "something is still kept");
    }
}
