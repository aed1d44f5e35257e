//! A client that exchanges raw frames with an in-memory server.

use std::time::Duration;

use gudgeon::Server;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
    time::timeout,
};

/// Longer than anything here takes, shorter than anybody's patience.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Peer {
    requests: WriteHalf<DuplexStream>,
    answers: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<()>,
    next: u64,
}

impl Peer {
    pub(crate) fn new(server: &Server) -> Self {
        let (client, ours) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(ours);
        let serving = tokio::spawn(server.serve(reader, writer));
        let (answers, requests) = tokio::io::split(client);
        Self { requests, answers: BufReader::new(answers).lines(), serving, next: 1 }
    }

    /// With the handshake of 2025-11-25 done.
    pub(crate) async fn legacy(server: &Server) -> Self {
        let mut peer = Self::new(server);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "1"}});
        peer.request("initialize", params).await;
        peer.notify("notifications/initialized", json!({})).await;
        peer
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&format!("{message}\n")).await;
    }

    /// In one write.
    pub(crate) async fn send_text(&mut self, text: &str) {
        self.requests.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends a request and gives its id.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub(crate) async fn receive(&mut self) -> Value {
        let line = timeout(PATIENCE, self.answers.next_line()).await.expect("no answer in time");
        serde_json::from_str(&line.unwrap().expect("the server has gone")).unwrap()
    }

    /// The reply; what comes before it is lost.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"].clone()
    }

    pub(crate) async fn listed(&mut self, tool: &str) -> Value {
        let reply = self.request("tools/list", json!({})).await;
        let tools = reply["result"]["tools"].as_array().unwrap();
        tools.iter().find(|entry| entry["name"] == tool).cloned().unwrap_or_default()
    }

    /// Closes the client's end and waits for the server's; gives what it still said.
    pub(crate) async fn close(mut self) -> Vec<Value> {
        self.requests.shutdown().await.unwrap();
        let mut said = Vec::new();
        while let Some(line) =
            timeout(PATIENCE, self.answers.next_line()).await.expect("the server stays").unwrap()
        {
            said.push(serde_json::from_str(&line).unwrap());
        }
        timeout(PATIENCE, self.serving).await.expect("serving goes on").unwrap();
        said
    }
}
