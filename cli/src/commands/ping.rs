//! `gudgeon ping`: measures round trips.

use std::process::ExitCode;

use clap::Args;

use crate::{connection::ConnectionArguments, failure::Failure, output};

const EXAMPLES: &str = "\
Examples:
  gudgeon ping http://127.0.0.1:8000/mcp
  gudgeon ping -- python server.py";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, _) = arguments.connection.target(arguments.words)?;
    let client = arguments.connection.connect(&target).await?;
    let time = client.ping().await?;
    let server = client.server();
    output::line(format_args!(
        "{} ({}): {:.1} ms",
        target,
        server.revision,
        time.as_secs_f64() * 1e3
    ))?;
    client.close().await;
    Ok(ExitCode::SUCCESS)
}
