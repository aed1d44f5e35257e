//! `gudgeon inspect`: the inspector page.

use std::process::ExitCode;

use clap::Args;

use crate::{
    connection::ConnectionArguments,
    failure::Failure,
    inspect::{self, Options},
};

const EXAMPLES: &str = "\
Examples:
  gudgeon inspect http://127.0.0.1:8000/mcp
  gudgeon inspect server.py
  gudgeon inspect --no-open --port 6274 -- npx -y @modelcontextprotocol/server-everything

The page is served on 127.0.0.1 only. Its URL, which is printed, works once: it has a token that the browser exchanges \
for a cookie.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The server; without one, the page asks for it
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// Listen on this port of 127.0.0.1 [default: any free one]
    #[arg(long, default_value_t, hide_default_value = true)]
    port: u16,
    /// Print the URL of the page only, without opening a browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { target, port, no_open, connection } = arguments;
    let target = match target.is_none() && connection.command.is_empty() {
        true => None,
        false => Some(connection.target(target.into_iter().collect())?.0),
    };
    inspect::serve(target, &connection, Options { port, opens: !no_open }).await?;
    Ok(ExitCode::SUCCESS)
}
