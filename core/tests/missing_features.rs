//! Addresses that need a feature of the crate which is not enabled.

#![cfg(not(any(feature = "tls", feature = "websocket")))]
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use gudgeon::{Client, Error, Server, client::Target, error::ErrorKind};
use tokio::net::TcpListener;

async fn connect(scheme: &str) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("{scheme}://{}/mcp", listener.local_addr().unwrap());
    Client::connect(Target::url(&url).unwrap()).await.unwrap_err()
}

fn check(error: &Error, scheme: &str, feature: &str) {
    let text = error.to_string();
    assert!(text.contains(&format!("{scheme}://127.0.0.1:")), "{text}");
    assert!(
        text.contains(&format!("needs the feature \"{feature}\" of the crate gudgeon")),
        "{text}"
    );
    assert!(text.contains(&format!("gudgeon = {{ features = [\"{feature}\"] }}")), "{text}");
    assert_eq!(error.kind, ErrorKind::Misuse);
}

#[tokio::test]
async fn clients_name_the_missing_feature() {
    for (scheme, feature) in [("https", "tls"), ("ws", "websocket"), ("wss", "websocket")] {
        check(&connect(scheme).await, scheme, feature);
    }
}

#[tokio::test]
async fn servers_name_the_missing_feature() {
    let server = Server::new("shelf")
        .options(|options| options.http.tls = Some(("chain.pem".into(), "key.pem".into())));
    check(&server.run("https://127.0.0.1:0/mcp").await.unwrap_err(), "https", "tls");
}
