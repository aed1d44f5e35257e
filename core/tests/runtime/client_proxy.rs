//! Clients behind a proxy. The environment names it, so each client runs in a process of its own. Its servers have a
//! host name that only the proxy resolves.

use std::{env, fs, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use gudgeon::{Client, Listening, Server, client::Target, protocol::Tool};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::process::Command;
use tokio_rustls::TlsAcceptor;

use crate::support::{
    ports::reserve_port,
    proxy::{Behaviour, TestProxy},
};

const URL: &str = "GUDGEON_PROXIED_URL";
const TIMEOUT: &str = "GUDGEON_PROXIED_TIMEOUT_MS";
const VARIABLES: [&str; 9] = [
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "REQUEST_METHOD",
];
/// The header `Authorization` that the client sends to its server.
const SECRET: &str = "Bearer for-the-server";
/// `me:pass!`
const BASIC: &str = "proxy-authorization: Basic bWU6cGFzcyE=";

/// In a child process: connects to the URL in the environment, calls the server, prints the outcome, and returns true.
async fn is_client() -> bool {
    let Ok(url) = env::var(URL) else { return false };
    let timeout = env::var(TIMEOUT).ok().and_then(|value| value.parse().ok());
    let builder = Client::builder(Target::url(&url).unwrap()).options(|options| {
        options.headers = vec![("Authorization".into(), SECRET.into())];
        if let Some(timeout) = timeout {
            options.timeout = Some(Duration::from_millis(timeout));
        }
    });
    let used = async {
        let client = builder.connect().await?;
        for _ in 0..3 {
            client.list::<Tool>().await?;
        }
        let result = client.call_tool("one", serde_json::json!({})).await?;
        client.close().await;
        Ok::<_, gudgeon::Error>(result.text())
    };
    match used.await {
        Ok(text) => eprintln!("outcome: the tool returned {text}"),
        Err(error) => eprintln!("outcome: {:?} {error} {error:?}", error.kind),
    }
    true
}

/// Runs a test in a child process as a client of `url`, and returns the outcome.
async fn outcome(test: &str, url: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("client_proxy::{test}"), "--nocapture"]).env(URL, url);
    for name in VARIABLES {
        command.env_remove(name);
    }
    let output = command.envs(environment.iter().copied()).output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let found = printed.lines().find_map(|line| Some(line.split_once("outcome: ")?.1.to_owned()));
    found.unwrap_or_else(|| panic!("{printed}{}", String::from_utf8_lossy(&output.stdout)))
}

fn server() -> Server {
    Server::new("shelf").tool("one", || async { 1 }).options(|options| {
        options.http.allowed_hosts = vec!["*".into()];
    })
}

fn address(listening: &Listening) -> SocketAddr {
    let authority = listening.url().split('/').nth(2).unwrap();
    SocketAddr::from(([127, 0, 0, 1], authority.rsplit(':').next().unwrap().parse().unwrap()))
}

async fn relay(listening: &Listening) -> TestProxy {
    TestProxy::start(Behaviour::Relay(address(listening)), None).await
}

#[tokio::test]
async fn http_requests_are_forwarded_in_absolute_form() {
    if is_client().await {
        return;
    }
    let listening = server().listen("http://127.0.0.1:0/mcp").await.unwrap();
    let proxy = relay(&listening).await;
    let named = format!("http://me:pass%21@127.0.0.1:{}", proxy.port);
    let test = "http_requests_are_forwarded_in_absolute_form";
    let said = outcome(test, "http://shelf.example/mcp?key=1", &[("http_proxy", &named)]).await;
    assert_eq!(said, "the tool returned 1");
    let received = proxy.received().concat();
    // A head follows the body before it on the same line.
    let of_head = |line: &str| line.find("POST ").map(|start| line[start..].to_owned());
    let heads: Vec<_> =
        received.lines().filter(|line| line.ends_with(" HTTP/1.1")).filter_map(of_head).collect();
    assert!(heads.len() >= 4, "{received}");
    for head in &heads {
        assert_eq!(*head, "POST http://shelf.example/mcp?key=1 HTTP/1.1");
    }
    assert_eq!(received.matches(BASIC).count(), heads.len());
    assert_eq!(received.to_lowercase().matches("\r\nhost: shelf.example\r\n").count(), heads.len());
    assert_eq!(received.matches(SECRET).count(), heads.len());
    assert!(proxy.received().len() < heads.len(), "connections are reused");
    listening.shut_down().await;
}

#[tokio::test]
async fn ws_uses_a_tunnel() {
    if is_client().await {
        return;
    }
    let listening = server().listen("http://127.0.0.1:0/mcp").await.unwrap();
    let proxy = relay(&listening).await;
    let named = format!("me:pass%21@127.0.0.1:{}", proxy.port);
    let said =
        outcome("ws_uses_a_tunnel", "ws://shelf.example/mcp", &[("ALL_PROXY", &named)]).await;
    assert_eq!(said, "the tool returned 1");
    assert_tunnels(&proxy, "shelf.example:80");
    listening.shut_down().await;
}

