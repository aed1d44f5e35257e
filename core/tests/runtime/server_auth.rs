//! A listening server that authenticates its callers, with an authorization server of the tests' own.
#![allow(clippy::needless_pass_by_value, reason = "`json!` at the call reads best by value")]

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gudgeon::{
    Context, Listening, Server, Tool,
    protocol::Principal,
    server::auth::{ApiKeys, Auth, Jwt, VerifyError},
    transport::memory_network::HOST,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    http::{Answer, Mock},
    issuer::{Signer, key_set},
    memory,
};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// An authorization server with one key.
async fn issuer(signer: &Arc<Signer>) -> Mock {
    let signer = Arc::clone(signer);
    Mock::start(move |seen| {
        let origin = format!("http://{}", seen.header("host").unwrap());
        match &*seen.path {
            "/.well-known/openid-configuration" => {
                Answer::json(200, json!({ "issuer": origin, "jwks_uri": format!("{origin}/keys") }))
            }
            "/keys" => Answer::json(200, serde_json::from_slice(&key_set(&[&signer])).unwrap()),
            _ => Answer::empty(404),
        }
    })
    .await
}

fn origin(mock: &Mock) -> String {
    format!("http://{HOST}:{}", mock.port)
}

fn unix() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

async fn listen(auth: impl Into<Auth>) -> Listening {
    let auth = vec![auth.into()];
    let server = Server::new("shelf").tool("who", |ctx: Context| async move {
        ctx.principal().map_or("nobody".to_owned(), |principal| principal.subject.clone())
    });
    let server = server.options(|options| options.http.auth = auth);
    server.listen(memory::HTTP).await.unwrap()
}

/// Keys with the subjects of their owners.
fn keys<const N: usize>(keys: [(&str, &str); N]) -> ApiKeys {
    let keys = keys.map(|(key, subject)| (key.to_owned(), Principal::new(subject)));
    ApiKeys { keys: keys.into(), header: None, file: None }
}

fn address(listening: &Listening) -> String {
    listening.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned()
}

/// Sends text and returns the answer, after which the server closes.
async fn exchange(listening: &Listening, request: &str) -> String {
    let mut stream = memory::connect(listening.url());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut all));
    read.await.expect("an answer").unwrap();
    String::from_utf8(all).unwrap()
}

/// A call with these further headers.
fn call(listening: &Listening, headers: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"who","arguments":{{}},{META}}}}}"#
    );
    format!(
        "POST /mcp?access_token=none HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: who\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        address(listening),
        body.len()
    )
}

