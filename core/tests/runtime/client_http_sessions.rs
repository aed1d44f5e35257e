//! The sessions of a client over HTTP before 2026-07-28: their ids, their end, and new ones in their place.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    Client, Revision,
    client::{Event, Target},
    error::ErrorKind,
    protocol::Tool,
};
use serde_json::{Value, json};

use super::client_http_legacy::{connect, legacy};
use crate::support::http::{Answer, Mock, initialized};

#[tokio::test(start_paused = true)]
async fn session_management_the_id_goes_with_everything_after_initialize() {
    let mock = Mock::start(legacy).await;
    let client = connect(&mock).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2025_11_25);
    assert_eq!(client.session_id().as_deref(), Some("session-1"));
    client.call_tool("echo", json!({})).await.unwrap();
    client.close().await;
    assert_eq!(
        mock.methods(),
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "GET",
            "tools/call",
            "DELETE"
        ]
    );
    let seen = mock.seen();
    assert_eq!(seen[1].header("mcp-session-id"), None);
    assert_eq!(seen[1].header("mcp-protocol-version"), None);
    for request in &seen[2..] {
        assert_eq!(request.header("mcp-session-id"), Some("session-1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:?}");
        assert_eq!(request.header("mcp-method"), None);
    }
    assert_eq!(mock.requests("GET")[0].header("accept"), Some("text/event-stream"));
}

#[tokio::test(start_paused = true)]
async fn a_server_without_sessions_gets_no_session_id() {
    for refusal in [400, 404, 405] {
        let mock = Mock::start(move |request| match &*request.rpc() {
            "server/discover" => request.error(refusal, -32000, Value::Null),
            "initialize" => request.result(initialized("2025-06-18")),
            "GET" => Answer::empty(refusal),
            _ => legacy(request),
        })
        .await;
        let client = connect(&mock).await.unwrap();
        assert_eq!(client.session_id(), None);
        client.call_tool("echo", json!({})).await.unwrap();
        client.close().await;
        assert!(mock.requests("DELETE").is_empty());
        assert!(mock.seen().iter().all(|request| request.header("mcp-session-id").is_none()));
    }
}

/// Session Management: ids consist of visible ASCII.
#[tokio::test(start_paused = true)]
async fn an_invalid_session_id_is_not_sent_back() {
    for odd in ["", "session 1", "s\u{e9}ance"] {
        let mock = Mock::start(move |request| match &*request.rpc() {
            "initialize" => request.result(initialized("2025-11-25")).with("Mcp-Session-Id", odd),
            _ => legacy(request),
        })
        .await;
        let client = connect(&mock).await.unwrap();
        client.call_tool("echo", json!({})).await.unwrap();
        assert_eq!(mock.requests("tools/call")[0].header("mcp-session-id"), None, "{odd:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_is_replaced_and_rejected_requests_are_repeated() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sessions);
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "initialize" => {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let id = format!("session-{number}");
            request.result(initialized("2025-11-25")).with("Mcp-Session-Id", &id)
        }
        _ if gone.load(Ordering::SeqCst)
            && request.header("mcp-session-id") == Some("session-1") =>
        {
            request.error(404, -32001, Value::Null)
        }
        _ => legacy(request),
    })
    .await;
    let renewals = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&renewals);
    let target = Target::url(&mock.url).unwrap();
    let client = Client::builder(target)
        .on_event(move |event| {
            if matches!(event, Event::Reconnected { .. }) {
                told.fetch_add(1, Ordering::SeqCst);
            }
        })
        .connect()
        .await
        .unwrap();
    client.call_tool("echo", json!({})).await.unwrap();
    is_gone.store(true, Ordering::SeqCst);
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("echo", json!({})).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "done");
    }
    assert_eq!((sessions.load(Ordering::SeqCst), renewals.load(Ordering::SeqCst)), (2, 1));
    assert_eq!(client.session_id().as_deref(), Some("session-2"));
    let opened = &mock.requests("initialize")[1];
    assert_eq!(opened.header("mcp-session-id"), None);
    assert_eq!(mock.requests("notifications/initialized").len(), 2);
    assert_eq!(
        mock.requests("notifications/initialized")[1].header("mcp-session-id"),
        Some("session-2")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_session_is_given_up_after_one_retry() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "tools/call" => Answer::empty(404),
        _ => legacy(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let error = client.call_tool("echo", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost);
    assert!(error.to_string().contains("tools/call"), "{error}");
    assert!(error.to_string().contains("use sticky routing, or a single process"), "{error}");
    assert_eq!(mock.requests("tools/call").len(), 2);
    client.list::<Tool>().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn starting_a_new_session_is_tried_again_with_the_next_call() {
    let opened = AtomicUsize::new(0);
    let mock = Mock::start(move |request| match &*request.rpc() {
        "initialize" => match opened.fetch_add(1, Ordering::SeqCst) {
            0 => legacy(request),
            1 => Answer::text(503, "starting"),
            _ => request.result(initialized("2025-11-25")).with("Mcp-Session-Id", "session-3"),
        },
        "tools/call" if request.header("mcp-session-id") == Some("session-1") => Answer::empty(404),
        _ => legacy(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let error = client.call_tool("echo", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("starting"), "{error}");
    assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_close_that_the_server_does_not_answer_is_bounded() {
    let mock = Mock::start(|request| match &*request.rpc() {
        "DELETE" => Answer::empty(200).hold(),
        _ => legacy(request),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), client.close()).await.expect("it gives up");
    assert_eq!(mock.requests("DELETE").len(), 1);
}
