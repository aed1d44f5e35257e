//! A server behind proxies: forwarding headers, the PROXY protocol, and HTTP on Unix sockets.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use gudgeon::{
    Client, Listening, Server,
    client::Target,
    error::ErrorKind,
    protocol::{Principal, Tool},
    server::auth::Auth,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
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

/// The peer of connections in memory.
const PEER: &str = "127.0.0.1";
const V1: &[u8] = b"PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x0a\0\0\x01\xdc\x04\x01\xbb";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/// The addresses of the clients whose requests came.
type Seen = Arc<Mutex<Vec<Option<IpAddr>>>>;

/// A server that notes where requests come from, and asks who sent them.
fn server(trusted: &[&str], proxy_protocol: bool) -> (Server, Seen) {
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    let auth = Auth::verify(move |_, request| {
        let remote = request.remote.as_ref().and_then(|remote| remote.parse().ok());
        notes.lock().unwrap().push(remote);
        async { Ok(Some(Principal::new("ada"))) }
    });
    let trusted = trusted.iter().map(ToString::to_string).collect();
    let server = Server::new("s").tool("one", || async { 1 }).options(|options| {
        options.http.trusted_proxies = trusted;
        options.http.proxy_protocol = proxy_protocol;
        options.http.allowed_hosts = vec!["mcp.example".into()];
        options.http.auth = vec![auth];
    });
    (server, seen)
}

/// A request with these further headers, after which the server closes.
fn request(headers: &str) -> Vec<u8> {
    format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer a\r\nAccept: text/event-stream\r\n\
         {headers}\r\n"
    )
    .into_bytes()
}

/// Sends bytes and returns everything that the server sends until it closes.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    // The server may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

async fn exchange_in_memory(listening: &Listening, parts: &[&[u8]]) -> String {
    exchange(memory::connect(listening.url()), &parts.concat()).await
}

