//! Clients over https and wss. A process reads its trusted certificates once, so each test runs in its own process.

use std::{env, fs, path::Path, process::Command};

use gudgeon::{Client, Revision, Server, client::Target, error::ErrorKind, protocol::Tool};

const CHILD: &str = "GUDGEON_TLS_FOLDER";

/// Runs the test in a child that trusts this certificate; false in that child.
fn ran_in_a_child(test: &str, trusts: &str) -> bool {
    if env::var_os(CHILD).is_some() {
        return false;
    }
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
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("client_tls::{test}"), "--nocapture"])
        .env(CHILD, &folder)
        .env("SSL_CERT_FILE", folder.join(trusts))
        .env_remove("SSL_CERT_DIR")
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
    let folder = env::var_os(CHILD).unwrap();
    let file = |ending: &str| Path::new(&folder).join(format!("{name}.{ending}"));
    let tls = Some((file("pem"), file("key")));
    Server::new("safe").tool("one", || async { 1 }).options(|it| it.http.tls = tls)
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
                    .options(|it| it.revisions = vec![revision])
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
