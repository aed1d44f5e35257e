//! The demo client in Rust: `demo-client --revision R -- <server command…>`.
//! Prints the results as JSON lines, one per step; run.py checks them.
#![allow(clippy::print_stdout)] // its output is what it is for

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gudgeon::{
    Client, Revision,
    error::Error as McpError,
    protocol::{CompletionTarget, ResourceContents, Tool},
    transport::Command,
};
use serde_json::{Map, Value, json};

/// Times a step and prints its facts; an error is a fact too and does not end the run.
async fn step(name: &str, calls: u64, work: impl Future<Output = Result<Value, McpError>>) {
    let start = Instant::now();
    let facts = work
        .await
        .unwrap_or_else(|error| json!({ "error": error.to_string(), "code": error.code }));
    let mut line = Map::from_iter([
        ("step".to_owned(), json!(name)),
        ("calls".to_owned(), json!(calls)),
        ("ms".to_owned(), json!(milliseconds(start))),
    ]);
    if let Value::Object(facts) = facts {
        line.extend(facts);
    }
    println!("{}", Value::Object(line));
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Merges two objects.
fn with(mut facts: Value, more: Value) -> Value {
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, more) {
        facts.extend(more);
    }
    facts
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [_, revision, _, program, rest @ ..] = &args[..] else {
        return Err("usage: demo-client --revision R -- <server command…>".into());
    };
    let known = Revision::parse(revision).ok_or("--revision takes the date of a revision")?;
    let start = Instant::now();
    let client = Client::builder(Command::new(program).args(rest))
        .options(|options| {
            options.revisions = vec![known];
            options.timeout = Some(Duration::from_secs(30));
        })
        .connect()
        .await?;
    let facts = json!({ "revision": client.server().revision.to_string(), "server": client.server().info.name });
    println!(
        "{}",
        with(json!({ "step": "connect", "calls": 0, "ms": milliseconds(start) }), facts)
    );
    run(&client).await?;
    client.close().await;
    Ok(())
}

async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    let plan: Value = serde_json::from_str(include_str!("plan.json"))?;
    let path = plan["document"].as_str().ok_or("plan.json names no document")?;
    let searches = plan["searches"].as_array().ok_or("plan.json has no searches")?;
    let turns = plan["quick"].as_u64().ok_or("plan.json has no number of quick searches")?;

    step("tools", 1, async {
        let names: Vec<_> =
            client.list::<Tool>().await?.into_iter().map(|tool| tool.name).collect();
        Ok(json!({ "names": names }))
    })
    .await;

    step("reindex", 1, async {
        let progress = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&progress);
        let note = move |report: gudgeon::client::Progress| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(report.progress);
        };
        let client = client.with_options(|options| options.on_progress = Some(Arc::new(note)));
        let result = client.call_tool("reindex", json!({})).await?;
        let progress = progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(with(result.data()?, json!({ "progress": progress })))
    })
    .await;

    for search in searches {
        step("search", 1, async {
            let query = &search["query"];
            let result = client.call_tool("search", json!({ "query": query, "limit": 5 })).await?;
            Ok(with(result.data()?, json!({ "query": query })))
        })
        .await;
    }

    step("outline", 1, async {
        client.call_tool("outline", json!({ "path": path })).await?.data()
    })
    .await;

    step("unknown", 1, async {
        let client = client.with_options(|options| options.raise_on_error = false);
        let result = client.call_tool("outline", json!({ "path": "nowhere.md" })).await?;
        Ok(json!({ "is_error": result.is_error == Some(true), "text": result.text() }))
    })
    .await;

    step("read", 1, async {
        let result = client.read_resource(&format!("docs://{path}")).await?;
        match result.contents.into_iter().next() {
            Some(ResourceContents::Text(contents)) => {
                Ok(json!({ "mime_type": contents.mime_type, "text": contents.text }))
            }
            _ => Ok(json!({})),
        }
    })
    .await;

    // Must fail; run.py checks the error.
    step("outside", 1, async {
        let outside = plan["outside"].as_str().unwrap_or_default();
        Ok(json!({ "text": client.read_resource(outside).await?.contents }))
    })
    .await;

    step("prompt", 1, async {
        let result = client.get_prompt("summarize", json!({ "path": path })).await?;
        let message = &result.messages[0];
        Ok(json!({ "role": message.role, "text": message.content.as_text() }))
    })
    .await;

    let targets = [
        CompletionTarget::Prompt("summarize".into()),
        CompletionTarget::Resource("docs://{+path}".into()),
    ];
    for target in targets {
        step("complete", 1, async {
            let typed = plan["typed"].as_str().unwrap_or_default();
            Ok(json!({ "values": client.complete(target, "path", typed, ()).await?.values }))
        })
        .await;
    }

    step("quick", turns, async {
        let arguments = json!({ "query": searches[0]["query"], "limit": 1 });
        let mut times = Vec::new();
        for _ in 0..turns {
            let start = Instant::now();
            client.call_tool("search", arguments.clone()).await?;
            times.push(milliseconds(start));
        }
        Ok(json!({ "times": times }))
    })
    .await;
    Ok(())
}