fn take(seen: &Seen) -> Vec<Option<IpAddr>> {
    std::mem::take(&mut *seen.lock().unwrap())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn forwarding_headers_of_trusted_proxies_name_the_client() {
    for (trusted, expected) in [(&[PEER][..], "192.0.2.1"), (&["10.0.0.0/8"], PEER), (&[], PEER)] {
        let (server, seen) = server(trusted, false);
        let listening = server.listen(memory::HTTP).await.unwrap();
        for header in ["Forwarded: for=192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.9, 192.0.2.1\r\n"]
        {
            let port = listening.url().rsplit(':').next().unwrap().trim_end_matches("/mcp");
            let own = format!("Host: localhost:{port}\r\n");
            let bytes = request(header);
            let bytes = String::from_utf8(bytes).unwrap().replace("Host: localhost\r\n", &own);
            let answer = exchange_in_memory(&listening, &[bytes.as_bytes()]).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "GET belongs to a session: {answer}");
            assert_eq!(take(&seen), [Some(address(expected))], "{trusted:?} {header}");
            // A WebSocket is opened by the same client.
            let upgrade = bytes.replace("Connection: close", "Connection: Upgrade").replace(
                "Accept: text/event-stream",
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            );
            let mut stream = memory::connect(listening.url());
            stream.write_all(upgrade.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 101");
            assert_eq!(take(&seen), [Some(address(expected))], "{trusted:?} {header}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_has_the_host_and_scheme_that_a_trusted_proxy_names() {
    const HEADERS: &str = "Forwarded: for=192.0.2.1;host=mcp.example;proto=https\r\n";
    let document = |headers: &str| {
        format!(
            "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        )
    };
    let listen = async |trusted: &str, allowed: &str| {
        let (trusted, allowed) = (vec![trusted.to_owned()], vec![allowed.to_owned()]);
        let server = Server::new("s").options(|options| {
            options.http.trusted_proxies = trusted;
            options.http.allowed_hosts = allowed;
            options.http.auth = vec!["https://login.example".into()];
        });
        server.listen(memory::HTTP).await.unwrap()
    };
    let listening = listen(PEER, "*.example").await;
    let answer = exchange_in_memory(&listening, &[document(HEADERS).as_bytes()]).await;
    assert!(answer.contains(r#""resource":"https://mcp.example/mcp""#), "{answer}");
    let headers = HEADERS.replace("mcp.example", "evil.other");
    let answer = exchange_in_memory(&listening, &[document(&headers).as_bytes()]).await;
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    // A host that the server does not list could be that of any resource.
    for (trusted, allowed) in [(PEER, "*"), ("10.0.0.1", "*.example")] {
        let listening = listen(trusted, allowed).await;
        let answer = exchange_in_memory(&listening, &[document(HEADERS).as_bytes()]).await;
        assert!(!answer.contains("mcp.example"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_of_the_proxy_protocol_names_the_client() {
    const FORWARDED: &str = "Forwarded: for=198.51.100.1\r\n";
    let (server, seen) = server(&[PEER], true);
    let listening = server.listen(memory::HTTP).await.unwrap();
    let port = listening.url().rsplit(':').next().unwrap().trim_end_matches("/mcp").to_owned();
    let send = async |header: &[u8], headers: &str| {
        let request = String::from_utf8(request(headers)).unwrap();
        let request = request.replace("localhost", &format!("localhost:{port}"));
        exchange_in_memory(&listening, &[header, request.as_bytes()]).await
    };
    for (header, headers, expected) in [
        (V1, "", "192.0.2.1"),
        (V2, "", "192.0.2.1"),
        (V2_LOCAL, "", PEER),
        (b"PROXY UNKNOWN\r\n", "", PEER),
        // The client that the header names is not a trusted proxy itself.
        (V1, FORWARDED, "192.0.2.1"),
        (V2_LOCAL, FORWARDED, "198.51.100.1"),
        (b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n", FORWARDED, "198.51.100.1"),
    ] {
        let answer = send(header, headers).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert_eq!(take(&seen), [Some(address(expected))], "{header:?} {headers}");
    }
    for header in
        [&b""[..], b"PROXY TCP4 192.0.2.1\r\n", b"\r\n\r\n\0\r\nQUIT\n\x22\0\0\0", b"\x16\x03\x01"]
    {
        assert_eq!(send(header, "").await, "", "{header:?}");
    }
    assert_eq!(take(&seen), []);
    let begun = Instant::now();
    let mut silent = memory::connect(listening.url());
    silent.write_all(&V1[..20]).await.unwrap();
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(begun.elapsed(), Duration::from_secs(10), "header_timeout");
}

#[tokio::test(start_paused = true)]
async fn the_proxy_protocol_is_read_from_trusted_proxies_only() {
    let (stranger, seen) = server(&["10.0.0.1"], true);
    let listening = stranger.listen(memory::HTTP).await.unwrap();
    for header in [V1, V2, V2_LOCAL] {
        assert_eq!(exchange_in_memory(&listening, &[header, &request("")]).await, "");
    }
    assert_eq!(take(&seen), []);
    let (careless, _) = server(&[], true);
    let error = careless.listen(memory::HTTP).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Misuse);
    assert!(error.to_string().contains("proxy_protocol needs trusted_proxies"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_proxy_protocol_precedes_lines_as_well() {
    let server = Server::new("s").options(|options| {
        options.http.trusted_proxies = vec![PEER.into()];
        options.http.proxy_protocol = true;
    });
    let listening = server.listen(memory::LINES).await.unwrap();
    let mut stream = memory::connect(listening.url());
    stream.write_all(&[V2, b"nonsense\n"].concat()).await.unwrap();
    let mut answer = vec![0; 1024];
    let count = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..count]);
    assert!(answer.contains("-32700"), "{answer}");
}

#[tokio::test]
async fn a_service_finds_the_address_of_a_connection_in_the_request() {
    let proxy: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let stranger: SocketAddr = "192.0.2.9:1".parse().unwrap();
    for (peer, expected) in
        [(Some(proxy), Some("192.0.2.1")), (Some(stranger), Some("192.0.2.9")), (None, None)]
    {
        let (server, seen) = server(&[PEER], false);
        let mut request = http::Request::get("http://localhost/mcp")
            .header("host", "localhost")
            .header("authorization", "Bearer a")
            .header("accept", "text/event-stream")
            .header("forwarded", "for=192.0.2.1")
            .body(String::new())
            .unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        server.into_service().call(request).await.unwrap();
        assert_eq!(take(&seen), [expected.map(address)]);
    }
}

#[test]
fn trusted_proxies_that_are_not_addresses_are_refused() {
    let set = || {
        Server::new("s")
            .options(|options| options.http.trusted_proxies = vec!["proxy.example".into()])
    };
    let refused = std::panic::catch_unwind(set).unwrap_err();
    let message = refused.downcast_ref::<String>().unwrap();
    assert!(message.contains("trusted_proxies"), "{message}");
    assert!(message.contains("\"10.0.0.0/8\""), "{message}");
}

/// A folder of one test's own, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gudgeon-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn the_proxy_protocol_precedes_tls() {
    let folder = Folder::new("proxied-tls");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (folder.0.join("chain.pem"), folder.0.join("key.pem"));
    fs::write(&chain, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (server, seen) = server(&["127.0.0.0/8"], true);
    let server = server.options(|options| {
        options.http.tls = Some((chain, key));
        options.http.public_url = Some("https://localhost/mcp".into());
    });
    let listening = server.listen("https://127.0.0.1:0/mcp").await.unwrap();
    let at = listening.url().strip_prefix("https://").unwrap().strip_suffix("/mcp").unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(PemObject::from_pem_slice(made.cert.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    for header in [V1, V2] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        tcp.write_all(header).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, tcp).await.unwrap();
        let answer = exchange(stream, &request("")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert_eq!(take(&seen), [Some(address("192.0.2.1"))]);
    }
}

#[tokio::test]
async fn http_on_a_unix_socket() {
    let folder = Folder::new("http-unix");
    let path = folder.0.join("socket");
    // A server that was killed leaves its file behind.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let url = format!("http+unix:{}", path.display());
    let plain = Server::new("s").tool("one", || async { 1 });
    let listening = plain.listen(&url).await.unwrap();
    assert_eq!(listening.url(), url);
    let client = Client::connect(Target::url(&url).unwrap()).await.unwrap();
    assert_eq!(client.list::<Tool>().await.unwrap().len(), 1);
    client.close().await;
    let error = plain.listen(&url).await.unwrap_err();
    assert!(error.to_string().contains("a server listens there already"), "{error}");
    let foreign = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let answer = exchange(UnixStream::connect(&path).await.unwrap(), foreign.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    listening.shut_down().await;
    assert!(!path.exists());

    for (trusted, expected) in [("unix", Some(address("192.0.2.1"))), ("127.0.0.1", None)] {
        let (server, seen) = server(&[trusted], false);
        let listening = server.listen(&url).await.unwrap();
        let stream = UnixStream::connect(&path).await.unwrap();
        let answer = exchange(stream, &request("Forwarded: for=192.0.2.1\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert_eq!(take(&seen), [expected]);
        listening.shut_down().await;
    }
    let with_tls = plain.options(|options| options.http.tls = Some(("a".into(), "b".into())));
    let error = with_tls.listen(&url).await.unwrap_err();
    assert!(error.to_string().contains("leave tls out"), "{error}");
}
