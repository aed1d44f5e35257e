//! Handlers whose clients leave much unread: hosts hand them back, and are given them again once the client has read.

use std::sync::{Arc, Mutex};

use gudgeon::{
    driver::{EndpointServer, Outbox, Unread, Work},
    engine::{Effect, Run},
    http::{ConnectionId, EndpointConfig, Part},
    protocol::Implementation,
    router::{Components, List, Reply, ServerFacts},
};
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;
const TOOL: &[u8] = br#"{"name":"read","inputSchema":{"type":"object"}}"#;

fn server() -> Arc<EndpointServer> {
    let mut components = Components::new(ServerFacts::from(Implementation::new("s", "1")));
    components.declare(List::Tools, TOOL, Arc::new(())).unwrap();
    EndpointServer::new(Arc::new(components), EndpointConfig::default())
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "read",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

/// A reader of a connection, which reads when the test does.
#[derive(Clone, Default)]
struct Reader(Arc<Mutex<Vec<Vec<u8>>>>);

impl Reader {
    fn read(&self) -> Vec<Value> {
        let messages = std::mem::take(&mut *self.0.lock().unwrap());
        messages.iter().map(|message| serde_json::from_slice(message).unwrap()).collect()
    }
}

impl Outbox for Reader {
    fn deliver(&mut self, part: Part) {
        if let Part::Bytes(bytes) = part {
            self.0.lock().unwrap().push(bytes);
        }
    }

    fn unread(&self) -> Unread {
        let waiting = self.0.lock().unwrap();
        Unread { parts: waiting.len(), bytes: waiting.iter().map(Vec::len).sum() }
    }
}

fn connect(server: &EndpointServer) -> (ConnectionId, Reader) {
    let reader = Reader::default();
    (server.connect(None, None, Box::new(reader.clone())), reader)
}

fn send(server: &EndpointServer, connection: ConnectionId, message: &Value) -> Work {
    server.message(connection, message.to_string().as_bytes())
}

fn begin(server: &EndpointServer, connection: ConnectionId, id: u64) -> Run {
    run(send(server, connection, &call(id)))
}

fn run(mut work: Work) -> Run {
    match work.pop() {
        Some(Effect::Run(run)) => *run,
        other => panic!("it is not a run: {other:?}"),
    }
}

fn may_start(server: &EndpointServer, run: &Run) -> bool {
    server.may_start(run.id, &run.context)
}

/// Ticks at the deadlines until work comes of it, or there is no deadline.
fn wait(server: &EndpointServer) -> Work {
    let mut work = Work::default();
    while work.runs().count() == 0 && server.deadline().is_some() {
        work.extend(server.tick());
    }
    work
}

#[test]
fn a_handler_waits_until_its_client_has_read_and_others_start() {
    let server = server();
    let (slow, slow_reader) = connect(&server);
    let (quick, _quick_reader) = connect(&server);
    let [first, second] = [1, 2].map(|id| begin(&server, slow, id));
    assert!(may_start(&server, &first));
    drop(server.done(first.id, Ok(Reply::Text("x".repeat(5 * MIB)))));
    assert!(!may_start(&server, &second), "its answer would only take memory");
    assert!(may_start(&server, &begin(&server, quick, 1)), "another client's handler starts");

    let id = second.id;
    let postponed = server.postpone(second);
    assert_eq!(postponed.runs().count(), 0);
    assert!(postponed.wake.is_some(), "the host has to come back");
    for _ in 0..3 {
        assert_eq!(
            server.tick().runs().count(),
            0,
            "it is not given out before the client has read"
        );
    }
    assert_eq!(slow_reader.read().len(), 1);
    let given = run(wait(&server));
    assert_eq!(given.id, id);
    assert!(may_start(&server, &given));
    assert!(!server.has_backlog());
    drop(server.done(given.id, Ok(Reply::Text("right".into()))));
    assert_eq!(slow_reader.read()[0]["result"]["content"][0]["text"], "right");
}

#[test]
fn a_handler_that_waits_is_not_started_after_its_call_was_cancelled() {
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    for is_cancelled_first in [false, true] {
        let server = server();
        let (connection, reader) = connect(&server);
        let [first, second] = [1, 2].map(|id| begin(&server, connection, id));
        drop(server.done(first.id, Ok(Reply::Text("x".repeat(5 * MIB)))));
        assert!(!may_start(&server, &second));
        if is_cancelled_first {
            drop(send(&server, connection, &cancelled));
        }
        drop(server.postpone(second));
        if !is_cancelled_first {
            drop(send(&server, connection, &cancelled));
        }
        reader.read();
        assert_eq!(wait(&server).runs().count(), 0);
    }
}

#[test]
fn a_handler_waits_while_its_client_has_a_large_share_of_all_unread_answers() {
    let server = server();
    let (connection, _reader) = connect(&server);
    let run = begin(&server, connection, 1);
    let mut unread = server.unread_of(None, None);
    assert!(unread.set(127 * MIB));
    assert!(may_start(&server, &run));
    assert!(unread.set(129 * MIB));
    assert!(!may_start(&server, &run));
    let postponed = run.id;
    drop(server.postpone(run));
    unread.clear();
    assert_eq!(self::run(wait(&server)).id, postponed);
}

#[test]
fn few_of_the_handlers_that_waited_start_at_once() {
    let server = server();
    let (connection, reader) = connect(&server);
    let mut runs: Vec<_> = (0..100).map(|id| begin(&server, connection, id)).collect();
    let last = runs.split_off(1);
    drop(server.done(runs[0].id, Ok(Reply::Text("x".repeat(5 * MIB)))));
    for run in last {
        drop(server.postpone(run));
    }
    reader.read();
    let mut started = Vec::new();
    while started.len() < 99 {
        let ids: Vec<_> = wait(&server).runs().map(|run| run.id).collect();
        assert!(ids.len() <= 16, "none of them has answered yet: {}", ids.len());
        started.extend(ids);
    }
    assert!(started.is_sorted_by_key(|run| run.0), "in the order of the calls");
}
