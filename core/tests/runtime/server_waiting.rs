//! A handler that waits for its client: its timeout is suspended and its concurrency slot is free, in every revision.

use std::{future::pending, sync::Arc, time::Duration};

use gudgeon::{
    Client, Context, Revision, Server, Tool, ToolError, ask, protocol::ElicitResult, transport::Url,
};
use serde_json::{Value, json};
use tokio::{sync::OnceCell, time::timeout};

use crate::support::memory;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);
const ERAS: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Asks {
    asks: bool,
}

fn server() -> Server {
    let waits = async |Asks { asks }: Asks, ctx: Context| match asks {
        true => ctx.elicit::<bool>("Sure?").await.map(|answer| answer.to_string()),
        false => Ok("asked nothing".to_owned()),
    };
    let returns = async |Asks { asks }: Asks, ctx: Context| {
        let question = ask::elicit::<bool>("Sure?");
        match ctx.answer(&question)? {
            _ if !asks => Ok("asked nothing".to_owned()),
            None => Err(ToolError::from(question)),
            Some(answer) => Ok(answer.to_string()),
        }
    };
    let soon = Duration::from_millis(100);
    Server::new("waits")
        .add(Tool::new("waits", waits).timeout(soon).concurrency(1))
        .add(Tool::new("returns", returns).timeout(soon).concurrency(1))
        .add(Tool::new("hangs", pending::<String>).timeout(3 * soon))
}

fn asks(asks: bool) -> Value {
    json!({ "asks": asks })
}

fn yes() -> ElicitResult {
    serde_json::from_value(json!({"action": "accept", "content": {"value": true}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn waiting_counts_against_neither_timeout_nor_concurrency() {
    let server = server();
    let listening = server.listen(memory::HTTP).await.unwrap();
    for revision in ERAS {
        for name in ["waits", "returns"] {
            for is_http in [false, true] {
                let itself = Arc::new(OnceCell::<Client>::new());
                let same = Arc::clone(&itself);
                let builder = match is_http {
                    true => Client::builder(Url::parse(listening.url()).unwrap()),
                    false => Client::builder(&server),
                };
                let answer = move |_| {
                    let client = same.get().unwrap().clone();
                    async move {
                        // Another call of the tool runs, and more than its time goes by.
                        let other = client.call_tool(name, asks(false)).await.unwrap();
                        assert_eq!(other.text(), "asked nothing");
                        let late = client.call_tool("hangs", ()).await.unwrap_err();
                        assert!(late.message.contains("took longer than its 0.3 s"), "{late}");
                        Ok(yes())
                    }
                };
                let client = builder
                    .options(|options| options.revisions = vec![revision])
                    .on_elicit(answer)
                    .connect()
                    .await
                    .unwrap();
                itself.set(client.clone()).unwrap();
                let called = timeout(PATIENCE, client.call_tool(name, asks(true))).await;
                let place = format!("{revision:?} {name} {is_http}");
                assert_eq!(called.expect(&place).unwrap().text(), "true", "{place}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_client_is_limited() {
    let server = server().options(|options| options.suspended_ttl = Duration::from_millis(200));
    for revision in &ERAS[..2] {
        for name in ["waits", "returns"] {
            let client = Client::builder(&server)
                .options(|options| options.revisions = vec![*revision])
                .on_elicit(|_| pending());
            let client = client.connect().await.unwrap();
            let called = timeout(PATIENCE, client.call_tool(name, asks(true))).await.unwrap();
            let problem = format!(
                "tool {name:?} waited 0.2 s for its client's answer, and none came (option suspended_ttl)"
            );
            assert_eq!(called.unwrap_err().message, problem);
            let other = client.call_tool(name, asks(false)).await.unwrap();
            assert_eq!(other.text(), "asked nothing");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_not_run_again_returns_no_question() {
    let forbids = async || Err::<String, _>(ToolError::from(ask::elicit::<bool>("Sure?")));
    let server = Server::new("forbids").add(Tool::new("forbids", forbids).forbid_replay());
    for revision in ERAS {
        let client = Client::builder(&server)
            .options(|options| options.revisions = vec![revision])
            .on_elicit(async |_| Ok(yes()));
        let client = client.connect().await.unwrap();
        assert_eq!(
            client.call_tool("forbids", ()).await.unwrap_err().message,
            "the handler returned a question, though its tool forbids being run again (replay=\"forbid\"): call \
             ctx.elicit, ctx.sample or ctx.roots instead, or remove replay=\"forbid\"",
            "{revision:?}"
        );
    }
}
