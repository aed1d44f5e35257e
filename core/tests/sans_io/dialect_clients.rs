//! Clients of the two dialects, against Gudgeon's server and against servers that support only the dialect.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    engine::HandlerEvent,
    error::ErrorKind,
    protocol::{ClientCapabilities, Dialect, Implementation, MethodName, Revision},
    service,
    session::{
        client::{
            ClientConfig, ClientSession, Input, ListKind, Output, RequestKey, RequestOptions,
        },
        server::Progress,
    },
    test_pair::{Pair, Sent},
};
use serde_json::{Value, json};

use crate::support::{Handler, fixture};

fn config(dialect: Dialect) -> ClientConfig {
    ClientConfig {
        info: Implementation::new("probe", "1"),
        capabilities: ClientCapabilities::default(),
        revisions: Revision::ALL.to_vec(),
        last_revision: None,
        dialect: Some(dialect),
        probe_timeout: Some(Duration::from_secs(5)),
        connect_timeout: None,
        log_level: None,
    }
}

fn pair(dialect: Dialect) -> Pair {
    let components = fixture::components_in(Dialect::ALL.to_vec());
    let mut pair = Pair::new(Instant::now(), config(dialect), Arc::new(components), |run| {
        let act = Handler::from_kept(&run.handler).act();
        act(&serde_json::from_str(&run.input).unwrap(), &mut Vec::new())
    });
    let server = pair.connect().unwrap();
    assert_eq!((server.dialect, server.spoken().name()), (Some(dialect), dialect.as_ref()));
    pair
}

fn ask(pair: &mut Pair, method: &str, params: &Value) -> Value {
    let result = pair.request(method, &params.to_string()).unwrap();
    serde_json::from_str(result.get()).unwrap()
}

fn sent(pair: &Pair) -> Vec<Value> {
    let ours = pair.wire.iter().filter_map(|sent| match sent {
        Sent::ByClient(frame) => Some(serde_json::from_str(frame).unwrap()),
        Sent::ByServer(_) => None,
    });
    ours.collect()
}

