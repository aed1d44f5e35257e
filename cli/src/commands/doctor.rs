//! `gudgeon doctor`: checks a server against the specification.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;

use crate::{
    connection::ConnectionArguments,
    doctor::{self, Examination, Limits, Report, Server, Severity, Style},
    failure::{Failure, FailureKind},
    files::write,
    output,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon doctor http://127.0.0.1:8000/mcp
  gudgeon doctor -- npx -y @modelcontextprotocol/server-everything
  gudgeon doctor server.py --json
  gudgeon doctor server.py --junit report.xml
  gudgeon doctor --client -- python client.py {command}
  gudgeon doctor --client --http --revision 2025-11-25 -- python client.py {url}
  gudgeon doctor --list

The exit code is 1 if a check fails. Warnings and notes do not change it.";

/// The longest time to wait for a response once the server has started.
const RESPONSE: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::doc_markdown, reason = "doc comments are the text of --help")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
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
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Check a client instead: it is started with the words after `--`, and finds the command of its server in
    /// MCP_SERVER_COMMAND or in place of {command}
    #[arg(long)]
    client: bool,
    /// Serve the client over HTTP: it finds the URL in MCP_SERVER_URL or in place of {url}
    #[arg(long, requires = "client")]
    http: bool,
    /// Serve on standard streams and record what the client sends
    #[arg(long, value_name = "FILE", hide = true)]
    probe: Option<PathBuf>,
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
    if let Some(record) = &arguments.probe {
        doctor::probe::stdio::serve(record, arguments.connection.revision)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.client {
        return examine_client(&arguments).await;
    }
    let (target, rest) = arguments.connection.target(arguments.words)?;
    if let Some(word) = rest.first() {
        return Err(Failure::usage(format!("unexpected argument {word:?} after the target")));
    }
    let builder = arguments.connection.builder(&target)?;
    let timeout = arguments.connection.timeout;
    let examination = Examination {
        server: Server::from_builder(&builder)?,
        revision: arguments.connection.revision,
        limits: Limits { start: timeout, response: timeout.min(RESPONSE) },
        calls_tools: arguments.call_tools,
    };
    let report = examination.run().await?;
    finish(&report, &target.to_string(), arguments.junit.as_ref(), arguments.json)
}

async fn examine_client(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let ConnectionArguments { command: words, revision, timeout, .. } = &arguments.connection;
    let report = match arguments.http {
        true => doctor::client::run_http(words, *revision, *timeout).await?,
        false => doctor::client::run_stdio(words, *revision, *timeout).await?,
    };
    finish(&report, "the client", arguments.junit.as_ref(), arguments.json)
}

/// Writes the report; returns the exit code.
fn finish(
    report: &Report,
    target: &str,
    junit: Option<&PathBuf>,
    json: bool,
) -> Result<ExitCode, Failure> {
    if let Some(path) = junit {
        write::whole(path, doctor::junit(report, target).as_bytes()).map_err(|error| {
            let message = format!("{}: the report can't be written: {error}", path.display());
            Failure::new(FailureKind::File, message)
        })?;
    }
    if json {
        output::json(&report.json(target))?;
    } else {
        output::line(doctor::text(report, target, Style::of_output()))?;
    }
    Ok(match report.count(Severity::Failure) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(FailureKind::Reported as u8),
    })
}