/// Checks that the proxy got the host and port, and its own credentials, and nothing else.
fn assert_tunnels(proxy: &TestProxy, to: &str) {
    let received = proxy.received();
    assert!(!received.is_empty());
    let expected = format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n{BASIC}\r\n\r\n");
    for head in received {
        assert_eq!(head, expected);
    }
}

/// A folder with a certificate for `shelf.example` and 127.0.0.1, and its key. Dropping it removes the folder.
struct Certificate(PathBuf);

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Certificate {
    fn create(test: &str) -> Self {
        let folder = env::temp_dir().join(format!("gudgeon-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let names = ["shelf.example".to_owned(), "127.0.0.1".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        fs::write(folder.join("pem"), certificate.pem()).unwrap();
        fs::write(folder.join("key"), key.serialize_pem()).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn acceptor(&self) -> TlsAcceptor {
        let certificate = CertificateDer::from_pem_file(self.file("pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.file("key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

#[tokio::test]
async fn https_and_wss_use_a_tunnel() {
    if is_client().await {
        return;
    }
    let certificate = Certificate::create("tunnel");
    let tls = Some((certificate.file("pem"), certificate.file("key")));
    let server = server().options(|options| options.http.tls = tls);
    let listening = server.listen("https://127.0.0.1:0/mcp").await.unwrap();
    let trusted = certificate.file("pem").to_str().unwrap().to_owned();
    for (scheme, acceptor) in [("http", None), ("https", Some(certificate.acceptor()))] {
        for url in ["https://shelf.example/mcp", "wss://shelf.example/mcp"] {
            let behaviour = Behaviour::Relay(address(&listening));
            let proxy = TestProxy::start(behaviour, acceptor.clone()).await;
            let named = format!("{scheme}://me:pass%21@127.0.0.1:{}", proxy.port);
            let environment = [("HTTPS_PROXY", &*named), ("SSL_CERT_FILE", &trusted)];
            let said = outcome("https_and_wss_use_a_tunnel", url, &environment).await;
            assert_eq!(said, "the tool returned 1", "{scheme} {url}");
            assert_tunnels(&proxy, "shelf.example:443");
        }
    }
    listening.shut_down().await;
}

#[tokio::test]
async fn listed_hosts_and_loopback_addresses_are_reached_directly() {
    if is_client().await {
        return;
    }
    let listening = server().listen("http://127.0.0.1:0/mcp").await.unwrap();
    let port = address(&listening).port();
    let proxy = TestProxy::start(Behaviour::Say(""), None).await;
    let named = format!("http://127.0.0.1:{}", proxy.port);
    // Systems that know this address lead it to this machine, but it is not a loopback address.
    let unspecified = format!("http://0.0.0.0:{port}/mcp");
    let mut cases = vec![
        (format!("http://127.0.0.1:{port}/mcp"), "shelf.example"),
        (format!("ws://localhost:{port}/mcp"), ""),
    ];
    if cfg!(unix) {
        for list in ["0.0.0.0", "*", "10.0.0.0/8, 0.0.0.0/8"] {
            cases.push((unspecified.clone(), list));
        }
    }
    for (url, list) in cases {
        let environment = [("ALL_PROXY", &*named), ("NO_PROXY", list)];
        let test = "listed_hosts_and_loopback_addresses_are_reached_directly";
        assert_eq!(outcome(test, &url, &environment).await, "the tool returned 1", "{url} {list}");
        assert!(proxy.received().is_empty());
    }
    listening.shut_down().await;
}

#[tokio::test]
async fn a_proxy_that_fails_is_an_error_that_names_it() {
    if is_client().await {
        return;
    }
    let denied = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let unable = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
    let asks = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno";
    let endless = "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (name, behaviour, tunnel, forward) in [
        (
            "denies",
            Behaviour::Say(denied),
            "Connect|HTTP 403|may not allow|NO_PROXY",
            "Auth|HTTP 403",
        ),
        (
            "is unable",
            Behaviour::Say(unable),
            "Connect|HTTP 502|check the address",
            "Lost|HTTP 502",
        ),
        (
            "asks",
            Behaviour::Say(asks),
            "Connect|HTTP 407|check the user",
            "Connect|HTTP 407|check the user",
        ),
        (
            "greets",
            Behaviour::Say("220 welcome\r\n"),
            "Connect|did not answer CONNECT",
            "Protocol|not HTTP/1.1",
        ),
        ("closes", Behaviour::Say(""), "Connect|did not answer CONNECT", "Lost|broke"),
        (
            "never ends its head",
            Behaviour::Repeat("HTTP/1.1 200 OK\r\n", "A: b\r\n"),
            "Connect|did not answer CONNECT",
            "Protocol",
        ),
        (
            "never ends its body",
            Behaviour::Repeat(endless, "2\r\nno\r\n"),
            "Connect|HTTP 403",
            "Auth|HTTP 403",
        ),
        (
            "talks first",
            // In one write, because a TLS handshake that has begun refuses the bytes with another message.
            Behaviour::Repeat("HTTP/1.1 200 OK\r\n\r\nx", "x"),
            "Connect|has a body",
            "",
        ),
    ] {
        let proxy = TestProxy::start(behaviour, None).await;
        let address = format!("http://127.0.0.1:{}", proxy.port);
        let named = format!("http://me:pass%21@127.0.0.1:{}", proxy.port);
        for (url, expected) in [
            ("https://shelf.example/mcp", tunnel),
            ("ws://shelf.example/mcp", tunnel),
            ("http://shelf.example/mcp", forward),
        ] {
            if expected.is_empty() {
                continue;
            }
            let test = "a_proxy_that_fails_is_an_error_that_names_it";
            let said = outcome(test, url, &[("ALL_PROXY", &named)]).await;
            for word in expected.split('|').chain([url, &*format!("{address} (ALL_PROXY)")]) {
                assert!(said.contains(word), "{name}: {url}: {word:?} is missing in {said}");
            }
            assert!(
                !said.contains("pass!")
                    && !said.contains("pass%21")
                    && !said.contains("bWU6cGFzcyE"),
                "{said}"
            );
            assert!(!said.contains(SECRET), "{said}");
        }
    }
}

#[tokio::test]
async fn a_proxy_that_asks_for_credentials_gets_the_hint_where_to_put_them() {
    if is_client().await {
        return;
    }
    let asks = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let proxy = TestProxy::start(Behaviour::Say(asks), None).await;
    let named = format!("127.0.0.1:{}", proxy.port);
    for scheme in ["http", "https", "wss"] {
        let test = "a_proxy_that_asks_for_credentials_gets_the_hint_where_to_put_them";
        let url = format!("{scheme}://shelf.example/mcp");
        let said = outcome(test, &url, &[("ALL_PROXY", &named)]).await;
        assert!(said.starts_with("Connect ") && said.contains("HTTP 407"), "{said}");
        assert!(said.contains("in ALL_PROXY: http://user:password@host:port"), "{said}");
    }
    assert!(proxy.received().iter().all(|text| !text.contains("proxy-authorization")));
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_an_error_that_names_it() {
    if is_client().await {
        return;
    }
    let (port, _reserved) = reserve_port();
    let test = "a_proxy_that_cannot_be_reached_is_an_error_that_names_it";
    for scheme in ["http", "https", "ws"] {
        let url = format!("{scheme}://shelf.example/mcp");
        let named = format!("http://me:secret@127.0.0.1:{port}");
        let said = outcome(test, &url, &[("all_proxy", &named)]).await;
        assert!(said.starts_with("Connect "), "{said}");
        let proxy = format!("the proxy http://127.0.0.1:{port} (all_proxy) can't be reached: ");
        assert!(said.contains(&proxy) && !said.contains("secret"), "{said}");
    }
    // A proxy whose certificate nobody signed, and one that speaks no TLS.
    let certificate = Certificate::create("unreachable");
    for acceptor in [Some(certificate.acceptor()), None] {
        let proxy = TestProxy::start(Behaviour::Say("x"), acceptor).await;
        let named = format!("https://127.0.0.1:{}", proxy.port);
        let other = Certificate::create("other");
        let trusted = other.file("pem");
        let environment = [("https_proxy", &*named), ("SSL_CERT_FILE", trusted.to_str().unwrap())];
        let said = outcome(test, "https://shelf.example/mcp", &environment).await;
        assert!(said.contains("can't be reached: the TLS handshake failed"), "{said}");
        assert!(said.contains(&format!("{named} (https_proxy)")), "{said}");
    }
    let said =
        outcome(test, "http://shelf.example", &[("http_proxy", "socks5://u:secret@p")]).await;
    assert!(said.starts_with("Connect ") && !said.contains("secret"), "{said}");
    assert!(
        said.contains("http_proxy: a proxy with the scheme \"socks5\" is not supported"),
        "{said}"
    );
}

#[tokio::test]
async fn a_proxy_that_never_answers_is_given_up() {
    if is_client().await {
        return;
    }
    let proxy = TestProxy::start(Behaviour::Silent, None).await;
    let named = format!("http://127.0.0.1:{}", proxy.port);
    for url in ["http://shelf.example/mcp", "https://shelf.example/mcp", "ws://shelf.example/mcp"] {
        let environment = [("ALL_PROXY", &*named), (TIMEOUT, "300")];
        let said = outcome("a_proxy_that_never_answers_is_given_up", url, &environment).await;
        assert!(said.starts_with("Timeout "), "{said}");
        assert!(said.contains(&format!("goes through the proxy {named} (ALL_PROXY)")), "{said}");
    }
}
