//! A listening server: connections and shutdown.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::{Context, Listening, Server, error::ErrorKind, server::middleware};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::TcpSocket,
    sync::{Notify, mpsc},
};

use crate::support::memory;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) fn message(method: &str, params: &str, id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{META}}}}}"#)
}

fn post(method: &str, name: &str, body: &str) -> String {
    let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn calling(tool: &str, id: u32) -> String {
    message("tools/call", &format!(r#""name":"{tool}","arguments":{{}},"#), id)
}

pub(crate) fn call(tool: &str, id: u32) -> String {
    post("tools/call", tool, &calling(tool, id))
}

pub(crate) fn connect(listening: &Listening) -> DuplexStream {
    memory::connect(listening.url())
}

async fn listen(server: Server) -> Listening {
    server.listen(memory::HTTP).await.unwrap()
}

/// Returns the data of a single read.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut buffer = vec![0; 64 * 1024];
    let count = stream.read(&mut buffer).await.unwrap();
    String::from_utf8(buffer[..count].to_vec()).unwrap()
}

/// Everything until the server closes.
pub(crate) async fn read_all(stream: &mut DuplexStream) -> String {
    let mut all = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8(all).unwrap()
}

fn impatient() -> Server {
    Server::new("s").options(|options| {
        let short = Duration::from_millis(60);
        (options.http.header_timeout, options.http.idle_timeout) = (short, short);
        options.http.body_timeout = short;
    })
}

#[tokio::test(start_paused = true)]
async fn requests_in_one_segment_are_answered_in_order() {
    let listening = listen(Server::new("s").tool("one", || async { 1 })).await;
    let mut stream = connect(&listening);
    let both = call("one", 7) + &call("one", 8);
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut answers = String::new();
    while answers.matches("HTTP/1.1 200 OK").count() < 2 || !answers.ends_with('}') {
        answers += &read(&mut stream).await;
    }
    let (first, second) = (answers.find(r#""id":7"#), answers.find(r#""id":8"#));
    assert!(first.unwrap() < second.unwrap(), "{answers}");
    assert!(answers.contains("content-length: "), "{answers}");
}

#[tokio::test(start_paused = true)]
async fn handlers_see_the_headers() {
    let server = Server::new("s").tool("header", |ctx: Context| async move {
        ctx.headers().unwrap()["mcp-method"].to_str().unwrap().to_owned()
    });
    let listening = listen(server).await;
    let mut stream = connect(&listening);
    stream.write_all(call("header", 1).as_bytes()).await.unwrap();
    let answer = read(&mut stream).await;
    assert!(answer.contains(r#""text":"tools/call""#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn the_host_of_a_request_line_in_absolute_form_is_checked() {
    let listening = listen(Server::new("s").tool("one", || async { 1 })).await;
    for (host, status) in [("localhost", 200), ("evil.example", 421)] {
        let mut stream = connect(&listening);
        let request = call("one", 1).replacen("/mcp", &format!("http://{host}/mcp"), 1);
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
}

// Elsewhere the loopback interface has one address.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn rates_are_limited_by_address_whatever_name_a_client_gives() {
    let limit = middleware::rate_limit(middleware::CountedBy::Principal, 0.001, 2);
    let server = Server::new("s").tool("one", || async { 1 }).middleware(["tools/call"], limit);
    let listening = server.listen("http://127.0.0.1:0/mcp").await.unwrap();
    let address = listening.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let address = address.parse().unwrap();
    for source in ["127.0.0.1:0", "127.0.0.2:0"] {
        for number in 0..3 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(source.parse().unwrap()).unwrap();
            let mut stream = socket.connect(address).await.unwrap();
            let named = call("one", 1).replace(r#""name":"c""#, &format!(r#""name":"{number}""#));
            stream.write_all(named.as_bytes()).await.unwrap();
            let answer = read(&mut stream).await;
            assert_eq!(answer.contains("too many requests"), number == 2, "{source} {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_head_and_the_first_event_are_one_segment() {
    let listening = listen(Server::new("s").tool("one", || async { 1 })).await;
    let mut stream = connect(&listening);
    let filter = r#""notifications":{"toolsListChanged":true},"#;
    let listens = message("subscriptions/listen", filter, 1);
    let listens = post("subscriptions/listen", "", &listens);
    stream.write_all(listens.as_bytes()).await.unwrap();
    let first = read(&mut stream).await;
    assert!(first.starts_with("HTTP/1.1 200 OK") && first.contains("acknowledged"), "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_client_cancels_its_call() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let server = Server::new("s").tool("endless", move |ctx: Context| {
        let sender = sender.clone();
        async move {
            let on_cancel = sender.clone();
            tokio::spawn(async move {
                ctx.cancelled().await;
                let _ = on_cancel.send("cancelled");
            });
            let _ = sender.send("begun");
            std::future::pending::<()>().await;
        }
    });
    let listening = listen(server).await;
    let mut stream = connect(&listening);
    stream.write_all(call("endless", 1).as_bytes()).await.unwrap();
    assert_eq!(receiver.recv().await, Some("begun"));
    drop(stream);
    assert_eq!(receiver.recv().await, Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn slow_heads_slow_bodies_and_idle_connections_are_cut_off() {
    let listening = listen(impatient()).await;
    let request = post("server/discover", "", &message("server/discover", "", 1));
    for sent in [0, 10, request.len() - 5] {
        let mut stream = connect(&listening);
        stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_waits_for_its_answer_is_not_idle() {
    let server = impatient().tool("slow", || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        "done"
    });
    let listening = listen(server).await;
    let mut stream = connect(&listening);
    stream.write_all(call("slow", 1).as_bytes()).await.unwrap();
    assert!(read(&mut stream).await.contains("done"));
}

#[tokio::test(start_paused = true)]
async fn who_reads_slowly_loses_progress_and_gets_the_answer() {
    const STEPS: u32 = 200;
    let ended = Arc::new(Notify::new());
    let text = "x".repeat(64 * 1024);
    let server = Server::new("s").tool("flood", {
        let ended = Arc::clone(&ended);
        move |ctx: Context| {
            let (ended, text) = (Arc::clone(&ended), text.clone());
            async move {
                for step in 1..=STEPS {
                    ctx.progress(f64::from(step), None, &*text);
                    tokio::task::yield_now().await;
                }
                ended.notify_one();
                "flooded"
            }
        }
    });
    let listening = listen(server).await;
    let mut stream = connect(&listening);
    let asked = r#""_meta":{"progressToken":1,"#;
    let flood = calling("flood", 1).replace(r#""_meta":{"#, asked);
    let flood = post("tools/call", "flood", &flood);
    stream.write_all(flood.as_bytes()).await.unwrap();
    ended.notified().await;
    let mut received = String::new();
    while !received.contains("flooded") {
        received += &read(&mut stream).await;
    }
    let told = received.matches("notifications/progress").count();
    assert!((1..100).contains(&told), "{told} of {STEPS}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_are_answered_before_the_end() {
    let (begun, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let server = Server::new("s").tool("wait", {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        move || {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            async move {
                let waiting = go_on.notified();
                begun.fetch_add(1, Ordering::AcqRel);
                waiting.await;
                "answered"
            }
        }
    });
    let listening = Arc::new(listen(server).await);
    let mut streams = Vec::new();
    for id in 0..10 {
        let mut stream = connect(&listening);
        stream.write_all(call("wait", id).as_bytes()).await.unwrap();
        streams.push(stream);
    }
    let mut idle = connect(&listening);
    while begun.load(Ordering::Acquire) < streams.len() {
        tokio::task::yield_now().await;
    }
    let ending = Arc::clone(&listening);
    let ended = tokio::spawn(async move { ending.shut_down().await });
    assert_eq!(read_all(&mut idle).await, "");
    go_on.notify_waiters();
    for stream in &mut streams {
        let answer = read_all(stream).await;
        assert!(answer.contains("answered"), "{answer}");
    }
    ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_are_cut_off_after_the_grace_period() {
    let sender = Arc::new(Notify::new());
    let receiver = Arc::clone(&sender);
    let server = Server::new("s")
        .options(|options| options.http.shutdown_grace = Duration::ZERO)
        .tool("endless", move || {
            receiver.notify_one();
            std::future::pending::<()>()
        });
    let listening = listen(server).await;
    let mut stream = connect(&listening);
    stream.write_all(call("endless", 1).as_bytes()).await.unwrap();
    sender.notified().await;
    tokio::time::timeout(Duration::from_secs(5), listening.shut_down()).await.expect("no grace");
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test]
async fn an_address_in_use_is_reported_with_the_fix() {
    let listening = Server::new("s").listen("http://127.0.0.1:0/mcp").await.unwrap();
    let error = Server::new("s").listen(listening.url()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect);
    let port = listening.url().split([':', '/']).nth(4).unwrap();
    assert!(error.to_string().contains(&format!("port {port} is in use")), "{error}");
}

#[tokio::test]
async fn a_server_on_a_public_address_warns() {
    let listening = Server::new("s").listen("http://0.0.0.0:0/mcp").await.unwrap();
    assert!(listening.warning().unwrap().contains("127.0.0.1"), "{:?}", listening.warning());
    assert!(listen(Server::new("s")).await.warning().is_none());
}
