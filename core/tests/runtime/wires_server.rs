//! A listening server behind TLS, WebSocket, TCP and Unix sockets, and mounted as a service of tower.

use std::{
    convert::Infallible,
    fs,
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use gudgeon::{
    Client, HttpService, Server,
    client::Target,
    error::{Error, ErrorKind},
    protocol::Tool,
};
use hyper::{body::Incoming, rt, server::conn::http1, service::service_fn};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    time::Instant,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{ServerName, pem::PemObject},
    },
};
use tower_service::Service;

use crate::support::memory;

fn server() -> Server {
    Server::new("s").tool("one", || async { 1 })
}

/// A folder of one test's own, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gudgeon-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn has_one_tool(url: &str) {
    let client = Client::connect(Target::url(url).unwrap()).await.unwrap();
    assert_eq!(client.list::<Tool>().await.unwrap().len(), 1);
    client.close().await;
}

#[tokio::test]
async fn tls() {
    let folder = Folder::new("tls");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let chain = folder.file("chain.pem", &made.cert.pem());
    let key = folder.file("key.pem", &made.signing_key.serialize_pem());
    let server = server().options(|options| options.http.tls = Some((chain, key)));
    let listening = server.listen("https://127.0.0.1:0/mcp").await.unwrap();
    let address = listening.url().strip_prefix("https://").unwrap().strip_suffix("/mcp").unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(PemObject::from_pem_slice(made.cert.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    stream.write_all(b"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut buffer = [0; 1024];
    let count = stream.read(&mut buffer).await.unwrap();
    assert!(buffer[..count].starts_with(b"HTTP/1.1 204 No Content\r\n"));
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_named() {
    let folder = Folder::new("no-tls");
    let (empty, missing) = (folder.file("empty.pem", ""), folder.0.join("missing.pem"));
    for (chain, named) in [(&missing, "missing.pem"), (&empty, "empty.pem")] {
        let server =
            server().options(|options| options.http.tls = Some((chain.clone(), empty.clone())));
        let error = server.listen("https://127.0.0.1:0/mcp").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        assert!(error.to_string().contains(named), "{error}");
    }
    let error = server().listen("https://127.0.0.1:0/mcp").await.unwrap_err();
    assert!(error.to_string().contains("needs a certificate"), "{error}");
}

#[tokio::test]
async fn web_sockets() {
    let listening = server().listen("http://127.0.0.1:0/mcp").await.unwrap();
    has_one_tool(&listening.url().replace("http://", "ws://")).await;
    listening.shut_down().await;
}

#[tokio::test]
async fn tcp() {
    let listening = server().listen("tcp://127.0.0.1:0").await.unwrap();
    has_one_tool(listening.url()).await;
    // Invalid data affects only its own connection.
    let mut stream = TcpStream::connect(&listening.url()["tcp://".len()..]).await.unwrap();
    stream.write_all(b"nonsense\n").await.unwrap();
    let mut answer = String::new();
    BufReader::new(&mut stream).read_line(&mut answer).await.unwrap();
    assert!(answer.contains("-32700"), "{answer}");
    has_one_tool(listening.url()).await;
    listening.shut_down().await;
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

/// A browser sends a cross-site POST with a `text/plain` body without asking the server first (Fetch standard, "CORS
/// protocol"); its lines must not be read as messages.
#[tokio::test(start_paused = true)]
async fn a_client_that_speaks_another_protocol_is_disconnected() {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::new("s").tool("delete", move || {
        let _ = sender.send(());
        async { "deleted" }
    });
    let listening = server.listen(memory::LINES).await.unwrap();
    let call = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"page","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    );
    let head = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain";
    let length = call.len() + 1;
    let posted = format!("{head}\r\nContent-Length: {length}\r\n\r\n{call}\n");
    let (begin, rest) = posted.split_at(1);
    for parts in [vec![&*posted], vec![begin, rest], vec!["\r\n", &*posted], vec!["\x16\x03\x01"]] {
        let mut stream = memory::connect(listening.url());
        for part in parts {
            // The server may have closed the connection already.
            if stream.write_all(part.as_bytes()).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let read = stream.read(&mut [0; 64]).await;
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    assert!(receiver.try_recv().is_err(), "the tool ran");
    has_one_tool(listening.url()).await;
    let mut stream = memory::connect(listening.url());
    stream.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    receiver.recv().await.expect("the same call by itself runs the tool");
}

#[tokio::test(start_paused = true)]
async fn unfinished_lines_are_limited_together() {
    let listening = server().listen(memory::LINES).await.unwrap();
    let line = vec![b'['; 15 * 1024 * 1024];
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..12 {
        let mut stream = memory::connect(listening.url());
        // The server closes the connection while it is being written to.
        refused += usize::from(stream.write_all(&line).await.is_err());
        streams.push(stream);
    }
    // Nine lines are more than 128 MiB.
    assert_eq!(refused, 4);
    has_one_tool(listening.url()).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_must_begin_and_go_on_in_time() {
    let brief = Duration::from_millis(200);
    let server = server().options(|options| {
        (options.http.header_timeout, options.http.body_timeout) = (brief, brief);
    });
    let listening = server.listen(memory::LINES).await.unwrap();
    let connect = || memory::connect(listening.url());
    for begin in [&b""[..], b"[", b"\n"] {
        let begun = Instant::now();
        let mut slow = connect();
        slow.write_all(begin).await.unwrap();
        assert_eq!(slow.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(begun.elapsed(), brief);
    }
    // A client whose messages are complete may be silent.
    let mut idle = BufReader::new(connect());
    for _ in 0..2 {
        idle.write_all(b"nonsense\n").await.unwrap();
        let mut answer = String::new();
        idle.read_line(&mut answer).await.unwrap();
        assert!(answer.contains("-32700"), "{answer}");
        tokio::time::sleep(3 * brief).await;
    }
}

#[tokio::test]
async fn unix_sockets() {
    let folder = Folder::new("unix");
    let path = folder.0.join("socket");
    // A server that was killed leaves its file behind.
    drop(UnixListener::bind(&path).unwrap());
    let url = format!("unix:{}", path.display());
    let listening = server().listen(&url).await.unwrap();
    assert_eq!(listening.url(), url);
    has_one_tool(&url).await;
    let error = server().listen(&url).await.unwrap_err();
    assert!(error.to_string().contains("a server listens there already"), "{error}");
    UnixStream::connect(&path).await.unwrap();
    listening.shut_down().await;
    assert!(!path.exists());
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_is_refused_and_the_connection_goes_on() {
    let listening =
        server().options(|options| options.max_message = 1000).listen(memory::LINES).await.unwrap();
    let stream = memory::connect(listening.url());
    let mut stream = BufReader::new(stream);
    for line in ["x".repeat(2000), "{}".to_owned()] {
        stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        assert!(answer.contains("-32600"), "{answer}");
    }
    let client = Client::connect(Target::url(listening.url()).unwrap()).await.unwrap();
    let started = Instant::now();
    let error = client.call_tool("one", json!({"a": "x".repeat(2000)})).await.unwrap_err();
    assert!(error.to_string().contains("longer than 1000 bytes"), "{error}");
    assert_eq!(started.elapsed(), Duration::ZERO, "the call did not wait for a time limit");
    assert_eq!(client.list::<Tool>().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_client_reads_no_answers_is_not_read_further() {
    const CALLS: usize = 200;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = server().tool("big", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { "x".repeat(256 * 1024) }
    });
    let listening = server.listen(memory::LINES).await.unwrap();
    let stream = memory::connect(listening.url());
    let mut stream = BufReader::new(stream);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for id in 0..CALLS {
        let params = json!({"name": "big", "_meta": meta});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        stream.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    // Handlers may run on other threads, for which this clock does not wait.
    while calls.load(Ordering::SeqCst) < 8 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut line = String::new();
    for read in 0..CALLS {
        // 4 MiB of answers with their text and its copy, and the handlers that may start at the same time.
        let ahead = calls.load(Ordering::SeqCst) - read;
        assert!(ahead < 120, "{ahead}");
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        assert!(line.len() > 256 * 1024);
    }
    assert_eq!(calls.load(Ordering::SeqCst), CALLS);
}

/// A call of a tool whose pattern takes a second for such a string.
fn slow_call(length: usize) -> String {
    let text = "b".repeat(length);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "password", "arguments": {"text": text}, "_meta": meta});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Password {
    #[schemars(regex(pattern = r"(?=.*[a-z])(?=.*[0-9]).{8}"))]
    #[serde(rename = "text")]
    _text: String,
}

// With one thread, whatever is not on a thread of its own holds up everything else.
#[tokio::test(start_paused = true)]
async fn others_are_served_during_the_check_of_a_large_message_and_of_a_pattern() {
    let server = server().tool("password", |_: Password| async { "taken" });
    let listening = server.listen(memory::LINES).await.unwrap();
    for length in [60_000, 200_000] {
        let mut slow = Vec::new();
        for _ in 0..8 {
            let mut stream = memory::connect(listening.url());
            stream.write_all(slow_call(length).as_bytes()).await.unwrap();
            slow.push(BufReader::new(stream));
        }
        // The server reads all of them.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let mut other = BufReader::new(memory::connect(listening.url()));
        other.write_all(b"{}\n").await.unwrap();
        let mut answer = String::new();
        other.read_line(&mut answer).await.unwrap();
        let last = slow.last_mut().unwrap();
        let waiting = tokio::time::timeout(Duration::ZERO, last.fill_buf()).await;
        assert!(waiting.is_err(), "the last of the slow calls is answered, of {length} bytes");
        for mut stream in slow {
            let mut answer = String::new();
            stream.read_line(&mut answer).await.unwrap();
            assert!(answer.contains("takes too many steps"), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_addresses_are_reported_with_the_fix() {
    for (address, mend) in [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/mcp"),
        ("ws://127.0.0.1:0/mcp", "write http://"),
        ("tcp://127.0.0.1", "tcp://host:port"),
        ("http://127.0.0.1:70000/mcp", "65535"),
        ("http://me@127.0.0.1/mcp", "write"),
        ("http://127.0.0.1/mcp?x=1", "leave it out"),
        ("unix:", "unix:/path/to/socket"),
        ("stdio", "run()"),
    ] {
        let error: Error = server().listen(address).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        assert!(error.to_string().contains(mend), "{error}");
    }
}

#[tokio::test]
async fn mounted_in_hyper_and_several_in_one_process() {
    let address = mounted(server()).await;
    let other = mounted(Server::new("other")).await;
    // At any path.
    has_one_tool(&format!("http://{address}/some/where")).await;
    let target = Target::url(&format!("http://{other}/some/where/")).unwrap();
    let client = Client::connect(target).await.unwrap();
    assert_eq!(client.server().info.name, "other");
    client.close().await;
}

async fn mounted(server: Server) -> SocketAddr {
    let service = server.into_service();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let answered = service_fn(move |request: http::Request<Incoming>| {
                    let mut service: HttpService = service.clone();
                    async move { Ok::<_, Infallible>(service.call(request).await.unwrap()) }
                });
                http1::Builder::new().serve_connection(Io(stream), answered).await
            });
        }
    });
    address
}

/// A stream of tokio's as hyper wants it.
struct Io(TcpStream);

impl rt::Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut cursor: rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut piece = [0; 4096];
        let room = cursor.remaining().min(piece.len());
        let mut buffer = ReadBuf::new(&mut piece[..room]);
        let polled = Pin::new(&mut self.0).poll_read(context, &mut buffer);
        cursor.put_slice(buffer.filled());
        polled
    }
}

impl rt::Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
