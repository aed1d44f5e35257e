//! The hooks at start and shutdown, however a server is served, and servers in tasks of their own.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

use std::sync::{Arc, Mutex};

use gudgeon::{Client, Server, ToolError, client::TestServer, error::ErrorKind};
use serde_json::json;
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::support::{duplex::Peer, memory};

/// The names of the hooks that ran, in order.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn note(&self, name: &'static str) {
        self.0.lock().unwrap().push(name);
    }

    /// Returns what was noted since the last time.
    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// A server that notes its hooks and the calls of its tool.
    fn server(&self) -> Server {
        let (start, shutdown, tool) = (self.clone(), self.clone(), self.clone());
        Server::new("shelf")
            .on_start(move || async move {
                // Whoever does not wait for the hook is faster.
                tokio::task::yield_now().await;
                start.note("start");
                Ok(())
            })
            .on_shutdown(move || async move {
                tokio::task::yield_now().await;
                shutdown.note("shutdown");
            })
            .tool("open", move || {
                tool.note("call");
                std::future::ready("open")
            })
    }
}

/// Calls the tool by a client, which is closed again.
async fn call(client: Client) {
    client.call_tool("open", ()).await.unwrap();
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_run_around_streams() {
    let log = Log::default();
    let server = log.server();
    for _ in 0..2 {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let serving = tokio::spawn(server.serve(reader, writer));
        let (input, output) = tokio::io::split(ours);
        let target = gudgeon::client::Target::stream(input, output);
        call(Client::connect(target).await.unwrap()).await;
        serving.await.unwrap();
        assert_eq!(log.take(), ["start", "call", "shutdown"]);
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_run_around_everything_that_is_served_at_the_same_time() {
    let log = Log::default();
    let server = log.server();
    let listening = server.listen(memory::HTTP).await.unwrap();
    let mut peer = Peer::legacy(&server).await;
    call(Client::connect(&server).await.unwrap()).await;
    let url = gudgeon::client::Target::url(listening.url()).unwrap();
    call(Client::connect(url).await.unwrap()).await;
    listening.shut_down().await;
    peer.request("tools/call", json!({"name": "open"})).await;
    assert_eq!(log.take(), ["start", "call", "call", "call"]);
    peer.close().await;
    assert_eq!(log.take(), ["shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_run_around_a_listening_server() {
    let log = Log::default();
    let listening = log.server().listen(memory::HTTP).await.unwrap();
    assert_eq!(log.take(), ["start"]);
    listening.shut_down().await;
    listening.shut_down().await;
    assert_eq!(log.take(), ["shutdown"]);
    drop(log.server().listen(memory::HTTP).await.unwrap());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(log.take(), ["start", "shutdown"]);
    log.server().listen("http://unknown.invalid:0/mcp").await.unwrap_err();
    assert_eq!(log.take(), ["start", "shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn hooks_run_around_a_service() {
    let log = Log::default();
    let mut service = log.server().into_service();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "open", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let request = http::Request::post("http://127.0.0.1/mcp")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "open")
        .body(body.to_string())
        .unwrap();
    assert_eq!(service.call(request).await.unwrap().status(), 200);
    assert_eq!(log.take(), ["start", "call"]);
    service.shut_down().await;
    service.shut_down().await;
    assert_eq!(log.take(), ["shutdown"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_is_healthy_while_its_hooks_run_and_ready_once_they_have() {
    let go_on = Arc::new(tokio::sync::Notify::new());
    let waiting = Arc::clone(&go_on);
    let server = Server::new("shelf")
        .options(|options| {
            options.http.health = Some("/healthz".into());
            options.http.ready = Some("/readyz".into());
        })
        .on_start(move || async move {
            waiting.notified().await;
            Ok(())
        });
    let mut service = server.into_service();
    assert_eq!(service.routes("/mcp")[..3], ["/mcp", "/healthz", "/readyz"]);
    let mut ask = async |path: &str| {
        let request = http::Request::get(format!("http://10.0.0.7/mcp{path}"));
        service.call(request.body(String::new()).unwrap()).await.unwrap().status().as_u16()
    };
    assert_eq!([ask("/healthz").await, ask("/readyz").await], [200, 503]);
    go_on.notify_one();
    // It waits for the hook.
    assert_eq!(ask("").await, 421);
    assert_eq!([ask("/healthz").await, ask("/readyz").await], [200, 200]);
    service.shut_down().await;
    let request = http::Request::get("/readyz").body(String::new()).unwrap();
    assert_eq!(service.call(request).await.unwrap().status(), 503);
}

#[tokio::test(start_paused = true)]
async fn hooks_run_around_clients_in_memory() {
    let log = Log::default();
    let server = log.server();
    call(Client::connect(TestServer::from(&server)).await.unwrap()).await;
    call(Client::connect(Arc::new(server)).await.unwrap()).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let noted = log.take();
    assert_eq!(noted.iter().filter(|name| **name == "start").count(), 2, "{noted:?}");
    assert_eq!(noted.iter().filter(|name| **name == "shutdown").count(), 2, "{noted:?}");
    assert_eq!((noted[0], noted[noted.len() - 1]), ("start", "shutdown"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_is_reported_to_whoever_serves() {
    let server =
        Server::new("shelf").on_start(|| async { Err::<(), _>(ToolError::new("no database")) });
    let failed = server.listen(memory::HTTP).await.unwrap_err();
    assert_eq!(failed.to_string(), "on_start failed: no database");
    for target in [gudgeon::client::Target::from(&server), TestServer::from(&server).into()] {
        let failed = Client::connect(target).await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Connect);
        assert!(failed.message.contains("on_start failed: no database"), "{failed}");
    }
    let request = http::Request::get("http://127.0.0.1/mcp").body(String::new()).unwrap();
    assert_eq!(server.into_service().call(request).await.unwrap().status(), 503);
}

#[tokio::test(start_paused = true)]
async fn every_way_of_serving_runs_in_a_task() {
    let log = Log::default();
    let server = Arc::new(log.server());
    let mut tasks = JoinSet::new();
    tasks.spawn(async { drop(Server::new("s").run("http://unknown.invalid:0/mcp").await) });
    let own = Arc::clone(&server);
    tasks.spawn(async move { own.listen(memory::HTTP).await.unwrap().shut_down().await });
    let own = Arc::clone(&server);
    tasks.spawn(async move { call(Client::connect(&own).await.unwrap()).await });
    let own = Arc::clone(&server);
    tasks.spawn(async move { call(Client::connect(&*own).await.unwrap()).await });
    let own = Arc::clone(&server);
    tasks.spawn(async move {
        let (ours, theirs) = tokio::io::duplex(1024);
        drop(ours);
        let (reader, writer) = tokio::io::split(theirs);
        own.serve(reader, writer).await;
    });
    tasks.join_all().await;
}
