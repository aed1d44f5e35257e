//! `gudgeon::testing::auth`: servers and clients against its authorization server.

use std::{sync::Arc, time::Duration};

use gudgeon::{
    Client, Context, Server, Tool,
    client::{
        Target,
        auth::{Auth, ClientCredentials, OAuth, WorkloadIdentity},
    },
    error::{Error, ErrorKind},
    server::{Listening, auth::Jwt},
    testing::auth::{
        AuthFaults, AuthorizationServer, AuthorizationServerOptions, Consent, Dpop, TokenOptions,
        generate_key,
    },
};
use serde_json::json;
use tokio::net::TcpStream;

async fn started(options: AuthorizationServerOptions) -> AuthorizationServer {
    AuthorizationServer::listen(options).await.unwrap()
}

/// Serves tools to callers with a token of `provider`.
async fn shelf(provider: &AuthorizationServer) -> Listening {
    let who = |ctx: Context| async move {
        let principal = ctx.principal().expect("every caller has a token");
        let scopes: Vec<_> = principal.scopes.iter().map(String::as_str).collect();
        [&[principal.subject.as_str()], &scopes[..]].concat().join(" ")
    };
    let tokens = Jwt { issuer: provider.issuer().into(), ..Jwt::default() };
    Server::new("shelf")
        .tool("who", who)
        .add(Tool::new("write", || async { "written" }).scopes(["write"]))
        .options(|options| options.http.auth = vec![tokens.into()])
        .listen("http://127.0.0.1:0/mcp")
        .await
        .unwrap()
}

async fn call(shelf: &Listening, auth: impl Into<Auth>, tools: &[&str]) -> Result<String, Error> {
    let auth = auth.into();
    let target = Target::url(shelf.url()).unwrap();
    let client =
        Client::builder(target).options(|options| options.auth = Some(auth)).connect().await?;
    let mut text = String::new();
    for tool in tools {
        text = client.call_tool(tool, ()).await?.text();
    }
    Ok(text)
}

fn browsed(provider: &AuthorizationServer) -> OAuth {
    let browser = provider.clone();
    let on_redirect = Arc::new(move |url: String| -> gudgeon::client::auth::BoxFuture<String> {
        let browser = browser.clone();
        Box::pin(async move { browser.browse(&url).await })
    });
    OAuth { on_redirect: Some(on_redirect), ..OAuth::default() }
}

#[tokio::test]
async fn a_user_signs_in_and_gets_more_scopes() {
    let scopes = Some(vec!["write".into()]);
    let options =
        AuthorizationServerOptions { subject: "ada".into(), scopes, ..Default::default() };
    let provider = started(options).await;
    let shelf = shelf(&provider).await;
    assert_eq!(call(&shelf, browsed(&provider), &["who"]).await.unwrap(), "ada");
    let text = call(&shelf, browsed(&provider), &["write", "who"]).await.unwrap();
    assert_eq!(text, "ada write");
    let requests = provider.requests();
    let token = requests.iter().find(|request| request.path == "/token").unwrap();
    assert_eq!((token.method.as_str(), token.status), ("POST", 200));
    assert_eq!((token.form["resource"].as_str(), token.form["code"].as_str()), (shelf.url(), "…"));
}

#[tokio::test]
async fn programs_sign_in() {
    let (private_key, public) = generate_key().unwrap();
    let platform = started(AuthorizationServerOptions::default()).await;
    let provider = started(AuthorizationServerOptions {
        clients: vec![json!({ "client_id": "signer", "jwks": { "keys": [public] } })],
        trusted_issuers: vec![platform.issuer().into()],
        ..Default::default()
    })
    .await;
    let shelf = shelf(&provider).await;
    let signer = ClientCredentials {
        client_id: "signer".into(),
        private_key: Some(private_key),
        ..ClientCredentials::default()
    };
    assert_eq!(call(&shelf, signer, &["who"]).await.unwrap(), "signer");
    let audience = Some(provider.issuer().to_owned());
    let token = Arc::new(move || -> gudgeon::client::auth::BoxFuture<String> {
        let subject = Some("build-7".into());
        let audience = audience.clone();
        let token = platform.token(TokenOptions { subject, audience, ..Default::default() });
        Box::pin(async move { token })
    });
    let workload = WorkloadIdentity { token: Some(token), ..WorkloadIdentity::default() };
    assert_eq!(call(&shelf, workload, &["who"]).await.unwrap(), "build-7");
}

