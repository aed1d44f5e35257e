//! The callback that sees every message of a client's connections.

use std::sync::{Arc, Mutex};

use gudgeon::{Client, Revision, Server, client::Target, protocol::Sender};
use serde_json::Value;

use crate::support::memory;

fn server() -> Server {
    Server::new("shelf").tool("count", || async { "two" })
}

/// Returns the messages of a connection with one call, as sender and method or result.
async fn messages_of_a_call(target: Target, revision: Revision) -> Vec<(Sender, Value)> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let builder = Client::builder(target).options(|options| options.revisions = vec![revision]);
    let client = builder
        .on_message(move |by, message| {
            let message = serde_json::from_slice(message).expect("one JSON value without line end");
            log.lock().unwrap().push((by, message));
        })
        .connect()
        .await
        .unwrap();
    client.call_tool("count", ()).await.unwrap();
    client.close().await;
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn methods(messages: &[(Sender, Value)], by: Sender) -> Vec<&str> {
    let sent = messages.iter().filter(|entry| entry.0 == by);
    // Lists are fetched for the schemas of headers and results, before or after the call.
    let methods = sent.filter_map(|(_, message)| message["method"].as_str());
    methods.filter(|method| *method != "tools/list").collect()
}

fn check(messages: &[(Sender, Value)], revision: Revision) {
    let handshake: &[&str] = match revision {
        Revision::V2026_07_28 => &["server/discover", "tools/call"],
        _ => &["initialize", "notifications/initialized", "tools/call"],
    };
    assert_eq!(methods(messages, Sender::Client), handshake);
    let results = messages.iter().filter(|entry| entry.1["result"]["content"][0]["text"] == "two");
    assert_eq!(results.map(|entry| entry.0).collect::<Vec<_>>(), [Sender::Server]);
}

#[tokio::test(start_paused = true)]
async fn a_stream() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        check(&messages_of_a_call(Target::from(server()), revision).await, revision);
    }
}

#[tokio::test(start_paused = true)]
async fn http() {
    let listening = server().listen(memory::HTTP).await.unwrap();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let target = Target::url(listening.url()).unwrap();
        check(&messages_of_a_call(target, revision).await, revision);
    }
}
