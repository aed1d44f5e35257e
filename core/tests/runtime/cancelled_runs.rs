//! Calls that are cancelled before the host has taken the work that starts them.

use std::{fs::File, os::fd::OwnedFd, sync::Arc};

use gudgeon::{
    driver::{StreamConnection, Work},
    engine::Effect,
    framing::LineDecoder,
    protocol::Implementation,
    router::{Components, Definition, List, ServerFacts},
};
use serde_json::{Value, json};

const GUARDED: &[u8] = br#"{"name":"hidden","inputSchema":{"type":"object"},"guarded":true}"#;
const OPEN: &[u8] = br#"{"name":"works","inputSchema":{"type":"object"}}"#;

struct Client {
    server: Arc<StreamConnection>,
    decoder: LineDecoder,
}

impl Client {
    fn new() -> Self {
        let facts = ServerFacts::from(Implementation::new("s", "1"));
        let mut components = Components::new(facts);
        for tool in [GUARDED, OPEN] {
            components.declare(List::Tools, tool, Arc::new(())).unwrap();
        }
        let vendor = Definition::Notification("acme/changed".into());
        components.add(vendor, Arc::new(())).unwrap();
        let null = File::create("/dev/null").unwrap();
        let server = StreamConnection::new(Arc::new(components), File::from(OwnedFd::from(null)));
        let mut client = Self { server, decoder: LineDecoder::new(1 << 20) };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}});
        let begun = client.feed(&[message(Some(0), "initialize", &params)]);
        assert_eq!(begun.runs().count(), 0);
        client
    }

    fn feed(&mut self, messages: &[Value]) -> Work {
        let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
        let text = lines.join("\n") + "\n";
        self.server.feed(&mut self.decoder, text.as_bytes())
    }
}

fn message(id: Option<u64>, method: &str, params: &Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

/// Returns requests, with the kind of work that each brings the host.
fn requests() -> [(&'static str, Value); 2] {
    let call = message(Some(1), "tools/call", &json!({"name": "works"}));
    [("a run", call), ("a request to the host", message(Some(1), "tools/list", &json!({})))]
}

#[test]
fn a_call_that_is_cancelled_in_the_same_chunk_is_no_work() {
    let cancelled = message(None, "notifications/cancelled", &json!({"requestId": 1}));
    for (what, request) in requests() {
        let mut client = Client::new();
        let mut work = client.feed(&[request.clone(), cancelled.clone()]);
        assert!(work.pop().is_none(), "{what}");
    }
}

#[test]
fn a_call_that_is_cancelled_before_its_work_is_taken_is_taken_out() {
    let cancelled = message(None, "notifications/cancelled", &json!({"requestId": 1}));
    for (what, request) in requests() {
        let mut client = Client::new();
        let mut work = client.feed(std::slice::from_ref(&request));
        work.extend(client.feed(std::slice::from_ref(&cancelled)));
        assert!(work.pop().is_none(), "{what}");
    }
}

#[test]
fn a_call_whose_work_was_taken_is_cancelled() {
    let cancelled = message(None, "notifications/cancelled", &json!({"requestId": 1}));
    let mut client = Client::new();
    let [(_, call), (_, list)] = requests();
    let Some(Effect::Run(started)) = client.feed(&[call]).pop() else { panic!("no run") };
    let stopped = client.feed(std::slice::from_ref(&cancelled)).pop();
    assert!(matches!(stopped, Some(Effect::Cancel(run)) if run == started.id), "{stopped:?}");
    let Some(Effect::Host(asked, _)) = client.feed(&[list]).pop() else { panic!("no question") };
    let stopped = client.feed(&[cancelled]).pop();
    assert!(matches!(stopped, Some(Effect::CancelHost(ticket)) if ticket == asked), "{stopped:?}");
}

#[test]
fn a_notification_is_handled_although_its_sender_has_left() {
    let mut client = Client::new();
    let mut work = client.feed(&[message(None, "acme/changed", &json!({}))]);
    work.extend(client.server.server().close());
    assert_eq!(work.runs().count(), 1);
    assert!(work.runs().all(|run| run.is_notification));
}
