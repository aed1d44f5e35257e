//! Clients with credentials, against a server and an authorization server at one address.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use gudgeon::{
    Client, Revision,
    client::{
        ClientBuilder, Target,
        auth::{
            Auth, BoxFuture, ClientCredentials, EnterpriseManaged, OAuth, Store, TokenSource,
            TokenStore, WorkloadIdentity,
        },
    },
    error::{Error, ErrorKind},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::client_http_legacy::legacy;
use crate::support::http::{Answer, Mock, Seen};

/// A server that accepts the token that was issued last.
struct Protected {
    mock: Mock,
    /// The number of tokens that were issued.
    issued: Arc<AtomicUsize>,
}

impl Protected {
    /// Issues tokens with these lives in seconds, the last of which is repeated.
    async fn start(lives: &'static [u64]) -> Self {
        let issued = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&issued);
        let mock = Mock::start(move |request| {
            let origin = format!("http://{}", request.header("host").unwrap_or_default());
            match &*request.path {
                "/.well-known/oauth-protected-resource/mcp" => Answer::json(
                    200,
                    json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}),
                ),
                "/.well-known/oauth-authorization-server" => Answer::json(200, metadata(&origin)),
                "/register" => Answer::json(201, json!({"client_id": "registered"})),
                "/token" => {
                    let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                    let life = lives.get(number - 1).or(lives.last());
                    Answer::json(
                        200,
                        json!({
                            "access_token": format!("t0ken-{number}"), "token_type": "Bearer",
                            "expires_in": life, "refresh_token": format!("refresh-{number}"),
                        }),
                    )
                }
                _ => guard(request, &format!("t0ken-{}", count.load(Ordering::SeqCst))),
            }
        })
        .await;
        Self { mock, issued }
    }

    fn builder(&self, auth: Auth) -> ClientBuilder {
        builder(&self.mock, auth)
    }
}

fn builder(mock: &Mock, auth: Auth) -> ClientBuilder {
    Client::builder(Target::url(&mock.url).unwrap()).options(|options| {
        options.auth = Some(auth);
        options.revisions = vec![Revision::V2025_11_25];
    })
}

fn metadata(origin: &str) -> serde_json::Value {
    json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "code_challenge_methods_supported": ["S256"],
    })
}

/// Answers requests with this token; others get a 401 that names the authorization server.
fn guard(request: &Seen, token: &str) -> Answer {
    match request.header("authorization") {
        Some(given) if given == format!("Bearer {token}") => legacy(request),
        _ => Answer::text(401, "who are you?").with("WWW-Authenticate", "Bearer"),
    }
}

