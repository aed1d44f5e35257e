//! `gudgeon list`: what a server offers.

use std::process::ExitCode;

use clap::Args;
use gudgeon::protocol::Tool;
use serde_json::json;

use crate::{connection::ConnectionArguments, failure::Failure, output};

const EXAMPLES: &str = "\
Examples:
  gudgeon list http://127.0.0.1:8000/mcp
  gudgeon list server.py --json";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, _) = arguments.connection.target(arguments.words)?;
    let client = arguments.connection.connect(&target).await?;
    let tools = client.list::<Tool>().await?;
    if arguments.json {
        output::json(&json!({ "tools": tools }))?;
    } else {
        for tool in tools {
            output::line(format_args!("{}\t{}", tool.name, tool.description.unwrap_or_default()))?;
        }
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}
