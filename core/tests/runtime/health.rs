//! Health checks of a server that listens.

use gudgeon::{Listening, Server, protocol::Principal, server::auth::ApiKeys};
use tokio::io::AsyncWriteExt;

use crate::{
    http_server::{call, connect, read, read_all},
    support::memory,
};

/// Sends a request as a load balancer does, on a connection of its own; returns the response.
pub(crate) async fn ask(listening: &Listening, method: &str, path: &str) -> String {
    let mut stream = connect(listening);
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

#[tokio::test(start_paused = true)]
async fn a_server_answers_probes_of_any_host() {
    let server = Server::new("s").options(|options| {
        options.http.health = Some("/healthz".into());
        options.http.ready = Some("/readyz".into());
    });
    let listening = server.listen(memory::HTTP).await.unwrap();
    for path in ["/healthz", "/readyz"] {
        let answer = ask(&listening, "GET", path).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("cache-control: no-store\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
        let answer = ask(&listening, "HEAD", path).await;
        assert!(answer.contains("content-length: 3\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        let answer = ask(&listening, "POST", path).await;
        assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("GET, HEAD"), "{answer}");
    }
    assert!(ask(&listening, "GET", "/mcp").await.starts_with("HTTP/1.1 421"));
}

#[tokio::test(start_paused = true)]
async fn probes_need_no_credentials() {
    let server = Server::new("s").options(|options| {
        let keys = [("k3y".to_owned(), Principal::new("reader"))].into();
        options.http.auth = vec![ApiKeys { keys, header: None, file: None }.into()];
        options.http.ready = Some("/mcp/readyz".into());
    });
    let listening = server.listen(memory::HTTP).await.unwrap();
    assert!(ask(&listening, "GET", "/mcp/readyz").await.starts_with("HTTP/1.1 200"));
    let mut stream = connect(&listening);
    stream.write_all(call("one", 1).as_bytes()).await.unwrap();
    assert!(read(&mut stream).await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn a_probe_at_the_path_of_the_endpoint_is_refused() {
    let server = Server::new("s").options(|options| options.http.ready = Some("/up".into()));
    let refused = server.listen("http://127.0.0.1:0/up").await.unwrap_err().to_string();
    assert!(refused.starts_with("ready: \"/up\" is a path of the endpoint"), "{refused}");
    server.listen("http://127.0.0.1:0/mcp").await.unwrap();
}
