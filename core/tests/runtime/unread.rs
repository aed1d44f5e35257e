//! Clients that do not read: they block nobody, use little memory, and lose their subscriptions.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
};

use gudgeon::{
    driver::{EndpointServer, Outbox, StreamConnection},
    framing::LineDecoder,
    http::{EndpointConfig, Part},
    protocol::{Implementation, Resource},
    router::{Components, RegisteredResource, ServerFacts},
};
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

fn components() -> Arc<Components> {
    let mut components = Components::new(ServerFacts::from(Implementation::new("teller", "1")));
    let component = RegisteredResource::new(Resource::new("mem://a", "a"), Arc::new(())).unwrap();
    components.resources.add(component, true).unwrap();
    Arc::new(components)
}

/// Long enough that a few thousand exceed every limit.
fn uri(number: usize) -> String {
    format!("mem://{number}/{}", "x".repeat(2_000))
}

fn listen(id: u64, uris: &[String]) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
        "notifications": {"resourceSubscriptions": uris},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

fn served() -> (BufReader<File>, Arc<StreamConnection>) {
    let (read, write) = std::io::pipe().unwrap();
    let (read, write): (OwnedFd, OwnedFd) = (read.into(), write.into());
    (BufReader::new(read.into()), StreamConnection::new(components(), write.into()))
}

fn receive(server: &StreamConnection, message: &Value) {
    let line = format!("{message}\n");
    drop(server.feed(&mut LineDecoder::new(64 * MIB), line.as_bytes()));
    server.try_flush();
}

