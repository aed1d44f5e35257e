//! The arguments of prompts, which are strings on the wire and have the handler's types at both ends.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

use std::fmt::Debug;

use gudgeon::{
    Client, Prompt, Server,
    error::ErrorKind,
    protocol::{ContentBlock, GetPromptResult},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Size {
    Large,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Value<T> {
    value: T,
}

fn text(prompt: &GetPromptResult) -> &str {
    match &prompt.messages[0].content {
        ContentBlock::Text(text) => &text.text,
        other => panic!("{other:?}"),
    }
}

/// Sends a value as the argument of a prompt and compares it with the one that arrives.
async fn round_trip<T>(value: T)
where
    T: Debug + DeserializeOwned + JsonSchema + Serialize + Send + 'static,
{
    let shown = |Value { value }: Value<T>| async move { format!("{value:?}") };
    let server = Server::new("shelf").add(Prompt::new("show", shown));
    let client = Client::connect(&server).await.unwrap();
    let expected = format!("{value:?}");
    let prompt = client.get_prompt("show", Value { value }).await.unwrap();
    assert_eq!(text(&prompt), expected);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_of_every_scalar_type_arrive_as_they_were() {
    round_trip(String::from("5")).await;
    round_trip(String::from("true")).await;
    round_trip(String::from("null")).await;
    round_trip(String::from("\"quoted\"")).await;
    round_trip('c').await;
    round_trip(true).await;
    round_trip(u8::MAX).await;
    round_trip(i64::MIN).await;
    round_trip(u64::MAX).await;
    round_trip(0.1_f64).await;
    round_trip(1e300_f64).await;
    round_trip(-0.5_f32).await;
    round_trip(Size::Large).await;
    round_trip(Some(5_u8)).await;
    round_trip(Some(String::from("5"))).await;
    round_trip(None::<u8>).await;
    round_trip(None::<String>).await;
    round_trip(Some(Size::Large)).await;
    round_trip(Some(false)).await;
}

#[tokio::test(start_paused = true)]
async fn an_argument_that_is_no_scalar_is_named() {
    let client = Client::connect(Server::new("shelf")).await.unwrap();
    for value in [json!([1]), json!({"a": 1})] {
        let refused = client.get_prompt("show", json!({"value": value})).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Misuse);
        assert!(refused.message.contains("\"value\" must be a string"), "{refused}");
    }
}
