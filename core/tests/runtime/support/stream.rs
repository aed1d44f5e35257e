//! A scripted server at the other end of an in-memory stream.

use std::time::Duration;

use gudgeon::{
    client::Target,
    transport::memory_network::{HOST, MemoryListener},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::mpsc,
};

/// Every message of the client's, as the server got it.
pub(crate) type Received = mpsc::UnboundedReceiver<Value>;

/// A server that answers each message with what `script` gives back, after `initialize` and `server/discover` are
/// dealt with as `revision` wants it.
pub(crate) fn server(
    revision: &'static str,
    script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Target, Received) {
    let capabilities =
        json!({"tools": {}, "prompts": {}, "resources": {}, "logging": {}, "completions": {}});
    server_with(capabilities, revision, script)
}

/// Like [`server`], with these capabilities.
pub(crate) fn server_with(
    capabilities: Value,
    revision: &'static str,
    script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Target, Received) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(serve(ours, capabilities, revision, script, sender));
    let (input, output) = tokio::io::split(theirs);
    (Target::stream(input, output), received)
}

/// A server like that of [`server_with`] at an address, where it serves each connection by itself.
pub(crate) fn listening_server(
    capabilities: Value,
    revision: &'static str,
    script: impl FnMut(&Value) -> Vec<Value> + Clone + Send + 'static,
) -> Target {
    let listener = MemoryListener::bind(0).expect("a port");
    let url = format!("tcp://{HOST}:{}", listener.port());
    tokio::spawn(async move {
        loop {
            let (sender, _) = mpsc::unbounded_channel();
            let stream = listener.accept().await;
            tokio::spawn(serve(stream, capabilities.clone(), revision, script.clone(), sender));
        }
    });
    Target::url(&url).expect("a URL")
}

async fn serve(
    stream: DuplexStream,
    capabilities: Value,
    revision: &'static str,
    mut script: impl FnMut(&Value) -> Vec<Value>,
    sender: mpsc::UnboundedSender<Value>,
) {
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("a client speaks JSON");
        let replies =
            opening(&capabilities, revision, &message).unwrap_or_else(|| script(&message));
        let _ = sender.send(message);
        for reply in replies {
            if reply == "hang up" {
                return;
            }
            if let Some(time) = reply["pause"].as_u64() {
                tokio::time::sleep(Duration::from_millis(time)).await;
                continue;
            }
            let _ = output.write_all(format!("{reply}\n").as_bytes()).await;
        }
    }
}

fn opening(capabilities: &Value, revision: &str, message: &Value) -> Option<Vec<Value>> {
    let is_modern = revision == "2026-07-28";
    let reply = match message["method"].as_str()? {
        "server/discover" if is_modern => {
            result(message, &json!({"supportedVersions": [revision], "capabilities": capabilities}))
        }
        "server/discover" => error(message, -32601),
        "initialize" => result(
            message,
            &json!({"protocolVersion": revision, "capabilities": capabilities,
                "serverInfo": {"name": "stream", "version": "1"}}),
        ),
        "notifications/initialized" => return Some(Vec::new()),
        _ => return None,
    };
    Some(vec![reply])
}

pub(crate) fn result(message: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

pub(crate) fn error(message: &Value, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}})
}

/// A reply that is none: the server pauses for this many milliseconds before the next one.
pub(crate) fn pause(time: u64) -> Value {
    json!({ "pause": time })
}

/// The first message with this method.
pub(crate) async fn receive(received: &mut Received, method: &str) -> Value {
    loop {
        let message = received.recv().await.expect("the client says it");
        if message["method"] == method {
            return message;
        }
    }
}
