//! HTTP/2: streams, their limits, and the shutdown.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gudgeon::{Context, Listening, Server};
use h2::{
    Reason, RecvStream,
    client::{self, ResponseFuture, SendRequest},
};
use http::{Request, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::http_server::{call, calling, connect, message, read, read_all};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const KIB: usize = 1024;

/// A client whose connection runs in a task.
struct Peer {
    requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Peer {
    async fn new(listening: &Listening) -> Self {
        Self::with(listening, &client::Builder::new()).await
    }

    async fn with(listening: &Listening, builder: &client::Builder) -> Self {
        let (requests, connection) = builder.handshake(connect(listening)).await.unwrap();
        Self { requests, connection: tokio::spawn(connection) }
    }

    /// Sends a request. Returns its response.
    async fn send(&mut self, request: Request<()>, body: String) -> ResponseFuture {
        let mut ready = self.requests.clone().ready().await.unwrap();
        let (response, mut sending) = ready.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            sending.send_data(body.into(), true).unwrap();
        }
        response
    }

    async fn start(&mut self, tool: &str, id: u32) -> ResponseFuture {
        self.send(post("tools/call", tool).body(()).unwrap(), calling(tool, id)).await
    }

    async fn call(&mut self, tool: &str, id: u32) -> (StatusCode, String) {
        let response = self.start(tool, id).await;
        read_response(response).await
    }
}

fn post(method: &str, name: &str) -> http::request::Builder {
    let request = Request::post("http://127.0.0.1/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if name.is_empty() { request } else { request.header("mcp-name", name) }
}

async fn next(body: &mut RecvStream) -> Option<Result<String, h2::Error>> {
    let data = body.data().await?.map(|data| {
        body.flow_control().release_capacity(data.len()).unwrap();
        String::from_utf8(data.to_vec()).unwrap()
    });
    Some(data)
}

async fn read_response(response: ResponseFuture) -> (StatusCode, String) {
    let (head, mut body) = response.await.unwrap().into_parts();
    let mut text = String::new();
    while let Some(data) = next(&mut body).await {
        text += &data.unwrap();
    }
    (head.status, text)
}

async fn listen(server: Server) -> Arc<Listening> {
    Arc::new(server.listen("http://[::1]:0/mcp").await.unwrap())
}

fn adding() -> Server {
    Server::new("s").tool("one", || async { 1 })
}

/// A server with a tool that ends only when it is cancelled, and the events of its calls.
fn endless() -> (Server, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = adding().tool("endless", move |ctx: Context| {
        let sender = sender.clone();
        async move {
            let _ = sender.send("begun");
            let on_cancel = sender.clone();
            tokio::spawn(async move {
                ctx.cancelled().await;
                let _ = on_cancel.send("cancelled");
            });
            std::future::pending::<()>().await;
        }
    });
    (server, receiver)
}

#[tokio::test(start_paused = true)]
async fn many_calls_share_a_connection_and_each_gets_its_own_answer() {
    let server = Server::new("s").tool("which", |ctx: Context| async move {
        sleep(SECOND).await;
        ctx.headers().unwrap()["x-number"].to_str().unwrap().to_owned()
    });
    let listening = listen(server).await;
    let mut peer = Peer::new(&listening).await;
    let (mut responses, begun) = (Vec::new(), Instant::now());
    for id in 0..100 {
        let request = post("tools/call", "which").header("x-number", format!("no-{id}-"));
        responses.push(peer.send(request.body(()).unwrap(), calling("which", id)).await);
    }
    for (id, response) in responses.into_iter().enumerate() {
        let (status, text) = read_response(response).await;
        assert_eq!(status, 200);
        assert!(text.contains(&format!("no-{id}-")), "{text}");
    }
    assert!(begun.elapsed() < 2 * SECOND, "{:?}", begun.elapsed());
    assert_eq!(peer.requests.current_max_send_streams(), 128);
}

#[tokio::test(start_paused = true)]
async fn sessions_of_older_revisions_and_their_streams_work() {
    let listening = listen(adding()).await;
    let mut peer = Peer::new(&listening).await;
    let legacy = |builder: http::request::Builder| {
        builder
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    };
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let request = legacy(Request::post("http://127.0.0.1/mcp")).body(()).unwrap();
    let opened = peer.send(request, initialize.into()).await.await.unwrap();
    let session = opened.headers()["mcp-session-id"].clone();
    let of_session = |builder| {
        legacy(builder)
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-11-25")
            .body(())
            .unwrap()
    };
    let stream = peer.send(of_session(Request::get("http://127.0.0.1/mcp")), String::new()).await;
    let (head, _body) = stream.await.unwrap().into_parts();
    assert_eq!(head.headers["content-type"], "text/event-stream");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one"}}"#;
    let response = peer.send(of_session(Request::post("http://127.0.0.1/mcp")), call.into()).await;
    let (status, text) = read_response(response).await;
    assert!(status == 200 && text.contains(r#""id":2"#), "{text}");
    let ended = peer.send(of_session(Request::delete("http://127.0.0.1/mcp")), String::new()).await;
    assert_eq!(ended.await.unwrap().status(), 204);
}

#[tokio::test(start_paused = true)]
async fn the_authority_is_checked_as_the_host_is() {
    let listening = listen(adding()).await;
    let mut peer = Peer::new(&listening).await;
    for (url, host, status) in [
        ("http://localhost/mcp", None, 200),
        ("http://evil.example/mcp", None, 421),
        ("http://localhost/mcp", Some("evil.example"), 421),
        ("http://evil.example/mcp", Some("localhost"), 421),
    ] {
        let mut request = post("tools/call", "one").uri(url);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let response = peer.send(request.body(()).unwrap(), calling("one", 1)).await;
        assert_eq!(read_response(response).await.0, status, "{url} {host:?}");
    }
    for (method, uri) in [("CONNECT", "127.0.0.1:80"), ("OPTIONS", "http://127.0.0.1/mcp")] {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let status = peer.send(request, String::new()).await.await.unwrap().status();
        assert_eq!(status.as_u16(), if method == "CONNECT" { 404 } else { 204 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_cancels_its_call_and_no_other() {
    let (server, mut events) = endless();
    let listening = listen(server).await;
    let mut peer = Peer::new(&listening).await;
    let kept = peer.start("endless", 1).await;
    assert_eq!(events.recv().await, Some("begun"));
    let dropped = peer.start("endless", 2).await;
    assert_eq!(events.recv().await, Some("begun"));
    drop(dropped);
    assert_eq!(events.recv().await, Some("cancelled"));
    assert_eq!(peer.call("one", 3).await.0, 200);
    assert!(events.try_recv().is_err(), "the first call goes on");
    peer.connection.abort();
    assert_eq!(events.recv().await, Some("cancelled"));
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_lasts_until_its_stream_is_reset() {
    let listening = listen(adding()).await;
    let mut peer = Peer::new(&listening).await;
    let filter = r#""notifications":{"toolsListChanged":true},"#;
    let listens = message("subscriptions/listen", filter, 1);
    let request = post("subscriptions/listen", "").body(()).unwrap();
    let (_, mut body) = peer.send(request, listens).await.await.unwrap().into_parts();
    let first = next(&mut body).await.unwrap().unwrap();
    assert!(first.contains("acknowledged"), "{first}");
    // Comments keep it alive for longer than a connection may be idle.
    sleep(3 * MINUTE).await;
    assert_eq!(peer.call("one", 2).await.0, 200);
    let comment = next(&mut body).await.unwrap().unwrap();
    assert!(comment.starts_with(':'), "{comment}");
    drop(body);
    assert_eq!(peer.call("one", 3).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_ends_its_stream_only() {
    let server = adding().tool("much", || async { "x".repeat(1024 * KIB) });
    let listening = listen(server).await;
    let mut builder = client::Builder::new();
    builder.initial_window_size(64 * 1024 - 1).initial_connection_window_size(16 * 1024 * 1024);
    let mut peer = Peer::with(&listening, &builder).await;
    let (_, mut unread) = peer.start("much", 1).await.await.unwrap().into_parts();
    // Time for the first bytes counts as well.
    for id in 2..6 {
        assert_eq!(peer.call("one", id).await.0, 200);
        sleep(MINUTE).await;
    }
    let mut received = 0;
    let ended = loop {
        match unread.data().await {
            Some(Ok(data)) => received += data.len(),
            Some(Err(error)) => break error,
            None => panic!("the answer is complete"),
        }
    };
    assert_eq!(ended.reason(), Some(Reason::CANCEL));
    assert!(received < 64 * KIB, "{received}");
    let (status, text) = peer.call("much", 7).await;
    assert!(status == 200 && text.len() > 1024 * KIB, "{status}");
}

#[tokio::test(start_paused = true)]
async fn heads_bodies_and_idle_connections_have_the_limits_of_http_1() {
    let server = adding().options(|options| {
        options.http.body_timeout = SECOND;
        options.http.max_body = KIB;
        options.http.max_headers = 8 * KIB;
    });
    let listening = listen(server).await;
    let mut peer = Peer::new(&listening).await;
    assert_eq!(peer.call("one", 1).await.0, 200);
    let request = post("tools/call", "one").header("x-large", "x".repeat(9 * KIB));
    let response = peer.send(request.body(()).unwrap(), calling("one", 2)).await;
    assert_eq!(read_response(response).await.0, 431);
    let response =
        peer.send(post("tools/call", "one").body(()).unwrap(), "x".repeat(2 * KIB)).await;
    assert_eq!(read_response(response).await.0, 413);
    let mut ready = peer.requests.clone().ready().await.unwrap();
    let request = post("tools/call", "one").body(()).unwrap();
    let (response, _sending) = ready.send_request(request, false).unwrap();
    assert_eq!(read_response(response).await.0, 408);
    let (idle_since, Peer { requests, connection }) = (Instant::now(), peer);
    let _ = connection.await.unwrap();
    drop(requests);
    let idle = idle_since.elapsed();
    assert!((75 * SECOND..85 * SECOND).contains(&idle), "{idle:?}");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_not_read_yet_are_bounded() {
    let listening = listen(adding()).await;
    let mut peer = Peer::new(&listening).await;
    assert_eq!(peer.call("one", 1).await.0, 200);
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut ready = peer.requests.clone().ready().await.unwrap();
        let request = post("tools/call", "one").body(()).unwrap();
        let (response, mut sending) = ready.send_request(request, false).unwrap();
        sending.reserve_capacity(1024 * KIB);
        streams.push((response, sending));
        sleep(SECOND).await;
    }
    let rooms: Vec<_> = streams.iter().map(|(_, sending)| sending.capacity()).collect();
    assert!(rooms[0] == 128 * KIB && rooms[1] > 127 * KIB && rooms[2] == 0, "{rooms:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_takes_requests_back_is_closed() {
    let (server, mut events) = endless();
    let listening = listen(server).await;
    let mut peer = Peer::new(&listening).await;
    let mut taken_back = 0;
    for id in 0..1000 {
        // Answers make up for it.
        if id < 200 {
            assert_eq!(peer.call("one", id).await.0, 200);
        }
        let Ok(mut ready) = peer.requests.clone().ready().await else { break };
        let request = post("tools/call", "endless").body(()).unwrap();
        let Ok((response, mut sending)) = ready.send_request(request, false) else { break };
        if sending.send_data(calling("endless", id).into(), true).is_err() {
            break;
        }
        if events.recv().await != Some("begun") {
            break;
        }
        drop((response, sending));
        assert_eq!(events.recv().await, Some("cancelled"));
        taken_back += 1;
    }
    assert!((450..470).contains(&taken_back), "{taken_back}");
    assert_eq!(Peer::new(&listening).await.call("one", 1).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_ping_is_gone() {
    let (server, mut events) = endless();
    let listening = listen(server).await;
    let stream = connect(&listening);
    let (mut requests, connection) = client::handshake(stream).await.unwrap();
    let mut connection = Box::pin(connection);
    let request = post("tools/call", "endless").body(()).unwrap();
    let (_response, mut sending) = requests.send_request(request, false).unwrap();
    sending.send_data(calling("endless", 1).into(), true).unwrap();
    // The connection is polled until the call has begun, and then no more.
    tokio::select! {
        _ = &mut connection => panic!("the connection has ended"),
        begun = events.recv() => assert_eq!(begun, Some("begun")),
    }
    let cancelled = timeout(10 * MINUTE, events.recv()).await;
    assert_eq!(cancelled.expect("the server notices"), Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn the_preface_has_the_time_of_a_head() {
    let listening = listen(adding()).await;
    let mut stream = connect(&listening);
    stream.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    let begun = Instant::now();
    assert_eq!(read_all(&mut stream).await, "");
    assert!(begun.elapsed() < 15 * SECOND, "{:?}", begun.elapsed());
    // Behind a request it is none: a proxy may have passed it on.
    let mut stream = connect(&listening);
    stream.write_all(call("one", 1).as_bytes()).await.unwrap();
    assert!(read(&mut stream).await.starts_with("HTTP/1.1 200"));
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_connections_and_loses_no_request() {
    const DELAY: Duration = Duration::from_secs(5);
    let server = Server::new("s")
        .tool("slow", || async {
            sleep(2 * SECOND).await;
            1
        })
        .options(|options| options.http.drain_delay = DELAY);
    let listening = listen(server).await;
    let mut used = Peer::new(&listening).await;
    let mut idle = Peer::new(&listening).await;
    assert_eq!(idle.call("slow", 1).await.0, 200);
    let in_flight = used.start("slow", 2).await;
    sleep(SECOND / 2).await;
    let ending = Arc::clone(&listening);
    let ended = tokio::spawn(async move { ending.shut_down().await });
    // Sent before the client has read that the connection ends.
    let on_its_way = idle.start("slow", 3).await;
    let begun = Instant::now();
    assert_eq!(read_response(on_its_way).await.0, 200);
    assert_eq!(read_response(in_flight).await.0, 200);
    for peer in [used, idle] {
        peer.connection.await.unwrap().unwrap();
    }
    assert!(begun.elapsed() < DELAY, "{:?}", begun.elapsed());
    // A client that connects now is served once more.
    let mut fresh = Peer::new(&listening).await;
    assert_eq!(fresh.call("slow", 4).await.0, 200);
    fresh.connection.await.unwrap().unwrap();
    assert!(!ended.is_finished());
    ended.await.unwrap();
}