/// A browser whose user agrees. Returns the page that it shows in the end.
fn browser(pages: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Fn(String) -> BoxFuture<()> + Send + Sync> {
    let pages = Arc::clone(pages);
    Arc::new(move |url| {
        let pages = Arc::clone(&pages);
        Box::pin(async move {
            tokio::spawn(async move {
                let page = visit(&redirect(&url)).await;
                pages.lock().unwrap().push(page);
            });
            Ok(())
        })
    })
}

/// Returns the URL to which the authorization server redirects.
fn redirect(url: &str) -> String {
    let field = |name: &str| {
        let query = url.split_once('?').unwrap().1;
        let mut fields = query.split('&').filter_map(|pair| pair.split_once('='));
        fields.find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    let base = field("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    format!("{base}?code=c0de&state={}", field("state"))
}

async fn visit(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

fn sign_in(change: impl FnOnce(&mut OAuth)) -> Auth {
    let mut auth = OAuth::default();
    change(&mut auth);
    auth.into()
}

#[tokio::test]
async fn a_user_signs_in_with_a_browser() {
    let server = Protected::start(&[3600]).await;
    let pages: Arc<Mutex<Vec<String>>> = Arc::default();
    let auth = sign_in(|oauth| oauth.open_url = Some(browser(&pages)));
    let client = server.builder(auth).connect().await.unwrap();
    assert_eq!(client.call_tool("echo", ()).await.unwrap().text(), "done");
    client.close().await;
    let page = loop {
        let shown = pages.lock().unwrap().pop();
        match shown {
            Some(page) => break page,
            None => tokio::task::yield_now().await,
        }
    };
    assert!(page.contains("You are signed in"), "{page}");
    let sent = server.mock.seen().into_iter().filter(|request| request.path == "/mcp");
    let (with, without): (Vec<_>, Vec<_>) =
        sent.partition(|request| request.header("authorization") == Some("Bearer t0ken-1"));
    assert_eq!(without.len(), 1, "the first request");
    for method in ["GET", "DELETE", "POST"] {
        assert!(with.iter().any(|request| request.method == method), "{method}");
    }
}

/// Extensions are declared in both eras (SEP-2133, "Client Capabilities"; 2026-07-28, Extensions, "Negotiation").
#[tokio::test(start_paused = true)]
async fn grants_of_extensions_are_declared() {
    let source: TokenSource = Arc::new(|| Box::pin(async { Ok("t0ken".into()) }));
    let secret = Some("s".to_owned());
    let credentials: [(Auth, Option<&str>); 4] = [
        (OAuth::default().into(), None),
        (WorkloadIdentity { token: Some(source.clone()), ..Default::default() }.into(), None),
        (
            ClientCredentials { client_secret: secret, ..Default::default() }.into(),
            Some("io.modelcontextprotocol/oauth-client-credentials"),
        ),
        (
            EnterpriseManaged { identity_token: Some(source), ..Default::default() }.into(),
            Some("io.modelcontextprotocol/enterprise-managed-authorization"),
        ),
    ];
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for (auth, extension) in credentials.clone() {
            let mock = Mock::start(|_| Answer::text(401, "who are you?")).await;
            let builder =
                builder(&mock, auth).options(|options| options.revisions = vec![revision]);
            builder.connect().await.expect_err("nobody is let in");
            let params = mock.seen()[0].body["params"].clone();
            let declared = match revision {
                Revision::V2025_11_25 => &params["capabilities"],
                _ => &params["_meta"]["io.modelcontextprotocol/clientCapabilities"],
            };
            let expected = match extension {
                None => json!({}),
                Some(extension) => json!({ "extensions": { extension: {} } }),
            };
            assert_eq!(*declared, expected, "{revision:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_handles_the_redirect_itself() {
    let server = Protected::start(&[3600]).await;
    let auth = sign_in(|oauth| {
        oauth.on_redirect = Some(Arc::new(|url| Box::pin(async move { Ok(redirect(&url)) })));
    });
    let client = server.builder(auth).connect().await.unwrap();
    client.call_tool("echo", ()).await.unwrap();

    let auth = sign_in(|oauth| {
        oauth.on_redirect = Some(Arc::new(|_| {
            Box::pin(async { Err(Error::new(ErrorKind::Auth, "no window is open")) })
        }));
    });
    let error = server.builder(auth).connect().await.unwrap_err();
    assert_eq!((error.kind, error.http_status), (ErrorKind::Auth, Some(401)));
    assert!(error.to_string().contains("no window is open"), "{error}");
    let cause = std::error::Error::source(&error).expect("the error of the function");
    assert_eq!(cause.to_string(), "no window is open");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_programs_own_store_is_the_cause_of_a_failed_sign_in() {
    /// A store that can't be read, or whose lock can't be taken.
    struct Away;

    fn away<T: Send + 'static>() -> BoxFuture<T> {
        Box::pin(async { Err(Error::new(ErrorKind::Auth, "the database is away")) })
    }

    impl TokenStore for Away {
        fn get(&self, _: String) -> BoxFuture<Option<Vec<u8>>> {
            away()
        }

        fn set(&self, _: String, _: Vec<u8>) -> BoxFuture<()> {
            away()
        }

        fn delete(&self, _: String) -> BoxFuture<()> {
            away()
        }
    }

    let server = Protected::start(&[3600]).await;
    for store in [Store::Own(Arc::new(Away)), Store::Shared(Arc::new(Away), Arc::new(|_| away()))] {
        let auth = sign_in(|options| options.store = store);
        let error = server.builder(auth).connect().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
        assert!(error.to_string().contains("the database is away"), "{error}");
        let cause = std::error::Error::source(&error).expect("the error of the store");
        assert_eq!(cause.to_string(), "the database is away");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_share_a_file_renew_a_token_once() {
    let server = Protected::start(&[0, 3600]).await;
    let folder = std::env::temp_dir().join(format!("gudgeon-shared-{}", std::process::id()));
    let path: PathBuf = folder.join("tokens.json");
    let auth = sign_in(|oauth| {
        oauth.store = Store::File(path.clone());
        oauth.on_redirect = Some(Arc::new(|url| Box::pin(async move { Ok(redirect(&url)) })));
    });
    server.builder(auth).connect().await.unwrap().close().await;
    let before = server.issued.load(Ordering::SeqCst);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let builder = server.builder(sign_in(|oauth| oauth.store = Store::File(path.clone())));
        clients.spawn(async move {
            let client = builder.connect().await?;
            let calls = (0..10).map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.call_tool("echo", ()).await.map(drop) })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await.expect("no panic")?;
            }
            Ok::<_, Error>(())
        });
    }
    for outcome in clients.join_all().await {
        outcome.unwrap();
    }
    assert!(server.issued.load(Ordering::SeqCst) <= before + 1);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_is_sent_and_not_shown() {
    let mock = Mock::start(|request| guard(request, "t0ken")).await;
    let client = builder(&mock, Auth::Token("t0ken".into())).connect().await.unwrap();
    client.call_tool("echo", ()).await.unwrap();
    assert!(
        mock.seen().iter().all(|request| request.header("authorization") == Some("Bearer t0ken"))
    );
    let builder = builder(&mock, Auth::Token("wr0ng".into()));
    let error = builder.connect().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(!format!("{error:?}").contains("wr0ng"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_source_is_asked_again_once_its_token_is_rejected() {
    let valid = Arc::new(AtomicUsize::new(1));
    let accepted = Arc::clone(&valid);
    let mock =
        Mock::start(move |request| guard(request, &accepted.load(Ordering::SeqCst).to_string()))
            .await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let source: TokenSource = Arc::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move { Ok(number.min(2).to_string()) })
    });
    let client = builder(&mock, Auth::Source(source)).connect().await.unwrap();
    client.call_tool("echo", ()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    valid.store(2, Ordering::SeqCst);
    client.call_tool("echo", ()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    valid.store(3, Ordering::SeqCst);
    assert_eq!(client.call_tool("echo", ()).await.unwrap_err().kind, ErrorKind::Auth);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_every_token_is_rejected_ends() {
    let mock = Mock::start(|request| guard(request, "none")).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let source: TokenSource = Arc::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(format!("t0ken-{number}")) })
    });
    let connected = builder(&mock, Auth::Source(source)).connect();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), connected).await;
    let error = ended.expect("it ends").unwrap_err();
    assert_eq!((error.kind, error.http_status), (ErrorKind::Auth, Some(401)));
    assert!(error.to_string().contains("the server rejected the credentials"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_token_with_its_scheme_is_refused_before_it_is_sent() {
    let mock = Mock::start(|request| guard(request, "k")).await;
    for token in ["Bearer k", "bearer k"] {
        let error = builder(&mock, Auth::Token(token.into())).connect().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        assert!(error.to_string().contains("pass the token alone"), "{error}");
    }
    assert!(mock.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn credentials_need_a_server_over_http() {
    let refused = |target: Target, headers: Vec<(String, String)>| async {
        let builder = Client::builder(target).options(|options| {
            options.auth = Some(Auth::Token("t0ken".into()));
            options.headers = headers;
        });
        builder.connect().await.unwrap_err().to_string()
    };
    for target in ["tcp://127.0.0.1:9", "ws://127.0.0.1:9"] {
        let error = refused(Target::url(target).unwrap(), Vec::new()).await;
        assert!(error.contains("http or https"), "{error}");
    }
    let headers = vec![("authorization".into(), "Bearer other".into())];
    let error = refused(Target::url("http://127.0.0.1:9").unwrap(), headers).await;
    assert!(error.contains("leave one of them out"), "{error}");
    for token in ["", "a\nb", "a b"] {
        let builder = Client::builder(Target::url("http://127.0.0.1:9").unwrap())
            .options(|options| options.auth = Some(Auth::Token(token.into())));
        let error = builder.connect().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        assert!(!error.to_string().contains("a b"), "{error}");
    }
}