#[tokio::test]
async fn tokens_are_issued_on_demand() {
    let provider = started(AuthorizationServerOptions::default()).await;
    let shelf = shelf(&provider).await;
    let asked = TokenOptions { audience: Some(shelf.url().into()), ..Default::default() };
    let right = provider.token(TokenOptions { scopes: vec!["a".into()], ..asked.clone() }).unwrap();
    assert_eq!(call(&shelf, Auth::Token(right), &["who"]).await.unwrap(), "user a");
    for wrong in [
        TokenOptions { audience: Some("https://other.example".into()), ..asked.clone() },
        TokenOptions { expires_in: Some(-600.0), ..asked.clone() },
        TokenOptions { dpop_key: Some("thumbprint".into()), ..asked.clone() },
    ] {
        let token = provider.token(wrong).unwrap();
        let error = call(&shelf, Auth::Token(token), &["who"]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth);
    }
    let key = Some(json!({ "kty": "odd" }));
    let error = provider.token(TokenOptions { dpop_key: key, ..asked }).unwrap_err();
    assert!(error.to_string().contains("dpop_key"), "{error}");
    let token = provider.identity_token("app", Some("ada"), 60.0).unwrap();
    assert_eq!(token.split('.').count(), 3);
}

#[tokio::test]
async fn faults_fail_a_sign_in() {
    let faults = AuthFaults { no_pkce: true, ..AuthFaults::default() };
    let options = AuthorizationServerOptions { faults, ..Default::default() };
    let provider = started(options).await;
    let shelf = shelf(&provider).await;
    let error = call(&shelf, browsed(&provider), &["who"]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Auth);
    assert!(error.to_string().contains("PKCE"), "{error}");
    let errors = [("token".to_owned(), 1)].into();
    provider.set_faults(AuthFaults { errors, ..AuthFaults::default() }).unwrap();
    let error = call(&shelf, browsed(&provider), &["who"]).await.unwrap_err();
    assert!(error.to_string().contains("HTTP 500"), "{error}");
    provider.set_faults(AuthFaults::default()).unwrap();
    assert_eq!(call(&shelf, browsed(&provider), &["who"]).await.unwrap(), "user");
    let faults = AuthFaults { delay: Duration::from_secs(700), ..AuthFaults::default() };
    let error = provider.set_faults(faults).unwrap_err();
    assert!(error.to_string().contains("delay is from 0 to 600 seconds"), "{error}");
}

#[tokio::test]
async fn the_user_may_decline_and_tokens_may_have_to_be_bound() {
    let provider = started(AuthorizationServerOptions {
        consent: Consent::Deny,
        dpop: Dpop::Required,
        ..Default::default()
    })
    .await;
    let shelf = shelf(&provider).await;
    let error = call(&shelf, browsed(&provider), &["who"]).await.unwrap_err();
    assert!(error.to_string().contains("access_denied"), "{error}");
    let error = provider.browse("https://elsewhere.example/").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Misuse);
}

#[tokio::test]
async fn it_listens_until_the_last_clone_is_dropped() {
    let provider = started(AuthorizationServerOptions::default()).await;
    let address = provider.issuer().strip_prefix("http://").unwrap().to_owned();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let taken =
        AuthorizationServer::listen(AuthorizationServerOptions { port, ..Default::default() });
    assert!(taken.await.unwrap_err().to_string().contains(&address));
    let clone = provider.clone();
    drop(provider);
    assert!(TcpStream::connect(&address).await.is_ok());
    drop(clone);
    let ended = async {
        while TcpStream::connect(&address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it no longer listens");
}

#[tokio::test]
async fn options_that_can_not_work_are_refused() {
    let listen = AuthorizationServer::listen;
    let wrong = AuthorizationServerOptions { subject: String::new(), ..Default::default() };
    let error = listen(wrong).await.unwrap_err();
    assert_eq!((error.kind, error.to_string().contains("subject: ")), (ErrorKind::Misuse, true));
    let clients = vec![json!({ "client_id": "app", "client_secret": "s3cret", "secret": 1 })];
    let wrong = AuthorizationServerOptions { clients, ..Default::default() };
    assert!(!format!("{wrong:?}").contains("s3cret"));
    let error = listen(wrong).await.unwrap_err();
    assert!(error.to_string().contains("secret"), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}
