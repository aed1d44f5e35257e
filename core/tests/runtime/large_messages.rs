//! Checks of large messages that take long: other threads use the server meanwhile.

use std::{
    fs::File,
    os::fd::OwnedFd,
    sync::Arc,
    thread::{self, JoinHandle},
};

use gudgeon::{
    driver::{EndpointServer, Outbox, StreamConnection, Work},
    framing::LineDecoder,
    http::{EndpointConfig, Part},
    protocol::{Implementation, Tool, json::to_raw},
    router::{Components, RegisteredTool, Reply, ServerFacts},
};
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

/// A schema whose check of [`slow_value`] takes as long as a check may take.
fn slow_schema() -> Value {
    let password = r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}";
    json!({"type": "object", "properties": {"password": {"type": "string", "pattern": password}}})
}

fn slow_value() -> Value {
    json!({"password": "a".repeat(100_000)})
}

fn components() -> Arc<Components> {
    let mut components = Components::new(ServerFacts::from(Implementation::new("checker", "1")));
    let checks = Tool::new("checks", to_raw(&slow_schema()));
    components.tools.add(RegisteredTool::new(checks, Arc::new(())).unwrap(), true).unwrap();
    let mut answers = Tool::new("answers", to_raw(&json!({"type": "object"})));
    answers.output_schema = Some(to_raw(&slow_schema()));
    components.tools.add(RegisteredTool::new(answers, Arc::new(())).unwrap(), true).unwrap();
    Arc::new(components)
}

fn call(name: &str, arguments: &Value) -> Vec<u8> {
    let mut frame = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": name, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
    .to_string()
    .into_bytes();
    frame.push(b'\n');
    frame
}

/// Asserts that the server can be used while the thread checks a message.
fn assert_usable(server: &EndpointServer, checking: JoinHandle<Work>) {
    let mut uses = 0;
    while !checking.is_finished() {
        uses += server.in_flight();
    }
    assert!(uses > 100, "the server was locked during the check, and used {uses} times");
    assert_eq!(checking.join().unwrap().runs().count(), 0);
    assert_eq!(server.in_flight(), 0, "the value does not fit");
}

fn stream() -> Arc<StreamConnection> {
    let null = File::create("/dev/null").unwrap();
    StreamConnection::new(components(), File::from(OwnedFd::from(null)))
}

struct Nowhere;

impl Outbox for Nowhere {
    fn deliver(&mut self, _: Part) {}

    fn unread(&self) -> gudgeon::driver::Unread {
        gudgeon::driver::Unread::default()
    }
}

#[test]
fn over_a_pipe_arguments_are_checked_without_the_lock() {
    let server = stream();
    let feeding = Arc::clone(&server);
    let frame = call("checks", &slow_value());
    let feed = move || feeding.feed(&mut LineDecoder::new(MIB), &frame);
    assert_usable(server.server(), thread::spawn(feed));
}

#[test]
fn on_a_connection_arguments_are_checked_without_the_lock() {
    let server = EndpointServer::new(components(), EndpointConfig::default());
    let connection = server.connect(None, None, Box::new(Nowhere));
    let reading = Arc::clone(&server);
    let frame = call("checks", &slow_value());
    assert_usable(&server, thread::spawn(move || reading.message(connection, &frame)));
}

#[test]
fn over_a_pipe_results_are_checked_without_the_lock() {
    let server = stream();
    let work = server.feed(&mut LineDecoder::new(MIB), &call("answers", &json!({})));
    let (finishing, run) = (Arc::clone(server.server()), work.runs().next().unwrap().id);
    let reply = Reply::Json(slow_value().to_string());
    assert_usable(server.server(), thread::spawn(move || finishing.done(run, Ok(reply))));
}

#[test]
fn on_a_connection_results_are_checked_without_the_lock() {
    let server = EndpointServer::new(components(), EndpointConfig::default());
    let connection = server.connect(None, None, Box::new(Nowhere));
    let work = server.message(connection, &call("answers", &json!({})));
    let (finishing, run) = (Arc::clone(&server), work.runs().next().unwrap().id);
    let reply = Reply::Json(slow_value().to_string());
    assert_usable(&server, thread::spawn(move || finishing.done(run, Ok(reply))));
}
