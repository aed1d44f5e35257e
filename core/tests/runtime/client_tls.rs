//! Clients over https and wss. A process reads its trusted certificates once, so each test runs in its own process.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use gudgeon::{
    Client, Revision, Server,
    client::{Pem, Target},
    error::{Error, ErrorKind},
    protocol::Tool,
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

const CHILD: &str = "GUDGEON_TLS_FOLDER";

/// Makes three certificates with their keys in a folder for a test.
fn certificates(test: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("gudgeon-{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for name in ["server", "other", "authority"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut about = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        if name == "authority" {
            about.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        fs::write(folder.join(format!("{name}.pem")), about.self_signed(&key).unwrap().pem())
            .unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    folder
}

/// Runs the test in a child that trusts this certificate; false in that child.
fn ran_in_a_child(test: &str, trusts: &str) -> bool {
    ran_with(test, |folder| vec![("SSL_CERT_FILE", folder.join(trusts))])
}

/// Runs the test in a child with these environment variables; false in that child.
fn ran_with(test: &str, variables: impl FnOnce(&Path) -> Vec<(&'static str, PathBuf)>) -> bool {
    if env::var_os(CHILD).is_some() {
        return false;
    }
    let folder = certificates(test);
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("client_tls::{test}"), "--nocapture"])
        .env(CHILD, &folder)
        .env_remove("SSL_CERT_FILE")
        .env_remove("SSL_CERT_DIR")
        .env_remove("NODE_EXTRA_CA_CERTS")
        .envs(variables(&folder))
        .output()
        .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    true
}

fn server() -> Server {
    serving("server")
}

fn serving(name: &str) -> Server {
    serving_from(Path::new(&env::var_os(CHILD).unwrap()), name)
}

fn serving_from(folder: &Path, name: &str) -> Server {
    let file = |ending: &str| folder.join(format!("{name}.{ending}"));
    let tls = Some((file("pem"), file("key")));
    Server::new("safe").tool("one", || async { 1 }).options(|options| options.http.tls = tls)
}

#[test]
fn https_and_wss_in_both_eras() {
    if ran_in_a_child("https_and_wss_in_both_eras", "server.pem") {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listening = server().listen("https://localhost:0/mcp").await.unwrap();
        for scheme in ["https", "wss"] {
            let url = listening.url().replacen("https", scheme, 1);
            for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
                let target = Target::url(&url).unwrap();
                let client = Client::builder(target)
                    .options(|options| options.revisions = vec![revision])
                    .connect()
                    .await
                    .unwrap();
                assert_eq!(client.server().revision, revision);
                assert_eq!(client.list::<Tool>().await.unwrap().len(), 1);
                client.close().await;
            }
        }
        listening.shut_down().await;
    });
}

#[test]
fn a_ca_certificate_is_rejected_with_the_fix() {
    if ran_in_a_child("a_ca_certificate_is_rejected_with_the_fix", "authority.pem") {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listening = serving("authority").listen("https://localhost:0/mcp").await.unwrap();
        let error = Client::connect(Target::url(listening.url()).unwrap()).await.unwrap_err();
        assert!(format!("{error:?}").contains("basicConstraints=CA:FALSE"), "{error:?}");
        listening.shut_down().await;
    });
}

#[test]
fn an_untrusted_certificate_is_rejected() {
    if ran_in_a_child("an_untrusted_certificate_is_rejected", "other.pem") {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listening = server().listen("https://localhost:0/mcp").await.unwrap();
        for scheme in ["https", "wss"] {
            let url = listening.url().replacen("https", scheme, 1);
            let error = Client::connect(Target::url(&url).unwrap()).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Connect);
            let said = format!("{error:?}");
            assert!(said.contains("the TLS handshake failed") && said.contains("trusts"), "{said}");
        }
        listening.shut_down().await;
    });
}

/// Connects to a server that has the certificate `server`.
async fn connected(url: &str, ca: Option<Pem>) -> Result<(), Error> {
    let builder = Client::builder(Target::url(url)?).options(|options| options.ca = ca);
    builder.connect().await?.close().await;
    Ok(())
}

#[test]
fn certificates_of_node_are_trusted_in_addition() {
    let name = "certificates_of_node_are_trusted_in_addition";
    let variables = |folder: &Path| {
        let other = folder.join("other.pem");
        vec![("SSL_CERT_FILE", other), ("NODE_EXTRA_CA_CERTS", folder.join("server.pem"))]
    };
    if ran_with(name, variables) {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        for server in ["server", "other"] {
            let listening = serving(server).listen("https://localhost:0/mcp").await.unwrap();
            connected(listening.url(), None).await.unwrap();
            listening.shut_down().await;
        }
    });
}

#[test]
fn folders_of_certificates_are_trusted() {
    let folders = |folder: &Path| {
        let folders = [folder.join("missing"), folder.to_path_buf()];
        vec![("SSL_CERT_DIR", env::join_paths(folders).unwrap().into())]
    };
    if ran_with("folders_of_certificates_are_trusted", folders) {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listening = server().listen("https://localhost:0/mcp").await.unwrap();
        connected(listening.url(), None).await.unwrap();
        listening.shut_down().await;
    });
}