/// A request for a WebSocket with these further headers.
fn upgrade(listening: &Listening, headers: &str) -> String {
    format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n",
        address(listening)
    )
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[track_caller]
fn assert_has(answer: &str, parts: &[&str]) {
    for part in parts {
        assert!(answer.contains(part), "{answer}\nhas no {part}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_issuer_is_discovered_and_its_tokens_are_accepted() {
    let signer = Arc::new(Signer::new("one"));
    let issuer = issuer(&signer).await;
    let listening =
        listen(Jwt { issuer: origin(&issuer), scopes: vec!["books".into()], ..Jwt::default() })
            .await;
    assert_eq!(issuer.seen().len(), 0, "nothing is fetched before a token comes");
    let metadata =
        format!("http://{}/.well-known/oauth-protected-resource/mcp", address(&listening));
    let challenge =
        format!("www-authenticate: Bearer resource_metadata=\"{metadata}\", scope=\"books\"");
    let answer = exchange(&listening, &call(&listening, "")).await;
    assert_has(&answer, &["HTTP/1.1 401 ", &challenge]);

    let token = |changes: Value| {
        let mut claims = json!({ "iss": origin(&issuer), "aud": listening.url(), "iat": unix(),
            "exp": unix() + 300, "scope": "books" });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        bearer(&signer.token(claims))
    };
    let answer = exchange(&listening, &call(&listening, &token(json!({})))).await;
    assert_has(&answer, &["HTTP/1.1 200 ", r#""text":"ada""#]);
    let paths: Vec<_> = issuer.seen().into_iter().map(|request| request.path).collect();
    assert_eq!(
        paths,
        ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/keys"]
    );
    for (changes, reason) in [
        (json!({ "aud": "http://127.0.0.1:1/mcp" }), "the token is for another audience"),
        (json!({ "exp": unix() - 61 }), "the token has expired"),
        (json!({ "iss": "https://evil.example" }), "the token is of another issuer"),
    ] {
        let answer = exchange(&listening, &call(&listening, &token(changes))).await;
        let error = format!("Bearer error=\"invalid_token\", error_description=\"{reason}\"");
        assert_has(&answer, &["HTTP/1.1 401 ", &error, &metadata]);
    }
    let answer = exchange(&listening, &call(&listening, &token(json!({ "scope": "x" })))).await;
    let error = format!(
        "Bearer error=\"insufficient_scope\", scope=\"books\", resource_metadata=\"{metadata}\""
    );
    assert_has(&answer, &["HTTP/1.1 403 ", &error]);
    let twice = token(json!({})).repeat(2);
    let answer = exchange(&listening, &call(&listening, &twice)).await;
    assert_has(&answer, &["HTTP/1.1 400 ", "Bearer error=\"invalid_request\""]);
    assert_eq!(issuer.seen().len(), 3, "the keys are kept");
}

#[tokio::test(start_paused = true)]
async fn the_document_about_the_resource_is_public() {
    let signer = Arc::new(Signer::new("one"));
    let issuer = issuer(&signer).await;
    let listening = listen(&*origin(&issuer)).await;
    for path in
        ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]
    {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nOrigin: https://page.example\r\nConnection: close\r\n\r\n",
            address(&listening)
        );
        let answer = exchange(&listening, &request).await;
        assert_has(&answer, &["HTTP/1.1 200 ", "access-control-allow-origin: *"]);
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["resource"], listening.url());
        assert_eq!(body["authorization_servers"], json!([origin(&issuer)]));
    }
    let request = format!(
        "GET /.well-known/oauth-protected-resource/x HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        address(&listening)
    );
    assert_has(&exchange(&listening, &request).await, &["HTTP/1.1 404 "]);
}

/// A token for another server on this machine is of no use, whatever `Host` comes with it.
#[tokio::test(start_paused = true)]
async fn a_request_can_not_choose_the_audience() {
    let signer = Arc::new(Signer::new("one"));
    let issuer = issuer(&signer).await;
    let listening = listen(&*origin(&issuer)).await;
    let here = address(&listening);
    let port = here.rsplit_once(':').unwrap().1;
    let other = if port == "9999" { "9998" } else { "9999" };
    for (host, status) in [
        (here.clone(), "200"),
        (format!("localhost:{port}"), "200"),
        (format!("127.0.0.1:{other}"), "500"),
        ("127.0.0.1".to_owned(), "500"),
    ] {
        let token = signer
            .token(json!({ "iss": origin(&issuer), "aud": format!("http://{host}/mcp"),
            "iat": unix(), "exp": unix() + 300 }));
        let request = call(&listening, &bearer(&token));
        let request = request.replace(&format!("Host: {here}"), &format!("Host: {host}"));
        let answer = exchange(&listening, &request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
}

/// Keys and functions have no audience, so that the server need not know its own URL for them.
#[tokio::test(start_paused = true)]
async fn keys_need_no_public_url() {
    let unknown = Auth::verify(|_, _| std::future::ready(Ok(None)));
    for auth in [vec![], vec![unknown]] {
        let mut all = vec![keys([("k3y", "robot")]).into()];
        all.extend(auth);
        let server = Server::new("shelf").tool("who", || async { "" });
        let server = server.options(|options| options.http.auth = all);
        let listening = server.listen(memory::HTTP).await.unwrap();
        let here = address(&listening);
        let other = if here.ends_with(":9999") { "127.0.0.1:9998" } else { "127.0.0.1:9999" };
        for (headers, status) in
            [(bearer("k3y"), "200"), (bearer("other"), "401"), (String::new(), "401")]
        {
            let request = call(&listening, &headers);
            let request = request.replace(&format!("Host: {here}"), &format!("Host: {other}"));
            let answer = exchange(&listening, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_answered_before_its_body() {
    let listening = listen(keys([("k3y", "robot")])).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n",
        address(&listening)
    );
    let answer = exchange(&listening, &head).await;
    assert_has(&answer, &["HTTP/1.1 401 ", "www-authenticate: Bearer\r\n"]);
    let answer = exchange(&listening, &call(&listening, &bearer("k3y"))).await;
    assert_has(&answer, &["HTTP/1.1 200 ", r#""text":"robot""#]);
    let answer = exchange(&listening, &call(&listening, &bearer("other"))).await;
    assert_has(&answer, &["HTTP/1.1 401 ", "invalid_token"]);
}

/// A session belongs to the principal that opened it; another's is 404.
#[tokio::test(start_paused = true)]
async fn a_session_is_that_of_its_principal() {
    let listening = listen(keys([("a", "ada"), ("b", "bob")])).await;
    let post = |headers: &str, body: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            address(&listening),
            body.len()
        )
    };
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let opened = exchange(&listening, &post(&bearer("a"), initialize)).await;
    let id =
        opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    for (key, status) in [("a", "200"), ("b", "404"), ("x", "401")] {
        let headers = format!(
            "{}Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n",
            bearer(key),
            id.trim()
        );
        let answer = exchange(&listening, &post(&headers, ping)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{key}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_connection_is_authenticated_too() {
    let listening = listen(keys([("k3y", "robot")])).await;
    for (headers, status) in [("", "401"), (&*bearer("x"), "401"), (&*bearer("k3y"), "101")] {
        let mut stream = memory::connect(listening.url());
        stream.write_all(upgrade(&listening, headers).as_bytes()).await.unwrap();
        let mut buffer = vec![0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        let answer = String::from_utf8_lossy(&buffer[..count]);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_their_token() {
    // The function accepts every token, although it has expired.
    let generous = Auth::verify(|_, _| {
        let mut principal = Principal::new("eve");
        principal.claims.insert("exp".into(), 1.into());
        std::future::ready(Ok(Some(principal)))
    });
    let listening = listen(generous).await;
    let answer = exchange(&listening, &call(&listening, &bearer("t"))).await;
    assert_has(&answer, &["HTTP/1.1 200 ", r#""text":"eve""#]);

    let mut socket = memory::connect(listening.url());
    socket.write_all(upgrade(&listening, &bearer("t")).as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut received));
    read.await.expect("the server closes").unwrap();
    let text = String::from_utf8_lossy(&received);
    assert_has(&text, &["HTTP/1.1 101 ", "the access token has expired"]);
    let policy_violation = 1_008_u16.to_be_bytes();
    let close =
        received.windows(4).find(|bytes| bytes[0] == 0x88 && bytes[2..] == policy_violation);
    assert!(close.is_some(), "{text}");

    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    );
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: subscriptions/listen\r\n{}Content-Length: {}\r\n\r\n{body}",
        address(&listening),
        bearer("t"),
        body.len()
    );
    let mut stream = memory::connect(listening.url());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut received = String::new();
    let ends = async {
        let mut buffer = [0; 4096];
        // The last chunk of the body.
        while !received.ends_with("\r\n0\r\n\r\n") {
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "{received}");
            received.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ends).await.expect("the stream ends");
    assert_has(&received, &["HTTP/1.1 200 ", "text/event-stream", r#""result""#]);
}

#[tokio::test(start_paused = true)]
async fn an_address_without_credentials_is_refused() {
    let server =
        Server::new("s").options(|options| options.http.auth = vec![keys([("k", "a")]).into()]);
    let error = server.listen("tcp://127.0.0.1:0").await.unwrap_err().to_string();
    assert!(error.contains("carries no credentials"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_function_decides_and_its_failure_refuses() {
    let auth = Auth::verify(|token, request| {
        assert_ne!(token, "panics");
        async move {
            assert_eq!(request.path, "/mcp");
            assert!(request.headers.contains_key("authorization") && request.remote.is_some());
            match &*token {
                "good" => Ok(Some(Principal::new("eve"))),
                "unknown" => Ok(None),
                "invalid" => Err(VerifyError::InvalidToken("it is an old one".into())),
                "narrow" => Err(VerifyError::InsufficientScope(vec!["a".into()])),
                "panics-later" => panic!("on purpose"),
                _ => Err(VerifyError::Failed("the database is away".into())),
            }
        }
    });
    let listening = listen(auth).await;
    for (token, status, part) in [
        ("good", "200", r#""text":"eve""#),
        ("unknown", "401", "invalid_token"),
        ("invalid", "401", "it is an old one"),
        ("narrow", "403", "scope=\"a\""),
        ("panics", "500", ""),
        ("panics-later", "500", ""),
        ("other", "500", ""),
    ] {
        let answer = exchange(&listening, &call(&listening, &bearer(token))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{token}: {answer}");
        assert!(answer.contains(part) && !answer.contains("database"), "{token}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_methods_are_tried_in_turn() {
    let server = Server::new("shelf").tool("who", |ctx: Context| async move {
        ctx.principal().map(|principal| principal.subject.clone()).unwrap_or_default()
    });
    let known =
        |token: &'static str| move |given: String| (given == token).then(|| Principal::new(token));
    let (one, other) = (known("one"), known("other"));
    let server = server.options(|options| {
        options.http.auth = vec![
            keys([("k3y", "robot")]).into(),
            Auth::verify(move |token, _| std::future::ready(Ok(one(token)))),
            Auth::verify(move |token, _| std::future::ready(Ok(other(token)))),
        ];
    });
    let listening = server.listen(memory::HTTP).await.unwrap();
    for (token, subject) in [("k3y", "robot"), ("one", "one"), ("other", "other")] {
        let answer = exchange(&listening, &call(&listening, &bearer(token))).await;
        assert_has(&answer, &["HTTP/1.1 200 ", &format!("\"text\":\"{subject}\"")]);
    }
    let answer = exchange(&listening, &call(&listening, &bearer("none"))).await;
    assert_has(&answer, &["HTTP/1.1 401 "]);
}

#[tokio::test(start_paused = true)]
async fn a_component_needs_its_scopes_or_broader_ones() {
    let keys = [("writer", "books:write"), ("admin", "admin"), ("reader", "books:read")];
    let keys = keys.map(|(name, scope)| {
        let scopes = [scope.to_owned()].into();
        (name.to_owned(), Principal { scopes, ..Principal::new(name) })
    });
    let tool = Tool::new("who", || async { "a writer" }).scopes(["books:write"]);
    let server = Server::new("shelf").add(tool).options(|options| {
        options.http.auth = vec![ApiKeys { keys: keys.into(), header: None, file: None }.into()];
        options.http.scope_implies = [("admin".into(), vec!["books:write".into()])].into();
    });
    let listening = server.listen(memory::HTTP).await.unwrap();
    for (key, status) in [("writer", "200"), ("admin", "200"), ("reader", "403")] {
        let answer = exchange(&listening, &call(&listening, &bearer(key))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{key}: {answer}");
        let challenge = "error=\"insufficient_scope\", scope=\"books:write\"";
        assert_eq!(answer.contains(challenge), status == "403", "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_may_hide_what_a_caller_has_no_scopes_for() {
    let tool = Tool::new("who", || async { "a writer" }).scopes(["books:write"]);
    let server = Server::new("shelf").add(tool).options(|options| {
        options.http.auth = vec![keys([("k3y", "reader")]).into()];
        options.http.hide_unauthorized = true;
    });
    let listening = server.listen(memory::HTTP).await.unwrap();
    let answer = exchange(&listening, &call(&listening, &bearer("k3y"))).await;
    assert_has(&answer, &["Unknown tool: who"]);
}

#[test]
fn a_method_that_can_not_work_is_a_mistake_in_the_program() {
    let refused = |auth: Auth| {
        let server = || Server::new("s").options(|options| options.http.auth = vec![auth]);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(server)).unwrap_err();
        *panic.downcast::<String>().unwrap()
    };
    assert!(refused("http://login.example.com".into()).contains("use https"));
    assert!(refused(keys([("", "a")]).into()).contains("key 1 is empty"));
    let secret = keys([("s3cret", "a")]);
    assert!(!format!("{secret:?} {:?}", Auth::from(secret.clone())).contains("s3cret"));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_away_or_huge_admits_nobody() {
    let signer = Signer::new("one");
    let huge = Mock::start(|_| Answer::text(200, &"x".repeat(2 * 1024 * 1024))).await;
    let elsewhere =
        Mock::start(|_| Answer::empty(302).with("Location", "http://127.0.0.1:1/")).await;
    for url in ["http://127.0.0.1:1".to_owned(), origin(&huge), origin(&elsewhere)] {
        let jwks_url = Some(format!("{url}/keys"));
        let listening = listen(Jwt { issuer: url.clone(), jwks_url, ..Jwt::default() }).await;
        let token = signer.token(
            json!({ "iss": url, "aud": listening.url(), "iat": unix(), "exp": unix() + 300 }),
        );
        let answer = exchange(&listening, &call(&listening, &bearer(&token))).await;
        assert_has(&answer, &["HTTP/1.1 503 ", "retry-after"]);
    }
}
