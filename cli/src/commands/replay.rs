//! `gudgeon replay`: plays a transcript.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use serde_json::json;

use crate::{
    connection::ConsentArguments,
    failure::Failure,
    frames::{
        Upstream as _, http,
        server::{self, AccessArguments},
        stdio,
    },
    log_format::LogFormat,
    output,
    replay::{client, server::RecordedServer},
    target::Target,
    transcript,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon replay session.jsonl
  gudgeon replay session.jsonl --http http://127.0.0.1:0/mcp
  gudgeon replay session.jsonl --client server.py
  gudgeon replay session.jsonl --client http://127.0.0.1:8000/mcp
  gudgeon replay session.jsonl --client -- npx -y @modelcontextprotocol/server-everything

Without --client the command is a server that answers as the recorded one did. With it, the recorded client's messages are \
sent to a server, and differences of its answers are reported: exit code 1. Ids, times and `_meta` are not compared.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = "gudgeon replay [OPTIONS] FILE\n       gudgeon replay [OPTIONS] FILE --client TARGET\n       gudgeon replay [OPTIONS] FILE --client -- COMMAND...")]
pub struct Arguments {
    /// The file of the transcript
    file: PathBuf,
    /// Serve over HTTP instead of stdio; port 0 chooses a free port
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = http::DEFAULT_URL, conflicts_with = "client")]
    http: Option<String>,
    /// Play the client instead, for this server: a file, MODULE:APP or URL
    #[arg(long, value_name = "TARGET", num_args = 0..=1)]
    #[allow(clippy::option_option, reason = "the target may be a command after `--`")]
    client: Option<Option<String>>,
    /// Print the differences as JSON
    #[arg(long, requires = "client")]
    json: bool,
    /// The longest time to wait for a message of the server, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", requires = "client")]
    timeout: f64,
    #[command(flatten)]
    access: AccessArguments,
    #[command(flatten)]
    consent: ConsentArguments,
    /// The command of a server over stdio, with --client
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let target = match (arguments.client, arguments.command) {
        (None, command) if command.is_empty() => None,
        (None, _) => {
            return Err(Failure::usage("a command is given without --client")
                .with_hint("gudgeon replay session.jsonl --client -- COMMAND"));
        }
        (Some(Some(target)), command) if command.is_empty() => {
            Some(Target::parse(&target, arguments.consent.consent())?)
        }
        (Some(None), command) if !command.is_empty() => Some(Target::Command(command)),
        (Some(_), _) => {
            return Err(Failure::usage("--client takes one server")
                .with_hint("give a file, or a command after `--`"));
        }
    };
    if target.is_none() && !arguments.access.is_empty() {
        return Err(Failure::usage("a header or a token is given without --client").with_hint(
            "the recorded server needs none; --client sends them to a server at a URL",
        ));
    }
    let connections = transcript::read(&arguments.file)?;
    let Some(target) = target else {
        let server = RecordedServer::new(&connections);
        return match &arguments.http {
            Some(url) => {
                http::serve(url, server, &arguments.file.display().to_string(), LogFormat::Text)
                    .await
            }
            None => Ok(stdio::serve(server.open().await?).await),
        };
    };
    let limit = Duration::try_from_secs_f64(arguments.timeout)
        .map_err(|error| Failure::usage(format!("--timeout: {error}")))?;
    let server = server::for_target(&target, &arguments.access)?;
    let comparison = client::compare(&connections, &*server, limit).await?;
    if arguments.json {
        output::json(&json!({
            "compared": comparison.compared,
            "differences": comparison.differences,
        }))?;
    } else {
        for difference in &comparison.differences {
            let line = difference.line.map_or_else(String::new, |line| format!("line {line}: "));
            output::line(format_args!("{line}{}: {}", difference.of, difference.text))?;
        }
        let (compared, found) = (comparison.compared, comparison.differences.len());
        output::line(format_args!("{compared} messages compared, {found} differences"))?;
    }
    Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