#[test]
fn a_wrong_file_of_the_environment_is_named() {
    let name = "a_wrong_file_of_the_environment_is_named";
    let variables = |folder: &Path| {
        let key = folder.join("server.key");
        vec![("SSL_CERT_FILE", folder.join("server.pem")), ("NODE_EXTRA_CA_CERTS", key)]
    };
    if ran_with(name, variables) {
        return;
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listening = server().listen("https://localhost:0/mcp").await.unwrap();
        let error = connected(listening.url(), None).await.unwrap_err().to_string();
        assert!(error.contains("NODE_EXTRA_CA_CERTS: ") && error.contains("server.key"), "{error}");
        assert!(error.contains("it has no certificate in PEM format"), "{error}");
        listening.shut_down().await;
    });
}

#[test]
fn the_authorities_of_the_option_replace_all_others() {
    let name = "the_authorities_of_the_option_replace_all_others";
    if ran_in_a_child(name, "server.pem") {
        return;
    }
    let folder = PathBuf::from(env::var_os(CHILD).unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let listening = serving("other").listen("https://localhost:0/mcp").await.unwrap();
        let file = folder.join("other.pem");
        let text = fs::read_to_string(&file).unwrap();
        for scheme in ["https", "wss"] {
            let url = listening.url().replacen("https", scheme, 1);
            for ca in [Pem::from(file.clone()), text.as_str().into(), text.as_bytes().into()] {
                connected(&url, Some(ca)).await.unwrap();
            }
            connected(&url, None).await.unwrap_err();
        }
        listening.shut_down().await;
        let listening = server().listen("https://localhost:0/mcp").await.unwrap();
        let error = connected(listening.url(), Some(file.into())).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        listening.shut_down().await;
    });
}

/// Serves one connection at a time that shows a certificate, to each request 404 and the number of certificates of the client.
async fn ask_for_certificates(folder: PathBuf, listener: TcpListener) {
    let file = |name: &str| folder.join(name);
    let mut clients = RootCertStore::empty();
    clients.add(CertificateDer::from_pem_file(file("other.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(clients.into(), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(file("server.key")).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut stream) = acceptor.accept(stream).await else { continue };
        let count = stream.get_ref().1.peer_certificates().map_or(0, <[_]>::len);
        let _ = stream.read(&mut [0; 4096]).await;
        let head = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 1";
        let _ = stream.write_all(format!("{head}\r\n\r\n{count}").as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

#[tokio::test]
async fn the_server_and_nobody_else_is_shown_the_certificate() {
    let folder = certificates("the_server_and_nobody_else_is_shown_the_certificate");
    let listener = TcpListener::bind("localhost:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(ask_for_certificates(folder.clone(), listener));
    for (certificate, count) in [(true, "1"), (false, "0")] {
        let target = Target::url(&format!("https://localhost:{}/mcp", address.port())).unwrap();
        let builder = Client::builder(target).options(|options| {
            options.ca = Some(folder.join("server.pem").into());
            let file = |name: &str| Pem::from(folder.join(name));
            options.certificate = certificate.then(|| (file("other.pem"), file("other.key")));
        });
        let error = builder.connect().await.unwrap_err();
        assert_eq!(error.http_status, Some(404), "{error:?}");
        assert!(format!("{error:?}").contains(&format!("404 Not Found: {count}")), "{error:?}");
    }
    serving.abort();
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_wrong_file_is_an_error_that_names_the_option() {
    let folder = certificates("a_wrong_file_is_an_error_that_names_the_option");
    let file = |name: &str| Pem::from(folder.join(name));
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
    for (ca, certificate, expected) in [
        (Some(file("missing.pem")), None, ["ca: ", "missing.pem can't be used: No such file"]),
        (Some(folder.clone().into()), None, ["ca: ", "can't be used: it is not a regular file"]),
        (
            Some(file("server.key")),
            None,
            ["ca: ", "server.key can't be used: it has no certificate"],
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n".into()),
            None,
            ["ca: the text can't be used: ", "base64"],
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into()),
            None,
            ["ca: the text can't be used: ", "its certificate 1 is not valid"],
        ),
        (
            None,
            Some((file("server.pem"), file("server.pem"))),
            ["certificate: ", "server.pem can't be used: it has no private key"],
        ),
        (
            None,
            Some((file("server.pem"), file("other.key"))),
            ["other.key can't be used: it is not the key of ", "server.pem"],
        ),
        (
            None,
            Some((
                file("server.pem"),
                format!("{encrypted}\nAAAA\n{}", encrypted.replace("BEGIN", "END")).into(),
            )),
            ["certificate: the text can't be used: ", "it is encrypted"],
        ),
    ] {
        let target = Target::url("https://localhost:1/mcp").unwrap();
        let builder = Client::builder(target).options(|options| {
            options.ca = ca;
            options.certificate = certificate;
        });
        let error = builder.connect().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse, "{error}");
        let shown = error.to_string();
        assert!(expected.iter().all(|part| shown.contains(part)), "{shown}");
    }
    fs::remove_dir_all(folder).unwrap();
}