#[test]
fn everything_comes_in_the_newest_vocabulary() {
    let mut pair = pair(Dialect::V0_7);
    let tools = ask(&mut pair, "tools/list", &json!({}));
    assert_eq!(tools["tools"][0]["inputSchema"]["required"], json!(["a", "b"]));
    let prompts = ask(&mut pair, "prompts/list", &json!({}));
    assert_eq!(
        prompts["prompts"][0]["arguments"],
        json!([{"name": "name", "required": true}, {"name": "style", "required": false}])
    );
    let resources = ask(&mut pair, "resources/list", &json!({}));
    let uris = |list: &Value, key: &str| -> Vec<String> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|entry| entry[key].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        uris(&resources["resources"], "uri"),
        ["fixture://about", "fixture://bytes", "fixture://broken"]
    );
    let templates = ask(&mut pair, "resources/templates/list", &json!({}));
    assert_eq!(
        uris(&templates["resourceTemplates"], "uriTemplate"),
        ["fixture://items/{id}", "fixture://search{?q,limit}"]
    );
    let sum = ask(&mut pair, "tools/call", &json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    assert_eq!(sum["structuredContent"], 3);
    let about = ask(&mut pair, "resources/read", &json!({"uri": "fixture://about"}));
    assert_eq!(
        about["contents"],
        json!([{"uri": "fixture://about", "text": "About.", "mimeType": "text/plain"}])
    );
    let greeting =
        ask(&mut pair, "prompts/get", &json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(greeting["messages"][0]["content"]["text"], "Greet Ada, warm.");
    assert_eq!(ask(&mut pair, "ping", &json!({})), json!({}));
    let names: Vec<_> = sent(&pair).iter().map(|message| message["method"].clone()).collect();
    assert_eq!(
        names,
        [
            "initialize",
            "list_tools",
            "list_prompts",
            "list_resources",
            "list_resources",
            "call_tool",
            "read_resource",
            "render_prompt",
            "ping"
        ]
    );
    assert_eq!(sent(&pair)[0]["params"], json!({"minVersion": "0.1.0", "maxVersion": "0.7.0"}));
}

#[test]
fn failures_have_the_form_of_dated_revisions() {
    let mut pair = pair(Dialect::V0_7);
    let wrong = ask(&mut pair, "tools/call", &json!({"name": "add", "arguments": {}}));
    let crashed = ask(&mut pair, "tools/call", &json!({"name": "crash"}));
    assert_eq!((&wrong["isError"], &crashed["isError"]), (&json!(true), &json!(true)));
    let missing = pair.request("resources/read", r#"{"uri":"fixture://no"}"#).unwrap_err();
    assert_eq!((missing.kind, missing.code), (ErrorKind::NotFound, Some(3001)));
    let bytes = pair.request("resources/read", r#"{"uri":"fixture://bytes"}"#).unwrap_err();
    assert_eq!((bytes.kind, bytes.code), (ErrorKind::Protocol, Some(5001)));
    let unknown = pair.request("completion/complete", "{}").unwrap_err();
    assert!(unknown.message.contains("0.7 has no completion/complete"), "{}", unknown.message);
}

#[test]
fn messages_unknown_to_the_dialect_are_not_sent() {
    let mut pair = pair(Dialect::V0_7);
    let options = RequestOptions { timeout: Some(Duration::from_secs(1)), ..Default::default() };
    let key = pair.send("tools/call", r#"{"name":"wait"}"#, options);
    pair.handle_server(service::Input::Updated("fixture://about"));
    pair.handle_server(service::Input::Components(
        Arc::new(fixture::components_in(vec![Dialect::V0_7])),
        vec![ListKind::Tools],
    ));
    pair.advance(Duration::from_secs(2));
    assert_eq!(pair.outcome(key).unwrap().unwrap_err().kind, ErrorKind::Timeout);
    assert_eq!(sent(&pair).len(), 2, "neither a token nor a cancellation: {:?}", pair.wire);
    assert!(sent(&pair)[1]["params"].get("_meta").is_none());
    assert_eq!(pair.wire.len(), 3, "{:?}", pair.wire);
}

/// A client whose server is this test.
struct Alone {
    client: ClientSession,
    now: Instant,
}

impl Alone {
    fn new(dialect: Dialect, answer: &str) -> (Self, Vec<Output>) {
        let client = ClientSession::new(Arc::new(config(dialect)));
        let mut alone = Self { client, now: Instant::now() };
        alone.feed(Input::Start);
        let outputs = alone.receive(answer);
        (alone, outputs)
    }

    fn feed(&mut self, input: Input<'_>) -> Vec<Output> {
        self.client.handle(self.now, input);
        std::iter::from_fn(|| self.client.poll()).collect()
    }

    fn receive(&mut self, frame: &str) -> Vec<Output> {
        self.feed(Input::Frame(frame.as_bytes()))
    }

    fn request(&mut self, key: u64, method: &str, params: &str) -> Vec<Value> {
        let options = RequestOptions { wants_progress: true, ..Default::default() };
        let (key, method) = (RequestKey(key), MethodName::parse(method));
        frames(self.feed(Input::Request { key, method, params, options }))
    }
}

fn frames(outputs: Vec<Output>) -> Vec<Value> {
    let sent = outputs.into_iter().filter_map(|output| match output {
        Output::Send(frame) => Some(serde_json::from_slice(&frame).unwrap()),
        _ => None,
    });
    sent.collect()
}

#[test]
fn an_expired_session_is_renewed_without_losing_requests() {
    let introduction = r#"{"jsonrpc":"2.0","id":1,"result":{"version":"0.6.0","capabilities":{}}}"#;
    let (mut alone, opened) = Alone::new(Dialect::V0_7, introduction);
    assert!(matches!(&opened[..], [Output::Ready(_)]), "{opened:?}");
    let first = alone.request(1, "tools/call", r#"{"name":"a"}"#);
    let second = alone.request(2, "tools/call", r#"{"name":"b"}"#);
    let expired = |id: u64| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1002,"message":"expired"}}}}"#)
    };
    let again = frames(alone.receive(&expired(2)));
    assert_eq!((again.len(), &again[0]["method"]), (1, &json!("initialize")));
    assert!(alone.receive(&expired(3)).is_empty(), "it waits for the same initialize");
    let repeated = frames(
        alone.receive(r#"{"jsonrpc":"2.0","id":4,"result":{"version":"0.7.0","capabilities":{}}}"#),
    );
    assert_eq!(repeated, [first, second].concat());
    let done = alone.receive(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":false}}"#);
    assert!(matches!(&done[..], [Output::Done(RequestKey(1), Ok(_))]), "{done:?}");
    // A second expiry for the same request is its result.
    let failed = alone.receive(&expired(3));
    assert!(
        matches!(&failed[..], [Output::Done(RequestKey(2), Err(error))] if error.code == Some(1002)),
        "{failed:?}"
    );
}

#[test]
fn an_exchange_that_tells_of_an_expired_session_does_not_end_its_request() {
    let introduction = r#"{"jsonrpc":"2.0","id":1,"result":{"version":"0.7.0"}}"#;
    let (mut alone, _) = Alone::new(Dialect::V0_7, introduction);
    alone.request(1, "tools/call", r#"{"name":"a"}"#);
    let expired = br#"{"jsonrpc":"2.0","id":2,"error":{"code":1002,"message":"expired"}}"#;
    let again = alone.feed(Input::Response { id: 2, frame: expired });
    assert_eq!(frames(again)[0]["method"], "initialize");
    let failed = alone.feed(Input::Response { id: 3, frame: b"{}" });
    let [Output::Done(RequestKey(1), Err(error))] = &failed[..] else { panic!("{failed:?}") };
    assert_eq!(error.kind, ErrorKind::Lost);
    assert!(error.message.contains("can't be read"), "{}", error.message);
}

#[test]
fn a_failed_renewal_fails_the_waiting_requests() {
    let introduction = r#"{"jsonrpc":"2.0","id":1,"result":{"version":"0.7.0"}}"#;
    let (mut alone, _) = Alone::new(Dialect::V0_7, introduction);
    alone.request(1, "tools/call", r#"{"name":"a"}"#);
    alone.receive(r#"{"jsonrpc":"2.0","id":2,"error":{"code":1002,"message":"expired"}}"#);
    let failed =
        alone.receive(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}"#);
    let [Output::Done(RequestKey(1), Err(error))] = &failed[..] else { panic!("{failed:?}") };
    assert_eq!(error.kind, ErrorKind::Lost);
    assert!(error.message.contains("no (-32603)"), "{}", error.message);
}

#[test]
fn an_incompatible_server_is_rejected_with_the_fix() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"version":"0.9.0","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":3}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no version in common"}}"#,
    ] {
        let (_, outputs) = Alone::new(Dialect::V0_7, answer);
        assert!(matches!(&outputs[..], [Output::Failed(_)]), "{answer}: {outputs:?}");
    }
}

#[test]
fn bare_notifications_go_both_ways() {
    let mut pair = pair(Dialect::Bare);
    assert_eq!(sent(&pair)[1], json!({"jsonrpc": "2.0", "method": "initialized"}));
    assert_eq!(ask(&mut pair, "ping", &json!({})), json!({"status": "ok"}));
    let options = RequestOptions { wants_progress: true, ..Default::default() };
    let key = pair.send("tools/call", r#"{"name":"wait"}"#, options);
    let run = pair.running[0].id;
    let step = Progress { progress: 1.0, total: Some(2.0), message: None };
    pair.handle_server(service::Input::Handler(run, HandlerEvent::Progress(step)));
    assert!(matches!(pair.events.pop_front(), Some(Output::Progress(told, _)) if told == key));
    pair.handle_server(service::Input::Components(
        Arc::new(fixture::components_in(vec![Dialect::Bare])),
        vec![ListKind::Tools],
    ));
    assert!(matches!(pair.events.pop_front(), Some(Output::ListChanged(ListKind::Tools))));
    pair.handle_client(Input::Cancel(key, None));
    assert!(pair.running.is_empty(), "it was cancelled");
    let roots = MethodName::parse("notifications/roots/list_changed");
    pair.handle_client(Input::Notify { method: roots, params: "{}" });
    let names: Vec<_> = sent(&pair).iter().map(|message| message["method"].clone()).collect();
    assert_eq!(
        names,
        ["initialize", "initialized", "ping", "tools/call", "cancelled", "roots/list_changed"]
    );
    let prefixed = pair.wire.iter().any(|sent| match sent {
        Sent::ByClient(frame) | Sent::ByServer(frame) => frame.contains("notifications/"),
    });
    assert!(!prefixed, "{:?}", pair.wire);
}

#[test]
fn a_bare_client_takes_either_spelling_and_progress_without_a_token() {
    let introduction = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}"#;
    let (mut alone, _) = Alone::new(Dialect::Bare, introduction);
    alone.request(1, "tools/call", r#"{"name":"a"}"#);
    for frame in [
        r#"{"jsonrpc":"2.0","method":"progress","params":{"progress":1,"total":3}}"#,
        r#"{"jsonrpc":"2.0","method":"progress","params":{"progressToken":2,"progress":2}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":3}}"#,
    ] {
        let seen = alone.receive(frame);
        assert!(matches!(&seen[..], [Output::Progress(RequestKey(1), _)]), "{frame}: {seen:?}");
    }
    alone.request(2, "tools/call", r#"{"name":"b"}"#);
    let seen = alone.receive(r#"{"jsonrpc":"2.0","method":"progress","params":{"progress":4}}"#);
    assert!(seen.is_empty(), "of two requests nobody knows which: {seen:?}");
    let log = alone.receive(
        r#"{"jsonrpc":"2.0","method":"logging/message","params":{"level":"info","data":"x"}}"#,
    );
    assert!(matches!(&log[..], [Output::Log(_)]), "{log:?}");
    let pong = frames(alone.receive(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#));
    assert_eq!(pong, [json!({"jsonrpc": "2.0", "id": "p", "result": {"status": "ok"}})]);
}

#[test]
fn any_object_answers_a_ping() {
    let introduction =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}"#;
    let (mut alone, _) = Alone::new(Dialect::Bare, introduction);
    for (key, answer) in [r#"{"status":"ok"}"#, "{}", r#"{"anything":[1]}"#].iter().enumerate() {
        let id = key as u64 + 2;
        alone.request(id, "ping", "{}");
        let done = alone.receive(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{answer}}}"#));
        assert!(matches!(&done[..], [Output::Done(_, Ok(_))]), "{answer}: {done:?}");
    }
}
