//! Gudgeon's client and server over every transport, in every revision.

use std::time::Duration;

use gudgeon::{
    Client, Context, Revision, Server, client::Target, error::ErrorKind, protocol::Tool,
};
use serde_json::json;

use crate::support::memory::{self, reserve_url};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    a: i64,
    b: i64,
}

fn server() -> Server {
    Server::new("shelf")
        .tool("add", |Args { a, b }: Args| async move { Ok(a + b) })
        .tool("count", |ctx: Context| async move {
            for step in 1..=3 {
                ctx.progress(f64::from(step), Some(3.0), None);
            }
            Ok("counted")
        })
        .tool("sleep", |_: Context| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok("awake")
        })
        .options(|options| options.http.legacy_sse = true)
}

/// Everything that a client does, over one connection.
async fn exercise(url: &str, revision: Revision) {
    let steps = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&steps);
    let client = Client::builder(Target::url(url).unwrap())
        .options(|options| options.revisions = vec![revision])
        .on_progress(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        })
        .connect()
        .await
        .unwrap_or_else(|error| panic!("{url} {revision}: {error}"));
    assert_eq!(client.server().revision, revision);
    assert_eq!(client.list::<Tool>().await.unwrap().len(), 3);
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let sum = client.call_tool("add", json!({"a": n, "b": 1})).await.unwrap();
                assert_eq!(sum.text(), (n + 1).to_string());
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(client.call_tool("count", json!({})).await.unwrap().text(), "counted");
    assert_eq!(steps.load(std::sync::atomic::Ordering::Relaxed), 3, "{url} {revision}");
    let wrong = client.call_tool("nope", json!({})).await.unwrap_err();
    assert!(matches!(wrong.kind, ErrorKind::Protocol | ErrorKind::Tool), "{wrong}");
    let hangs = client.call_tool("sleep", json!({}));
    tokio::time::timeout(Duration::from_millis(50), hangs).await.unwrap_err();
    client.ping().await.unwrap();
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn http_and_websocket_serve_every_revision_at_one_address() {
    let listening = server().listen(memory::HTTP).await.unwrap();
    let url = listening.url().to_owned();
    for revision in Revision::ALL {
        exercise(&url, revision).await;
        exercise(&url.replacen("http", "ws", 1), revision).await;
    }
    let client = Client::connect(Target::url(&url).unwrap()).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2026_07_28);
    assert_eq!(client.session_id(), None);
    let client = Client::builder(Target::url(&url).unwrap())
        .options(|options| options.revisions = vec![Revision::V2025_11_25]);
    assert!(client.connect().await.unwrap().session_id().is_some());
    listening.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn http_sse_serves_every_legacy_revision() {
    let listening = server().listen(memory::HTTP).await.unwrap();
    let url = listening.url().replacen("/mcp", "/sse", 1);
    for revision in Revision::ALL.into_iter().filter(|revision| *revision != Revision::V2026_07_28)
    {
        exercise(&url, revision).await;
    }
    listening.shut_down().await;
}

#[tokio::test]
async fn tcp_and_unix_sockets_serve_every_revision() {
    let path = std::env::temp_dir().join(format!("gudgeon-listen-{}.sock", std::process::id()));
    let unix = format!("unix:{}", path.display());
    for at in ["tcp://127.0.0.1:0", &*unix] {
        let listening = server().listen(at).await.unwrap();
        for revision in Revision::ALL {
            exercise(listening.url(), revision).await;
        }
        listening.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_outlives_a_server_that_is_started_again() {
    let url = reserve_url();
    let listening = server().listen(&url).await.unwrap();
    let connect = async |revision| {
        Client::builder(Target::url(&url).unwrap())
            .options(|options| options.revisions = vec![revision])
            .connect()
            .await
            .unwrap()
    };
    let modern = connect(Revision::V2026_07_28).await;
    let legacy = connect(Revision::V2025_11_25).await;
    let before = legacy.session_id().unwrap();
    for client in [&modern, &legacy] {
        client.call_tool("add", json!({"a": 1, "b": 1})).await.unwrap();
    }
    listening.shut_down().await;
    for client in [&modern, &legacy] {
        let error = client.call_tool("add", json!({"a": 1, "b": 1})).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect, "{error}");
    }
    let again = server().listen(&url).await.unwrap();
    for client in [&modern, &legacy] {
        let sum = client.call_tool("add", json!({"a": 1, "b": 1})).await.unwrap();
        assert_eq!(sum.text(), "2");
    }
    assert_ne!(legacy.session_id().unwrap(), before);
    again.shut_down().await;
}
