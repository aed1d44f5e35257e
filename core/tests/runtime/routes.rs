//! Routes of a server that listens: handlers get requests whole, and clients the responses.

use std::sync::Arc;

use bytes::Bytes;
use gudgeon::{Listening, Server, ToolError, protocol::Principal, server::auth::ApiKeys};
use http::{Method, Request, Response, StatusCode};
use tokio::io::AsyncWriteExt;

use crate::{
    http_server::{connect, read_all},
    support::memory,
};

/// Sends a request on a connection of its own; returns the response.
async fn ask(listening: &Listening, first: &str, headers: &str, body: &str) -> String {
    let mut stream = connect(listening);
    let length = body.len();
    let request = format!(
        "{first} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

/// Answers with what it was asked.
async fn echo(request: Request<Bytes>) -> Result<Response<Bytes>, ToolError> {
    let (head, body) = request.into_parts();
    let response = Response::builder()
        .status(StatusCode::ACCEPTED)
        .header("x-asked", format!("{} {}", head.method, head.uri))
        .header("x-signature", &head.headers["x-signature"]);
    Ok(response.body(body).expect("valid headers"))
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_the_request_and_gives_the_response() {
    let server = Server::new("s").route(Method::POST, "/hooks", echo).route(
        Method::GET,
        "/status",
        |_| async { Ok(Response::new("fine")) },
    );
    let listening = server.listen(memory::HTTP).await.unwrap();
    let answer = ask(&listening, "POST /hooks?a=1", "X-Signature: ab\r\n", "{\"shelf\": 1}").await;
    assert!(answer.starts_with("HTTP/1.1 202 Accepted\r\n"), "{answer}");
    assert!(answer.contains("x-asked: POST http://localhost/hooks?a=1\r\n"), "{answer}");
    assert!(answer.contains("x-signature: ab\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; charset=utf-8\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n{\"shelf\": 1}"), "{answer}");
    let answer = ask(&listening, "HEAD /status", "", "").await;
    assert!(answer.contains("content-length: 4\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    let answer = ask(&listening, "GET /status", "", "").await;
    assert!(answer.ends_with("\r\n\r\nfine"), "{answer}");
    let answer = ask(&listening, "POST /status", "", "").await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.contains("allow: GET, HEAD, OPTIONS\r\n"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_are_answered_with_500() {
    let server = Server::new("s")
        .route(Method::GET, "/error", |_| async {
            Err::<Response<Bytes>, _>(ToolError::new("a secret"))
        })
        .route(Method::GET, "/panic", |_| async {
            let none: Vec<&str> = Vec::new();
            Ok(Response::new(none[0]))
        });
    let listening = server.listen(memory::HTTP).await.unwrap();
    for path in ["/error", "/panic"] {
        let answer = ask(&listening, &format!("GET {path}"), "", "").await;
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        assert!(answer.contains("the server failed to answer (reference "), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_routes_with_auth_need_credentials() {
    let server = Server::new("s")
        .options(|options| {
            let keys = [("k3y".to_owned(), Principal::new("reader"))].into();
            options.http.auth = vec![ApiKeys { keys, header: None, file: None }.into()];
        })
        .route(Method::GET, "/open", |request: Request<Bytes>| async move {
            let is_known = request.extensions().get::<Arc<Principal>>().is_some();
            Ok(Response::new(is_known.to_string()))
        })
        .route_with_auth(Method::GET, "/me", |request: Request<Bytes>| async move {
            let caller = request.extensions().get::<Arc<Principal>>().expect("a caller");
            Ok(Response::new(caller.subject.clone()))
        });
    let listening = server.listen(memory::HTTP).await.unwrap();
    let credentials = "Authorization: Bearer k3y\r\n";
    assert!(ask(&listening, "GET /open", "", "").await.ends_with("\r\n\r\nfalse"));
    assert!(ask(&listening, "GET /open", credentials, "").await.ends_with("\r\n\r\nfalse"));
    let refused = ask(&listening, "GET /me", "", "").await;
    let of_endpoint = ask(&listening, "POST /mcp", "Content-Type: application/json\r\n", "").await;
    let challenge = |answer: &str| {
        let line = answer.lines().find(|line| line.starts_with("www-authenticate: "));
        line.map_or_else(|| panic!("no challenge: {answer}"), ToOwned::to_owned)
    };
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert_eq!(challenge(&refused), challenge(&of_endpoint));
    assert!(ask(&listening, "GET /me", credentials, "").await.ends_with("\r\n\r\nreader"));
}

fn fine() -> Server {
    Server::new("s").route(Method::GET, "/mcp", |_| async { Ok(Response::new("fine")) })
}

#[tokio::test]
async fn a_route_at_the_path_of_the_endpoint_is_refused() {
    let refused = fine().listen("http://127.0.0.1:0/mcp").await.unwrap_err().to_string();
    assert!(refused.contains("route \"/mcp\": this is a path of the endpoint"), "{refused}");
    fine().listen("http://127.0.0.1:0/elsewhere").await.unwrap();
}

#[tokio::test]
#[should_panic(
    expected = "route \"/mcp\": routes are served at addresses of the server's own only"
)]
async fn a_service_has_no_routes() {
    let _ = fine().into_service();
}

#[tokio::test]
#[should_panic(expected = "the server is being served already")]
async fn a_server_that_is_served_gets_no_route() {
    let server = fine();
    let _listening = server.listen("http://127.0.0.1:0/elsewhere").await.unwrap();
    let _ = server.route(Method::GET, "/late", |_| async { Ok(Response::new("")) });
}
