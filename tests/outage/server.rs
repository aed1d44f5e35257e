//! The server that is killed: `outage-server URL LEDGER`. `count` writes each of its calls into the ledger.
#![allow(clippy::print_stderr)] // the URL is its signal that it listens

use std::{env, error::Error as StdError, fs::File, io::Write as _, sync::Arc};

use gudgeon::{Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Call {
    number: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [url, ledger] = &arguments[..] else {
        return Err("usage: outage-server URL LEDGER".into());
    };
    let ledger = Arc::new(File::options().append(true).create(true).open(ledger)?);
    let read = |Call { number }: Call| async move { Ok(number) };
    let count = move |Call { number }: Call| {
        // A line is one write, so that a kill leaves no part of it.
        let written = (&*ledger).write_all(format!("{number}\n").as_bytes());
        async move {
            written.map_err(|error| ToolError::new(error.to_string()))?;
            Ok(number)
        }
    };
    let server = Server::new("outage")
        .add(
            Tool::new("read", read)
                .annotations(|annotations| annotations.read_only_hint = Some(true)),
        )
        .tool("count", count);
    let listening = server.listen(url).await?;
    eprintln!("{}", listening.url());
    std::future::pending().await
}
