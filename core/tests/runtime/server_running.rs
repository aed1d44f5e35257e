//! Running handlers: progress, logs, cancellation, panics, timeouts, limits, blocking, and shutdown.
#![allow(clippy::unwrap_used, clippy::manual_assert)] // a panic is how a test fails

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{Context, List, LoggingLevel, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::support::duplex::Peer;

/// Reports its drop.
struct Witness(mpsc::UnboundedSender<&'static str>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// A tool that never ends, and what becomes of its calls.
fn endless() -> (Server, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let tool = move |ctx: Context| {
        let witness = Witness(sender.clone());
        async move {
            let spawned = witness.0.clone();
            tokio::spawn(async move {
                ctx.cancelled().await;
                let _ = spawned.send("cancelled");
            });
            let _ = witness.0.send("begun");
            std::future::pending::<()>().await;
        }
    };
    (
        Server::new("endless")
            .add(Tool::new("endless", tool))
            .options(|options| options.grace = Duration::ZERO),
        receiver,
    )
}

async fn next_two(receiver: &mut mpsc::UnboundedReceiver<&'static str>) -> [&'static str; 2] {
    let mut both = [receiver.recv().await.unwrap(), receiver.recv().await.unwrap()];
    both.sort_unstable();
    both
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_go_out_while_the_handler_runs() {
    let go_on = Arc::new(Notify::new());
    let waits = Arc::clone(&go_on);
    let server = Server::new("s").tool("work", move |ctx: Context| {
        let go_on = Arc::clone(&waits);
        async move {
            ctx.progress(1.0, Some(2.0), "half");
            ctx.log(LoggingLevel::Debug, None, "quiet");
            ctx.log(LoggingLevel::Warning, None, json!({"low": true}));
            go_on.notified().await;
            ctx.progress(2.0, Some(2.0), format!("{} of 2", 2));
        }
    });
    let mut peer = Peer::legacy(&server).await;
    peer.request("logging/setLevel", json!({"level": "info"})).await;
    let id = peer.ask("tools/call", json!({"name": "work", "_meta": {"progressToken": "p"}})).await;
    let half = peer.receive().await;
    assert_eq!(half["method"], "notifications/progress");
    assert_eq!(
        half["params"],
        json!({"progressToken": "p", "progress": 1, "total": 2, "message": "half"})
    );
    assert_eq!(peer.receive().await["params"], json!({"level": "warning", "data": {"low": true}}));
    go_on.notify_one();
    assert_eq!(peer.receive().await["params"]["message"], "2 of 2");
    assert_eq!(peer.receive().await["id"], id);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_dropped_and_gets_no_reply() {
    let (server, mut receiver) = endless();
    let mut peer = Peer::legacy(&server).await;
    let id = peer.ask("tools/call", json!({"name": "endless"})).await;
    assert_eq!(receiver.recv().await, Some("begun"));
    peer.notify("notifications/cancelled", json!({"requestId": id})).await;
    assert_eq!(next_two(&mut receiver).await, ["cancelled", "dropped"]);
    let ping = peer.ask("ping", json!({})).await;
    assert_eq!(peer.receive().await["id"], ping);
}

#[tokio::test(start_paused = true)]
async fn a_call_given_up_in_the_same_batch_never_starts() {
    let (server, mut receiver) = endless();
    let mut peer = Peer::legacy(&server).await;
    let call =
        json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "endless"}});
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}});
    // One write, so that both arrive at once.
    peer.send_text(&format!("{call}\n{cancel}\n")).await;
    peer.request("ping", json!({})).await;
    assert!(receiver.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_its_calls() {
    let (server, mut receiver) = endless();
    let mut peer = Peer::legacy(&server).await;
    peer.ask("tools/call", json!({"name": "endless"})).await;
    assert_eq!(receiver.recv().await, Some("begun"));
    assert!(peer.close().await.is_empty());
    assert_eq!(next_two(&mut receiver).await, ["cancelled", "dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_result_and_does_not_delay_shutdown() {
    let server =
        Server::new("s").tool("t", || async {}).options(|options| options.grace = Duration::MAX);
    let mut peer = Peer::new(&server);
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let id = peer.ask("subscriptions/listen", params).await;
    assert_eq!(peer.receive().await["method"], "notifications/subscriptions/acknowledged");
    let said = peer.close().await;
    assert_eq!(said.len(), 1);
    assert_eq!(
        (&said[0]["id"], &said[0]["result"]["resultType"]),
        (&json!(id), &json!("complete"))
    );
}

#[tokio::test(start_paused = true)]
async fn pending_calls_are_answered_at_the_end() {
    let server = Server::new("s").tool("nap", || async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        "rested"
    });
    let mut peer = Peer::legacy(&server).await;
    let id = peer.ask("tools/call", json!({"name": "nap"})).await;
    let said = peer.close().await;
    assert_eq!(said.len(), 1);
    assert_eq!(
        (&said[0]["id"], &said[0]["result"]["content"][0]["text"]),
        (&json!(id), &json!("rested"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_one_answer_and_no_more() {
    let server = Server::new("s")
        .tool("at_once", || async {
            if true {
                panic!("secret {}", 1);
            }
        })
        .tool("later", || async {
            tokio::task::yield_now().await;
            if true {
                panic!("secret");
            }
        })
        .tool("fine", || async { "fine" });
    let mut peer = Peer::legacy(&server).await;
    for tool in ["at_once", "later"] {
        let result = peer.call(tool, json!({})).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(result["isError"], true);
        assert!(text.contains("panic (reference") && !text.contains("secret"), "{text}");
    }
    assert_eq!(peer.call("fine", json!({})).await["content"][0]["text"], "fine");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_answers_and_stops_the_handler() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let tool = move || {
        let witness = Witness(sender.clone());
        async move {
            let _held = witness;
            std::future::pending::<()>().await;
        }
    };
    let server = Server::new("s").add(Tool::new("slow", tool).timeout(Duration::from_millis(30)));
    let mut peer = Peer::legacy(&server).await;
    let result = peer.call("slow", json!({})).await;
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("longer than its 0.03 s"));
    assert_eq!(receiver.recv().await, Some("dropped"));
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_at_once_than_the_tool_allows() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tool = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move || {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                now.fetch_sub(1, Ordering::SeqCst);
            }
        }
    };
    let server = Server::new("s").add(Tool::new("narrow", tool).concurrency(2));
    let mut peer = Peer::legacy(&server).await;
    for _ in 0..10 {
        peer.ask("tools/call", json!({"name": "narrow"})).await;
    }
    for _ in 0..10 {
        assert_eq!(peer.receive().await["result"]["content"], json!([]));
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_known_to_block_does_not_stall_others() {
    let (go, gate) = std::sync::mpsc::channel();
    let gate = Arc::new(Mutex::new(gate));
    let block = move || {
        let gate = Arc::clone(&gate);
        async move {
            // Long enough to be known to block.
            std::thread::sleep(Duration::from_millis(100));
            gate.lock().unwrap().recv_timeout(Duration::from_secs(20)).expect("it is let go");
            "blocked"
        }
    };
    let server = Server::new("s").tool("block", block).tool("quick", || async { "quick" });
    let mut peer = Peer::legacy(&server).await;
    go.send(()).unwrap();
    let first = peer.ask("tools/call", json!({"name": "block"})).await;
    assert_eq!(peer.receive().await["id"], first);
    let blocked = peer.ask("tools/call", json!({"name": "block"})).await;
    for _ in 0..20 {
        peer.ask("tools/call", json!({"name": "quick"})).await;
        assert_ne!(peer.receive().await["id"], blocked);
    }
    go.send(()).unwrap();
    assert_eq!(peer.receive().await["id"], blocked);
}

#[tokio::test(start_paused = true)]
async fn changes_at_run_time_are_notified_and_visible() {
    let server = Server::new("s")
        .tool("old", || async { "old" })
        .add(Tool::new("extra", || async { "extra" }).tags(["more"]).enabled(false));
    let mut peer = Peer::legacy(&server).await;
    peer.request("ping", json!({})).await;
    let registry = server.registry();
    registry.add(Tool::new("new", || async { Err::<(), _>(ToolError::new("new")) })).unwrap();
    assert_eq!(peer.receive().await["method"], "notifications/tools/list_changed");
    assert_eq!(peer.call("new", json!({})).await["isError"], true);
    registry.update(List::Tools, "old", json!({"description": "Old."})).unwrap();
    assert_eq!(peer.listed("old").await["description"], "Old.");
    registry.set_tag_enabled(List::Tools, "more", true).unwrap();
    assert_eq!(peer.call("extra", json!({})).await["content"][0]["text"], "extra");
    registry.set_enabled(List::Tools, ["extra"], false).unwrap();
    assert_eq!(peer.listed("extra").await, Value::Null);
    registry.set_enabled(List::Tools, ["extra"], true).unwrap();
    registry.remove(List::Tools, "old").unwrap();
    assert!(registry.remove(List::Tools, "old").is_err());
    let gone = peer.request("tools/call", json!({"name": "old"})).await;
    assert_eq!(gone["error"]["code"], -32602);
    let names: Vec<_> = peer.request("tools/list", json!({})).await["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["extra", "new"]);
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_one_server_and_one_modern_request() {
    let server = Server::new("s")
        .tool("who", |ctx: Context| async move { ctx.request().revision.to_string() });
    let (mut legacy, mut modern) = (Peer::legacy(&server).await, Peer::new(&server));
    assert_eq!(legacy.call("who", json!({})).await["content"][0]["text"], "2025-11-25");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "m", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let reply =
        modern.request("tools/call", json!({"name": "who", "arguments": {}, "_meta": meta})).await;
    assert_eq!(reply["result"]["structuredContent"], "2026-07-28");
}
