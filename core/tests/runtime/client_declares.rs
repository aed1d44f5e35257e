//! The capabilities that a client declares, and when.

use gudgeon::{
    Client, Revision,
    error::{Error, ErrorKind},
};
use serde_json::{Value, json};

use crate::support::stream::{Received, receive, result, server};

fn nothing(message: &Value) -> Value {
    result(message, &json!({"content": []}))
}

/// Returns the capabilities in a client's first message.
async fn declared(received: &mut Received, era: &str) -> Value {
    match era {
        "2026-07-28" => receive(received, "server/discover").await["params"]["_meta"]
            ["io.modelcontextprotocol/clientCapabilities"]
            .clone(),
        _ => receive(received, "initialize").await["params"]["capabilities"].clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn answerable_questions_are_declared_as_the_revision_defines() {
    for (era, expected) in [
        ("2026-07-28", json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}})),
        ("2025-11-25", json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}})),
        ("2025-06-18", json!({"elicitation": {}, "sampling": {}})),
        ("2025-03-26", json!({"sampling": {}})),
    ] {
        let (target, mut received) = server(era, |_| vec![]);
        let builder = Client::builder(target)
            .options(|options| options.revisions = vec![Revision::parse(era).expect("published")])
            .on_elicit(|_| async { Err(Error::new(ErrorKind::Declined, "no")) })
            .on_sample(|_| async { Err(Error::new(ErrorKind::Declined, "no")) });
        builder.connect().await.expect("connects");
        assert_eq!(declared(&mut received, era).await, expected, "{era}");
    }
}

#[tokio::test(start_paused = true)]
async fn later_roots_are_declared_in_subsequent_modern_requests() {
    let (target, mut received) = server("2026-07-28", |message| vec![nothing(message)]);
    let client = Client::connect(target).await.expect("connects");
    assert_eq!(declared(&mut received, "2026-07-28").await, json!({}));
    client.set_roots(["file:///a"]).expect("modern");
    client.call_tool("t", ()).await.expect("answers");
    let said = received.recv().await.expect("the call");
    assert_eq!(said["method"], "tools/call", "nothing is announced");
    let envelope = &said["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*envelope, json!({"roots": {}}));
}

#[tokio::test(start_paused = true)]
async fn later_roots_are_rejected_in_the_legacy_era() {
    let (target, mut received) = server("2025-11-25", |message| vec![nothing(message)]);
    let client = Client::connect(target).await.expect("connects");
    let refused = client.set_roots(["file:///a"]).expect_err("too late");
    assert_eq!(refused.kind, ErrorKind::Unsupported);
    assert!(refused.message.contains("2025-11-25"), "{refused}");
    assert!(
        refused.into_details().hint.is_some_and(|hint| hint.contains("when creating the client"))
    );
    client.call_tool("t", ()).await.expect("answers");
    for method in ["initialize", "notifications/initialized", "tools/call"] {
        let said = loop {
            let said = received.recv().await.expect("the client says it");
            if said["method"] != "server/discover" {
                break said;
            }
        };
        assert_eq!(said["method"], method, "nothing is announced");
    }
}
