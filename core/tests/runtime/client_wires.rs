//! The client over WebSocket, TCP, Unix sockets and a user-defined transport.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use gudgeon::{
    Client, Revision, Server,
    client::Target,
    error::{Error, ErrorKind},
    protocol::Tool,
    transport::{
        Transport,
        memory_network::{HOST, MemoryListener},
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::{Mutex, mpsc},
};
use tokio_tungstenite::{
    accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

fn server() -> Server {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        a: i64,
        b: i64,
    }
    Server::new("shelf").tool("add", |Args { a, b }: Args| async move { Ok(a + b) })
}

async fn add(client: &Client) -> i64 {
    client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap().data().unwrap()
}

#[tokio::test(start_paused = true)]
async fn tcp_carries_one_message_a_line() {
    let listener = MemoryListener::bind(0).unwrap();
    let url = format!("tcp://{HOST}:{}", listener.port());
    tokio::spawn(async move {
        let stream = listener.accept().await;
        let (input, output) = tokio::io::split(stream);
        server().serve(input, output).await;
    });
    let client = Client::connect(Target::url(&url).unwrap()).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2026_07_28);
    assert_eq!(add(&client).await, 3);
    client.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_carries_one_message_a_line() {
    let path = std::env::temp_dir().join(format!("gudgeon-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (input, output) = stream.into_split();
        server().serve(input, output).await;
    });
    let url = format!("unix:{}", path.display());
    let client = Client::connect(url.parse::<Target>().unwrap()).await.unwrap();
    assert_eq!(add(&client).await, 3);
    client.close().await;
    std::fs::remove_file(&path).unwrap();
    let error = Client::connect(Target::url(&url).unwrap()).await.unwrap_err();
    assert_eq!((error.kind, error.phase), (ErrorKind::Connect, Some("connect")));
    assert!(error.to_string().contains("the socket does not exist"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_closes_at_the_probe_is_reopened_for_initialize() {
    let listener = MemoryListener::bind(0).unwrap();
    let url = format!("tcp://{HOST}:{}", listener.port());
    tokio::spawn(async move {
        let mut stream = listener.accept().await;
        let mut bytes = vec![0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(String::from_utf8_lossy(&bytes[..read]).contains("server/discover"));
        drop(stream);
        let stream = listener.accept().await;
        let (input, output) = tokio::io::split(stream);
        server().serve(input, output).await;
    });
    let client = Client::connect(Target::url(&url).unwrap()).await.unwrap();
    assert_eq!(client.server().revision, Revision::V2025_11_25);
    assert_eq!(add(&client).await, 3);
}

/// Serves one WebSocket from a server that speaks lines.
async fn websocket(stream: DuplexStream, confirms: bool) {
    let check = move |request: &Request, mut response: Response| {
        assert_eq!(request.uri().path(), "/mcp");
        let asked = request.headers().get("sec-websocket-protocol").cloned();
        if let Some(asked) = asked.filter(|_| confirms) {
            assert_eq!(asked, "mcp");
            assert_eq!(request.headers()["authorization"], "Bearer secret");
            response.headers_mut().insert("sec-websocket-protocol", asked);
        }
        Ok::<_, ErrorResponse>(response)
    };
    let Ok(socket) = accept_hdr_async(stream, check).await else { return };
    let (mut output, mut input) = socket.split();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(server().serve(read, write));
    let (mut lines_in, mut lines_out) = tokio::io::split(ours);
    tokio::spawn(async move {
        let mut held = String::new();
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = lines_in.read(&mut bytes).await {
            held.push_str(&String::from_utf8_lossy(&bytes[..read]));
            while let Some(end) = held.find('\n') {
                let line: String = held.drain(..=end).collect();
                if output.send(Message::text(line.trim_end())).await.is_err() {
                    return;
                }
            }
        }
        let _ = output.close().await;
    });
    while let Some(Ok(message)) = input.next().await {
        if let Message::Text(text) = message {
            assert!(!text.contains('\n'));
            lines_out.write_all(format!("{text}\n").as_bytes()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_websocket_carries_one_message_a_frame() {
    for confirms in [true, false] {
        let listener = MemoryListener::bind(0).unwrap();
        let url = format!("ws://{HOST}:{}/mcp", listener.port());
        tokio::spawn(async move {
            loop {
                tokio::spawn(websocket(listener.accept().await, confirms));
            }
        });
        let client = Client::builder(Target::url(&url).unwrap())
            .options(|options| {
                options.headers = vec![("Authorization".into(), "Bearer secret".into())];
            })
            .connect()
            .await
            .unwrap();
        assert_eq!(client.server().revision, Revision::V2026_07_28);
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { add(&client).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap(), 3);
        }
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_websocket_that_is_refused_says_how() {
    let listener = MemoryListener::bind(0).unwrap();
    let url = format!("ws://{HOST}:{}/mcp", listener.port());
    tokio::spawn(async move {
        for status in ["404 Not Found", "401 Unauthorized"] {
            let mut stream = listener.accept().await;
            let mut bytes = vec![0; 4096];
            let _ = stream.read(&mut bytes).await.unwrap();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\ngone");
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let error = Client::connect(Target::url(&url).unwrap()).await.unwrap_err();
    assert_eq!((error.kind, error.http_status), (ErrorKind::Connect, Some(404)));
    assert!(error.to_string().starts_with(&format!("{url}: HTTP 404 Not Found")), "{error}");
    let error = Client::connect(Target::url(&url).unwrap()).await.unwrap_err();
    assert_eq!((error.kind, error.http_status), (ErrorKind::Auth, Some(401)));
}

#[tokio::test(start_paused = true)]
async fn a_websocket_with_an_extension_that_was_not_offered_is_refused() {
    let listener = MemoryListener::bind(0).unwrap();
    let url = format!("ws://{HOST}:{}/mcp", listener.port());
    tokio::spawn(async move {
        let stream = listener.accept().await;
        let compress = |request: &Request, mut response: Response| {
            assert_eq!(request.headers().get("sec-websocket-extensions"), None);
            let headers = response.headers_mut();
            headers.insert("sec-websocket-protocol", "mcp".parse().unwrap());
            headers.insert("sec-websocket-extensions", "permessage-deflate".parse().unwrap());
            Ok::<_, ErrorResponse>(response)
        };
        let mut socket = accept_hdr_async(stream, compress).await.unwrap();
        while socket.next().await.is_some() {}
    });
    let builder = Client::builder(Target::url(&url).unwrap())
        .options(|options| options.timeout = Some(Duration::from_secs(5)));
    let error = builder.connect().await.unwrap_err();
    assert_eq!((error.kind, error.phase), (ErrorKind::Connect, Some("connect")), "{error}");
    assert!(error.to_string().contains("extension \"permessage-deflate\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_websocket_message_over_the_limit_ends_the_connection() {
    let listener = MemoryListener::bind(0).unwrap();
    let url = format!("ws://{HOST}:{}/mcp", listener.port());
    tokio::spawn(async move {
        // A socket that does not confirm the subprotocol is asked for once more, without.
        let first = listener.accept().await;
        drop(tokio_tungstenite::accept_async(first).await);
        let stream = listener.accept().await;
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let _ = socket.next().await;
        let discovery = json!({"jsonrpc": "2.0", "id": 1, "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}});
        socket.send(Message::text(discovery.to_string())).await.unwrap();
        let _ = socket.next().await;
        let _ = socket.send(Message::text("x".repeat(50_000))).await;
        let _ = socket.next().await;
    });
    let target = Target::url(&url).unwrap();
    let client = Client::builder(target)
        .options(|options| options.max_message = 10_000)
        .connect()
        .await
        .unwrap();
    let error = client.list::<Tool>().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol);
    assert!(error.to_string().contains("longer than 10000 bytes"), "{error}");
    assert!(error.to_string().contains("max_message"), "{error}");
    let error = client.ping().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect, "it is opened again: {error}");
}

/// A wire that answers by itself.
struct Own {
    sent: mpsc::UnboundedSender<Vec<u8>>,
    answers: Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
    is_closed: Arc<AtomicBool>,
}

impl Transport for Own {
    async fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.answers.lock().await.recv().await)
    }

    async fn send(&self, message: Vec<u8>) -> io::Result<()> {
        self.sent.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

fn own() -> (Own, mpsc::UnboundedReceiver<Vec<u8>>, mpsc::UnboundedSender<Vec<u8>>) {
    let (sent, requests) = mpsc::unbounded_channel();
    let (answer, answers) = mpsc::unbounded_channel();
    let is_closed = Arc::new(AtomicBool::new(false));
    (Own { sent, answers: Mutex::new(answers), is_closed }, requests, answer)
}

#[tokio::test(start_paused = true)]
async fn a_custom_transport_carries_whole_messages_and_is_closed() {
    let (wire, mut requests, answer) = own();
    let is_closed = Arc::clone(&wire.is_closed);
    tokio::spawn(async move {
        while let Some(request) = requests.recv().await {
            let request: Value = serde_json::from_slice(&request).unwrap();
            let result = match request["method"].as_str().unwrap() {
                "server/discover" => {
                    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}}})
                }
                _ => json!({"resultType": "complete", "tools": [{"name": "a", "inputSchema": {}}]}),
            };
            let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            answer.send(reply.to_string().into_bytes()).unwrap();
        }
    });
    let client = Client::connect(wire).await.unwrap();
    assert_eq!(client.list::<Tool>().await.unwrap()[0].name, "a");
    client.close().await;
    assert!(is_closed.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_custom_transport_serves_both_eras_and_is_closed() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let (wire, requests, answer) = own();
        let (other, answers, request) = own();
        let closed = Arc::clone(&wire.is_closed);
        carry(requests, request);
        carry(answers, answer);
        let serving = tokio::spawn(server().serve_transport(wire));
        let client = Client::builder(other)
            .options(|options| options.revisions = vec![revision])
            .connect()
            .await
            .unwrap();
        assert_eq!(add(&client).await, 3);
        client.close().await;
        serving.await.unwrap().unwrap();
        assert!(closed.load(Ordering::SeqCst));
    }
}

/// Two connected ends; each receives what the other sends, until that is dropped.
fn carry(mut from: mpsc::UnboundedReceiver<Vec<u8>>, to: mpsc::UnboundedSender<Vec<u8>>) {
    tokio::spawn(async move {
        while let Some(message) = from.recv().await {
            let _ = to.send(message);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_custom_transport_over_the_limit_is_refused() {
    let (wire, mut answers, request) = own();
    let serving =
        tokio::spawn(server().options(|options| options.max_message = 1000).serve_transport(wire));
    for (message, problem) in [("x".repeat(2000), "1000 bytes"), ("{}".to_owned(), "jsonrpc")] {
        request.send(message.into_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&answers.recv().await.unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], -32600);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(problem), "{message}");
    }
    drop(request);
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_answers_pending_calls_when_its_transport_ends_and_stops_when_it_fails() {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    for (breaks, time) in [(false, Duration::from_millis(100)), (true, Duration::from_secs(3600))] {
        let finished = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&finished);
        let server = Server::new("slow").tool("slow", move || {
            let seen = Arc::clone(&seen);
            async move {
                tokio::time::sleep(time).await;
                seen.store(true, Ordering::SeqCst);
                "done"
            }
        });
        let (wire, mut answers, request) = own();
        let closed = Arc::clone(&wire.is_closed);
        let serving = tokio::spawn(server.serve_transport(wire));
        request.send(call.to_string().into_bytes()).unwrap();
        if breaks {
            // Sending to it fails from then on.
            answers.close();
            request.send(b"{}".to_vec()).unwrap();
        } else {
            drop(request);
            let answer: Value = serde_json::from_slice(&answers.recv().await.unwrap()).unwrap();
            assert_eq!(answer["result"]["structuredContent"], "done");
        }
        let outcome = serving.await.unwrap();
        assert!(closed.load(Ordering::SeqCst));
        assert_eq!(outcome.is_err(), breaks, "{outcome:?}");
        assert_eq!(finished.load(Ordering::SeqCst), !breaks);
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_failure_is_the_error_of_serving_it() {
    struct Broken(Arc<AtomicBool>);

    impl Transport for Broken {
        async fn receive(&self) -> io::Result<Option<Vec<u8>>> {
            Err(io::Error::other("the cable is cut"))
        }

        async fn send(&self, _: Vec<u8>) -> io::Result<()> {
            Ok(())
        }

        async fn close(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    let is_closed = Arc::new(AtomicBool::new(false));
    let error = server().serve_transport(Broken(Arc::clone(&is_closed))).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost);
    assert!(error.to_string().contains("the transport failed: the cable is cut"), "{error}");
    assert!(is_closed.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_custom_transport_is_a_lost_connection() {
    let (wire, mut requests, answer) = own();
    tokio::spawn(async move {
        let _ = requests.recv().await;
        let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}});
        answer.send(reply.to_string().into_bytes()).unwrap();
        let _ = requests.recv().await;
        drop(answer);
        tokio::time::sleep(Duration::from_secs(5)).await;
    });
    let client = Client::connect(wire).await.unwrap();
    let error: Error = client.list::<Tool>().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Lost);
}

/// Returns the error of a client whose handshake gets this answer, made from the value of `Sec-WebSocket-Accept`.
async fn refused(answer: impl Fn(&str) -> String) -> Error {
    let listener = MemoryListener::bind(0).unwrap();
    let url = format!("ws://{HOST}:{}/mcp", listener.port());
    let connecting = tokio::spawn(async move { Client::connect(Target::url(&url).unwrap()).await });
    let mut stream = listener.accept().await;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.unwrap()));
    }
    assert!(head.starts_with("GET /mcp HTTP/1.1\r\n"), "{head}");
    let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
    let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
    stream.write_all(answer(&accept).as_bytes()).await.unwrap();
    drop((stream, listener));
    connecting.await.unwrap().unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_handshake_is_checked() {
    let upgraded = |connection: &str, accept: &str, more: &str| {
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: {connection}\r\n\
             sec-websocket-accept: {accept}\r\n{more}\r\n"
        )
    };
    let mcp = "sec-websocket-protocol: mcp\r\n";
    let error = refused(|key| upgraded("keep-alive, Upgrade", key, mcp)).await;
    assert!(!error.to_string().contains("handshake"), "only the end is an error: {error}");
    for (error, reason) in [
        (refused(|key| upgraded("close", key, mcp)).await, "no header `Connection: Upgrade`"),
        (refused(|_| upgraded("Upgrade", "x", mcp)).await, "Sec-WebSocket-Accept"),
        (
            refused(|key| upgraded("Upgrade", key, "sec-websocket-protocol: soap\r\n")).await,
            "a subprotocol that was not offered",
        ),
        (
            refused(|_| "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n".into()).await,
            "no header `Upgrade: websocket`",
        ),
        (
            refused(|_| "HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\nnot today".into())
                .await,
            "HTTP 403 Forbidden: not today",
        ),
        (refused(|_| String::new()).await, "the WebSocket handshake failed"),
    ] {
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert!(matches!(error.kind, ErrorKind::Connect | ErrorKind::Auth), "{error:?}");
    }
}
