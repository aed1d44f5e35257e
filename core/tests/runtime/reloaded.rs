//! Keys and certificates in files that are replaced while the server runs.

use std::{env, fs, path::PathBuf, sync::Arc, time::Duration};

use gudgeon::{Listening, Server, server::auth::ApiKeys};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{net::TcpStream, time::sleep};

use crate::{http_server::call, support::memory};

/// A folder for the files of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("gudgeon-reloaded-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Replaces a file, as orchestrators and programs that renew certificates do.
    fn replace(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.at("new"), text).unwrap();
        fs::rename(self.at("new"), self.at(name)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks until the answer is this one. Never returns if it stays another.
async fn until<T: PartialEq>(wanted: T, mut ask: impl AsyncFnMut() -> T) {
    while ask().await != wanted {
        sleep(Duration::from_millis(20)).await;
    }
}

async fn status(listening: &Listening, key: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = memory::connect(listening.url());
    let fields = format!("HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n");
    let request = call("one", 1).replacen("HTTP/1.1\r\n", &fields, 1);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer[9..12].to_owned()
}

#[tokio::test]
async fn api_keys_are_read_again() {
    let folder = Folder::new("api-keys");
    folder.replace("keys.json", r#"{"old": "ada"}"#);
    let listen = async |file: &str| {
        let keys = ApiKeys { keys: Vec::new(), header: None, file: Some(folder.at(file)) };
        let server = Server::new("s").tool("one", || async { 1 });
        let server = server.options(|options| options.http.auth = vec![keys.into()]);
        server.listen(memory::HTTP).await.unwrap()
    };
    let listening = listen("keys.json").await;
    assert_eq!([status(&listening, "old").await, status(&listening, "new").await], ["200", "401"]);
    folder.replace("keys.json", r#"{"old": "ada", "new": {"subject": "bob", "scopes": ["read"]}}"#);
    until("200".to_owned(), async || status(&listening, "new").await).await;
    assert_eq!(status(&listening, "old").await, "200");
    // A file that can't be used changes nothing. Files are looked at in turn, so the one of the second server comes later.
    folder.replace("late.json", r#"{"old": "ada"}"#);
    let late = listen("late.json").await;
    folder.replace("keys.json", "{");
    folder.replace("late.json", r#"{"new": "bob"}"#);
    until("200".to_owned(), async || status(&late, "new").await).await;
    assert_eq!(status(&listening, "new").await, "200");
    folder.replace("keys.json", r#"{"new": "bob"}"#);
    until("401".to_owned(), async || status(&listening, "old").await).await;
    assert_eq!(status(&listening, "new").await, "200");
}

#[test]
fn a_file_of_api_keys_that_can_not_be_used_is_an_error() {
    let folder = Folder::new("no-api-keys");
    folder.replace("keys.json", r#"{"s3cret": 7}"#);
    for (file, problem) in
        [("keys.json", "owner of key 1"), ("s3cret", "the file of keys does not exist")]
    {
        let keys = ApiKeys { keys: Vec::new(), header: None, file: Some(folder.at(file)) };
        // An option that can't be used is a mistake in the program.
        let refused = std::panic::catch_unwind(|| {
            Server::new("s").options(|options| options.http.auth = vec![keys.into()])
        });
        let error = *refused.unwrap_err().downcast::<String>().unwrap();
        assert!(error.contains(problem) && !error.contains("s3cret"), "{error}");
    }
}

/// The session that a server gives out.
async fn initialize(listening: &Listening) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let answer = post(listening, "", body).await;
    let (_, rest) = answer.split_once("mcp-session-id: ").expect("a session");
    rest.split_once("\r\n").unwrap().0.to_owned()
}

async fn post(listening: &Listening, fields: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = memory::connect(listening.url());
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn state_keys_are_read_again_and_what_an_old_one_sealed_opens_while_it_is_listed() {
    let folder = Folder::new("state-keys");
    let [old, new] = ["o", "n"].map(|letter| letter.repeat(32));
    folder.replace("keys", &old);
    // Two servers of one name, so that the session of one is not in the memory of the other.
    let start = async |file: &str| {
        let server = Server::new("s").tool("one", || async { 1 });
        let server =
            server.options(|options| options.request_state_keys_file = Some(folder.at(file)));
        server.listen(memory::HTTP).await.unwrap()
    };
    let goes_on = async |listening: &Listening, session: &str| {
        let fields = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        post(listening, &fields, ping).await.starts_with("HTTP/1.1 200")
    };
    let first = start("keys").await;
    let of_old = initialize(&first).await;
    folder.replace("only new", format!("{new}\n"));
    let only_new = start("only new").await;
    assert!(!goes_on(&only_new, &of_old).await);
    folder.replace("keys", format!("{new}\n{old}\n"));
    until(true, async || goes_on(&only_new, &initialize(&first).await).await).await;
    let other = start("keys").await;
    assert!(goes_on(&other, &of_old).await, "the old key still opens");
    folder.replace("only new", format!("{new}\n{old}\n"));
    until(true, async || goes_on(&only_new, &of_old).await).await;
}

/// Writes a certificate for `localhost` and its key.
fn certify(folder: &Folder) -> CertificateDer<'static> {
    let key = rcgen::KeyPair::generate().unwrap();
    let about = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = about.self_signed(&key).unwrap();
    folder.replace("cert.pem", certificate.pem());
    folder.replace("key.pem", key.serialize_pem());
    CertificateDer::from_pem_file(folder.at("cert.pem")).unwrap()
}

/// The certificate that a server shows.
async fn shown(
    listening: &Listening,
    known: &[&CertificateDer<'static>],
) -> CertificateDer<'static> {
    let mut roots = RootCertStore::empty();
    for certificate in known {
        roots.add(CertificateDer::clone(certificate)).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    let port = listening.url().rsplit([':', '/']).nth(1).unwrap();
    let tcp = TcpStream::connect(format!("localhost:{port}")).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, tcp).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

#[tokio::test]
async fn certificates_are_read_again() {
    let folder = Folder::new("certificates");
    let first = certify(&folder);
    let tls = Some((folder.at("cert.pem"), folder.at("key.pem")));
    let server = Server::new("s").options(|options| options.http.tls = tls);
    let listening = server.listen("https://localhost:0/mcp").await.unwrap();
    assert_eq!(shown(&listening, &[&first]).await, first);
    let second = certify(&folder);
    until(second.clone(), async || shown(&listening, &[&first, &second]).await).await;
    let third = certify(&folder);
    until(third.clone(), async || shown(&listening, &[&second, &third]).await).await;
}
