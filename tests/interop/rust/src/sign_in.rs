//! Gudgeon's Rust client signs in at the servers of its jobs and calls a tool.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the harness reads it")]

use std::{error::Error as StdError, io::stdin, sync::Arc};

use gudgeon::{
    Client, Error,
    client::{Target, auth::OAuth},
    protocol::Tool,
};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    for job in stdin().lines() {
        let done = sign_in(&serde_json::from_str(&job?)?).await;
        if let Err(error) = &done {
            eprintln!("Error: {error}");
        }
        println!("{}", json!({"done": done.is_ok()}));
    }
    Ok(())
}

async fn sign_in(job: &Value) -> Result<(), Box<dyn StdError>> {
    let [url, tool] = ["url", "tool"].map(|name| job[name].as_str().unwrap_or_default());
    let auth =
        OAuth::new(|oauth| oauth.on_redirect = Some(Arc::new(|page| Box::pin(follow(page)))));
    let builder =
        Client::builder(Target::url(url)?).options(|options| options.auth = Some(auth.into()));
    let client = builder.connect().await?;
    let tools = client.list::<Tool>().await?.len();
    let text = client.call_tool(tool, ()).await?.text();
    println!("{}", json!({ "tools": tools, "text": text }));
    client.close().await;
    Ok(())
}

/// Agrees in the pages of authorization servers, and returns the URL with which the browser returns to the client.
async fn follow(page: String) -> Result<String, Error> {
    let program = ["tests/interop/protected/follow.py", &page];
    let done = tokio::process::Command::new("python3").args(program).output().await;
    let done = done.map_err(|error| Error::misuse(error.to_string()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(Error::misuse(String::from_utf8_lossy(&done.stderr))),
    }
}
