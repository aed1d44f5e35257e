//! The client over HTTP+SSE, the transport of 2024-11-05.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use gudgeon::{
    Client, Revision, client::Target, error::ErrorKind, protocol::Tool,
    transport::memory_network::HOST,
};
use serde_json::{Value, json};

use crate::{
    client_http_legacy::{connect, legacy},
    support::http::{
        Answer, BodyStep, Mock, event, eventually, initialized, text_result, tool, tool_list,
    },
};

/// A server of 2024-11-05: what is sent is answered on the stream.
async fn sse_server(endpoint: &'static str) -> Mock {
    let waiting = Arc::new(Mutex::new(Vec::<Value>::new()));
    let listener = Arc::clone(&waiting);
    // The stream of the mock is scripted: it sends what `POST` left for it.
    Mock::start(move |request| match (&*request.method, &*request.path) {
        ("GET", "/sse") => Answer::events(vec![
            BodyStep::Bytes(format!("event: endpoint\ndata: {endpoint}\n\n")),
            BodyStep::Feed(Arc::clone(&listener)),
        ]),
        ("POST", "/sse") => Answer::text(405, "Method Not Allowed"),
        ("POST", "/messages?id=7") => {
            let result = match &*request.rpc() {
                "initialize" => initialized("2024-11-05"),
                "tools/list" => tool_list(&[tool("echo", json!({"type": "object"}))]),
                "tools/call" => text_result("by stream"),
                _ => return Answer::text(202, "Accepted"),
            };
            waiting.lock().unwrap().push(request.response(result));
            Answer::text(202, "Accepted")
        }
        _ => Answer::empty(404),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn backward_compatibility_a_server_of_2024_11_05_is_used_over_http_sse() {
    for endpoint in ["/messages?id=7", "messages?id=7"] {
        let mock = sse_server(endpoint).await;
        let target = Target::url(&format!("http://{HOST}:{}/sse", mock.port)).unwrap();
        let client = Client::connect(target).await.unwrap();
        assert_eq!(client.server().revision, Revision::V2024_11_05);
        assert_eq!(client.call_tool("echo", json!({})).await.unwrap().text(), "by stream");
        assert_eq!(client.list::<Tool>().await.unwrap().len(), 1);
        client.close().await;
        eventually(|| mock.dropped() == 1).await;
        let posts: Vec<_> = mock
            .seen()
            .into_iter()
            .filter(|request| request.method == "POST")
            .map(|request| request.path)
            .collect();
        assert_eq!(posts[..2], ["/sse", "/sse"]);
        assert!(posts[2..].iter().all(|path| path == "/messages?id=7"), "{posts:?}");
        assert!(mock.requests("DELETE").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_of_another_origin_is_not_used() {
    let thief = Mock::start(legacy).await;
    let endpoint = format!("http://localhost:{}/messages", thief.port);
    let mock = Mock::start(move |request| match &*request.method {
        "GET" => Answer::events(vec![
            BodyStep::Bytes(format!("event: endpoint\ndata: {endpoint}\n\n")),
            BodyStep::Hold,
        ]),
        _ => Answer::empty(405),
    })
    .await;
    let error = connect(&mock).await.unwrap_err();
    assert_eq!(error.http_status, Some(405));
    assert!(thief.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_http_sse_stream_is_a_lost_connection() {
    let connections = AtomicU32::new(0);
    let mock = Mock::start(move |request| match (&*request.method, &*request.rpc()) {
        ("GET", _) => {
            // The first connection begins with a probe, those after the loss with `initialize`.
            let id = if connections.fetch_add(1, Ordering::Relaxed) == 0 { 2 } else { 1 };
            let result = json!({"jsonrpc": "2.0", "id": id, "result": initialized("2024-11-05")});
            Answer::events(vec![
                BodyStep::Bytes("event: endpoint\ndata: /messages\n\n".into()),
                BodyStep::Wait(100),
                event(&result),
                BodyStep::Wait(1000),
                BodyStep::Break,
            ])
        }
        ("POST", _) if request.path == "/messages" => Answer::empty(202),
        _ => Answer::empty(405),
    })
    .await;
    let client = connect(&mock).await.unwrap();
    let error = client.list::<Tool>().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost);
    assert!(error.to_string().contains("stream of events"), "{error}");
}
