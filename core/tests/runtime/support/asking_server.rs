//! A scripted server with a tool that asks, in both eras.

use std::time::Duration;

use gudgeon::{
    Client,
    client::Target,
    protocol::{ElicitAction, ElicitResult, json as raw_json},
};
use serde_json::{Value, json};

use crate::support::stream::{result, server};

pub(crate) const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn accept(content: Option<Value>) -> ElicitResult {
    ElicitResult {
        action: ElicitAction::Accept,
        content: content.map(|content| raw_json::to_raw(&content)),
        result_type: None,
        meta: None,
    }
}

pub(crate) fn form(properties: &Value, required: &Value) -> Value {
    json!({"message": "Fill in", "requestedSchema": {
        "type": "object", "properties": properties, "required": required,
    }})
}

pub(crate) fn text(message: &Value, text: &str) -> Value {
    result(message, &json!({"content": [{"type": "text", "text": text}]}))
}

/// A server whose one tool asks these questions at once, by key, and answers with the client's answers as text.
pub(crate) fn asking(
    era: &'static str,
    questions: Vec<(&'static str, &'static str, Value)>,
) -> Target {
    let mut call = Value::Null;
    let mut answers = serde_json::Map::new();
    let script = move |message: &Value| {
        if message["method"] == "tools/call" && era == "2026-07-28" {
            if let Some(given) = message["params"]["inputResponses"].as_object() {
                return vec![text(message, &Value::Object(given.clone()).to_string())];
            }
            let asked: serde_json::Map<_, _> = questions
                .iter()
                .map(|(key, method, params)| {
                    ((*key).to_owned(), json!({"method": method, "params": params}))
                })
                .collect();
            return vec![result(
                message,
                &json!({"resultType": "input_required", "inputRequests": asked, "requestState": "s"}),
            )];
        }
        if message["method"] == "tools/call" {
            call = message.clone();
            let ask = |(key, method, params): &(&str, &str, Value)| json!({"jsonrpc": "2.0", "id": key, "method": method, "params": params});
            return questions.iter().map(ask).collect();
        }
        if message["method"].is_null() {
            let answer =
                if message["error"].is_null() { &message["result"] } else { &message["error"] };
            answers.insert(message["id"].as_str().unwrap_or_default().to_owned(), answer.clone());
            if answers.len() == questions.len() {
                return vec![text(&call, &Value::Object(std::mem::take(&mut answers)).to_string())];
            }
        }
        vec![]
    };
    server(era, script).0
}

pub(crate) async fn answers(client: &Client) -> Value {
    let called = tokio::time::timeout(PATIENCE, client.call_tool("t", ())).await;
    let text = called.expect("in time").expect("answers").text();
    serde_json::from_str(&text).expect("JSON")
}
