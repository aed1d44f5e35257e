//! `gudgeon doctor`: checks a server against the specification.

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;

use crate::{
    connection::ConnectionArguments,
    doctor::{self, Examination, Limits, Server, Severity, Style},
    failure::{Failure, FailureKind},
    output,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon doctor http://127.0.0.1:8000/mcp
  gudgeon doctor -- npx -y @modelcontextprotocol/server-everything
  gudgeon doctor server.py --json
  gudgeon doctor server.py --junit report.xml
  gudgeon doctor --list

The exit code is 1 if a check fails. Warnings and notes do not change it.";

/// The longest time to wait for a response once the server has started.
const RESPONSE: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The server
    #[arg(value_name = "TARGET")]
    words: Vec<String>,
    /// Call tools that are not marked as read-only too: they may change something
    #[arg(long)]
    call_tools: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[allow(clippy::doc_markdown, reason = "it is the text of --help")]
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// List all checks with their sections of the specification
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    connection: ConnectionArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if arguments.list {
        output::line(doctor::list(&doctor::checks()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (target, rest) = arguments.connection.target(arguments.words)?;
    if let Some(word) = rest.first() {
        return Err(Failure::usage(format!("unexpected argument {word:?} after the target")));
    }
    let builder = arguments.connection.builder(&target)?;
    let timeout = arguments.connection.timeout;
    let examination = Examination {
        server: Server::of(&builder)?,
        revision: arguments.connection.revision,
        limits: Limits { start: timeout, response: timeout.min(RESPONSE) },
        calls_tools: arguments.call_tools,
    };
    let report = examination.run().await?;
    let target = target.to_string();
    if let Some(path) = &arguments.junit {
        fs::write(path, doctor::junit(&report, &target)).map_err(|error| {
            let message = format!("{}: the report can't be written: {error}", path.display());
            Failure::new(FailureKind::File, message)
        })?;
    }
    if arguments.json {
        output::json(&report.json(&target))?;
    } else {
        output::line(doctor::text(&report, &target, Style::of_output()))?;
    }
    Ok(match report.count(Severity::Failure) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(FailureKind::Reported as u8),
    })
}
