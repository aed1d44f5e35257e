//! Calls that are cancelled before the host has taken the work that starts them.

use std::{fs::File, os::fd::OwnedFd, sync::Arc};

use gudgeon::{
    driver::{Backend, StreamServer, Work},
    framing::LineDecoder,
    protocol::Implementation,
    router::{Components, Definition, List, ServerFacts},
};
use serde_json::{Value, json};

const GUARDED: &[u8] = br#"{"name":"hidden","inputSchema":{"type":"object"},"guarded":true}"#;
const OPEN: &[u8] = br#"{"name":"works","inputSchema":{"type":"object"}}"#;

struct Client {
    server: Arc<StreamServer<()>>,
    decoder: LineDecoder,
}

impl Client {
    fn new() -> Self {
        let facts = ServerFacts::from(Implementation::new("s", "1"));
        let mut components = Components::new(facts);
        for tool in [GUARDED, OPEN] {
            components.declare(List::Tools, tool, ()).unwrap();
        }
        let vendor = Definition::Notification("acme/changed".into());
        components.add(vendor, ()).unwrap();
        let null = File::create("/dev/null").unwrap();
        let server = StreamServer::new(Arc::new(components), File::from(OwnedFd::from(null)));
        let mut client = Self { server, decoder: LineDecoder::new(1 << 20) };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}});
        let begun = client.feed(&[message(Some(0), "initialize", &params)]);
        assert!(begun.runs.is_empty());
        client
    }

    fn feed(&mut self, messages: &[Value]) -> Work<()> {
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

fn is_nothing(work: &Work<()>) -> bool {
    let is_empty = work.others.as_deref().is_none_or(|others| {
        others.cancels.is_empty()
            && others.host_requests.is_empty()
            && others.host_cancels.is_empty()
    });
    work.runs.is_empty() && is_empty
}

#[test]
fn a_call_that_is_cancelled_in_the_same_chunk_is_no_work() {
    let cancelled = message(None, "notifications/cancelled", &json!({"requestId": 1}));
    for (what, request) in requests() {
        let mut client = Client::new();
        let work = client.feed(&[request.clone(), cancelled.clone()]);
        assert!(is_nothing(&work), "{what}: {work:?}");
    }
}

#[test]
fn a_call_that_is_cancelled_before_its_work_is_taken_is_taken_out() {
    let cancelled = message(None, "notifications/cancelled", &json!({"requestId": 1}));
    for (what, request) in requests() {
        let mut client = Client::new();
        let mut work = client.feed(std::slice::from_ref(&request));
        assert!(!is_nothing(&work), "{what}");
        work.extend(client.feed(std::slice::from_ref(&cancelled)));
        assert!(is_nothing(&work), "{what}: {work:?}");
    }
}

#[test]
fn a_call_whose_work_was_taken_is_cancelled() {
    let cancelled = message(None, "notifications/cancelled", &json!({"requestId": 1}));
    let mut client = Client::new();
    let [(_, call), (_, list)] = requests();
    let started = client.feed(&[call]).runs.pop().expect("a run");
    let stopped = client.feed(std::slice::from_ref(&cancelled)).others.expect("a cancellation");
    assert_eq!(stopped.cancels, [started.id]);
    let asked = client.feed(&[list]).others.expect("a question").host_requests;
    let stopped = client.feed(&[cancelled]).others.expect("a cancellation");
    assert_eq!(stopped.host_cancels, [asked[0].0]);
}

#[test]
fn a_notification_is_handled_although_its_sender_has_left() {
    let mut client = Client::new();
    let mut work = client.feed(&[message(None, "acme/changed", &json!({}))]);
    work.extend(client.server.close());
    assert_eq!(work.runs.len(), 1);
    assert!(work.runs[0].is_notification);
}