fn next(reader: &mut BufReader<File>) -> Value {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn over_a_pipe_pending_changes_are_merged() {
    let (mut reader, server) = served();
    receive(&server, &listen(1, &["mem://a".into(), "mem://b".into()]));
    for _ in 0..10_000 {
        for uri in ["mem://a", "mem://b"] {
            server.server().updated(uri);
        }
        server.try_flush();
    }
    // A pipe holds 64 KiB; what waits behind it is one message of each kind.
    assert!(server.unwritten() < MIB, "{} bytes wait", server.unwritten());
    receive(&server, &json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    server.server().updated("mem://a");
    server.try_flush();
    assert_eq!(next(&mut reader)["method"], "notifications/subscriptions/acknowledged");
    let mut sent = 0;
    let is_last = |message: &Value| message["id"] == 2;
    loop {
        let message = next(&mut reader);
        if is_last(&message) {
            break;
        }
        assert_eq!(message["method"], "notifications/resources/updated");
        sent += 1;
    }
    assert!((2..2_000).contains(&sent), "{sent} messages");
    // After it was read, another change is notified again.
    while server.unwritten() > 0 {
        std::thread::yield_now();
    }
    receive(&server, &json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    while next(&mut reader)["id"] != 3 {}
    server.server().updated("mem://b");
    server.try_flush();
    assert_eq!(next(&mut reader)["params"]["uri"], "mem://b");
}

#[test]
fn over_a_pipe_too_many_pending_changes_end_the_subscription() {
    let (mut reader, server) = served();
    let uris: Vec<String> = (0..8_000).map(uri).collect();
    receive(&server, &listen(1, &uris));
    // The acknowledgment repeats what is listened to.
    assert_eq!(next(&mut reader)["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..3 {
        for uri in &uris {
            server.server().updated(uri);
            server.try_flush();
            assert!(server.unwritten() < 5 * MIB, "{} bytes wait", server.unwritten());
        }
    }
    let mut sent = 0;
    let last = loop {
        let message = next(&mut reader);
        if message["method"] == "notifications/cancelled" {
            break message;
        }
        sent += 1;
    };
    assert!((1_900..3_000).contains(&sent), "{sent} messages");
    assert_eq!(last["params"]["requestId"], 1);
    assert!(last["params"]["reason"].as_str().unwrap().contains("leaves too much unread"));
    while server.unwritten() > 0 {
        std::thread::yield_now();
    }
    // A new subscription works again.
    receive(&server, &listen(1, &["mem://a".into()]));
    assert_eq!(next(&mut reader)["method"], "notifications/subscriptions/acknowledged");
    server.server().updated("mem://a");
    server.try_flush();
    assert_eq!(next(&mut reader)["params"]["uri"], "mem://a");
}

#[test]
fn over_a_pipe_a_long_response_does_not_end_a_subscription() {
    let (mut reader, server) = served();
    let uris: Vec<String> = (0..8_000).map(uri).collect();
    // The acknowledgment repeats what is listened to: 16 MB.
    receive(&server, &listen(1, &uris));
    server.server().updated(&uris[0]);
    server.try_flush();
    assert_eq!(next(&mut reader)["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(next(&mut reader)["params"]["uri"], uris[0]);
}

/// Keeps what nobody takes.
#[derive(Clone, Default)]
struct Unread(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    parts: usize,
    is_over: bool,
}

impl Outbox for Unread {
    fn deliver(&mut self, part: Part) {
        let mut kept = self.0.lock().unwrap();
        match part {
            Part::Head { body, more, .. } => {
                kept.bytes = body;
                kept.is_over = !more;
            }
            Part::Bytes(bytes) => {
                kept.bytes.extend(bytes);
                kept.parts += 1;
            }
            Part::End => kept.is_over = true,
        }
    }

    fn unread(&self) -> gudgeon::driver::Unread {
        let kept = self.0.lock().unwrap();
        gudgeon::driver::Unread { parts: kept.parts, bytes: kept.bytes.len() }
    }
}

impl Unread {
    fn take(&self) -> String {
        let kept = std::mem::take(&mut *self.0.lock().unwrap());
        self.0.lock().unwrap().is_over = kept.is_over;
        String::from_utf8(kept.bytes).unwrap()
    }

    fn is_over(&self) -> bool {
        self.0.lock().unwrap().is_over
    }
}

fn post(server: &EndpointServer, body: &Value) -> Unread {
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(())
        .unwrap();
    let (head, ()) = request.into_parts();
    let outbox = Unread::default();
    let head = server.admission().head(head).expect("it may call");
    drop(server.request(head, body.to_string().as_bytes(), Box::new(outbox.clone())));
    outbox
}

#[test]
fn over_http_pending_changes_are_merged_and_too_many_end_the_stream() {
    let server = EndpointServer::new(components(), EndpointConfig::default());
    let uris: Vec<String> = (0..1_000).map(uri).collect();
    let outbox = post(&server, &listen(7, &uris));
    assert!(outbox.take().contains("notifications/subscriptions/acknowledged"));
    for _ in 0..10_000 {
        server.updated(&uris[0]);
        server.updated(&uris[1]);
    }
    let sent = outbox.take();
    assert_eq!(sent.matches("notifications/resources/updated").count(), 2, "each once");
    server.updated(&uris[0]);
    assert_eq!(outbox.take().matches("notifications/resources/updated").count(), 1);
    for uri in uris.iter().cycle().take(20_000) {
        server.updated(uri);
    }
    assert!(outbox.is_over());
    let sent = outbox.take();
    assert!(sent.len() < MIB + 8 * 1024, "{} bytes", sent.len());
    let last = sent.trim_end().rsplit_once("data: ").unwrap().1;
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["method"], "notifications/cancelled");
    assert_eq!(last["params"]["requestId"], 7);
    assert_eq!(server.open_exchanges(), 0);
}

#[test]
fn over_a_connection_the_subscriptions_end_and_the_connection_stays() {
    let server = EndpointServer::new(components(), EndpointConfig::default());
    let uris: Vec<String> = (0..4_000).map(uri).collect();
    let outbox = Unread::default();
    let connection = server.connect(None, None, Box::new(outbox.clone()));
    for id in [1, 2] {
        drop(server.message(connection, listen(id, &uris).to_string().as_bytes()));
    }
    outbox.take();
    for uri in uris.iter().cycle().take(20_000) {
        server.updated(uri);
    }
    let sent = outbox.take();
    assert!(sent.len() < 5 * MIB, "{} bytes", sent.len());
    assert_eq!(sent.matches("notifications/cancelled").count(), 2);
    assert!(!outbox.is_over());
    drop(server.message(connection, listen(1, &["mem://a".into()]).to_string().as_bytes()));
    server.updated("mem://a");
    assert_eq!(outbox.take().matches("mem://a").count(), 2, "acknowledged, and told");
}
