//! Gudgeon's Rust client signs in at a server and calls a tool: `interop-sign-in <url> <tool>`.
#![allow(clippy::print_stdout, reason = "the harness reads it")]

use std::{env, error::Error as StdError, sync::Arc};

use gudgeon::{
    Client, Error,
    client::{Target, auth::OAuth},
    protocol::Tool,
};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(tool)) = (arguments.next(), arguments.next()) else {
        return Err("usage: interop-sign-in <url> <tool>".into());
    };
    let auth =
        OAuth { on_redirect: Some(Arc::new(|page| Box::pin(follow(page)))), ..OAuth::default() };
    let builder = Client::builder(Target::url(&url)?).options(|it| it.auth = Some(auth.into()));
    let client = builder.connect().await?;
    let tools = client.list::<Tool>().await?.len();
    let text = client.call_tool(&tool, ()).await?.text();
    println!("{}", json!({ "tools": tools, "text": text }));
    client.close().await;
    Ok(())
}

/// Agrees in the pages of authorization servers, and returns the URL with which the browser returns to the client.
async fn follow(page: String) -> Result<String, Error> {
    let program = ["tests/interop/protected/follow.py", &page];
    let done = tokio::process::Command::new("python3").args(program).output().await;
    let done = done.map_err(|it| Error::misuse(it.to_string()))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(Error::misuse(String::from_utf8_lossy(&done.stderr))),
    }
}
