//! `gudgeon record`: writes the messages between a host and a server to a file.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    connection::ConsentArguments,
    failure::Failure,
    frames::{
        Upstream as _, http,
        server::{self, AccessArguments},
        stdio,
    },
    hosts::Consent,
    log_format::LogFormat,
    target::Target,
    transcript::{Recorded, Recorder, public_name},
};

const EXAMPLES: &str = "\
Examples:
  gudgeon record server.py session.jsonl
  gudgeon record session.jsonl -- npx -y @modelcontextprotocol/server-everything
  gudgeon record server.py session.jsonl --http http://127.0.0.1:8000/mcp
  gudgeon record https://example.org/mcp session.jsonl -H 'X-Tenant: books'

Use the command in a host's configuration in place of the server. The messages pass unchanged. Each one is written to the \
file at once; a file that exists already is continued. `gudgeon replay` plays it.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = "gudgeon record [OPTIONS] TARGET FILE\n       gudgeon record [OPTIONS] FILE -- COMMAND...")]
pub struct Arguments {
    /// The server, a file, MODULE:APP, URL or configured name, and the file of the transcript
    #[arg(value_name = "TARGET FILE", required = true)]
    words: Vec<String>,
    /// Serve over HTTP instead of stdio
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = http::DEFAULT_URL)]
    http: Option<String>,
    #[command(flatten)]
    access: AccessArguments,
    #[command(flatten)]
    consent: ConsentArguments,
    /// The command of a server over stdio
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let (target, file) =
        target_and_file(arguments.words, arguments.command, arguments.consent.consent())?;
    let server = server::for_target(&target, &arguments.access)?;
    let recorder = Recorder::create(&file, &target)?;
    let server = Recorded { server, recorder };
    match &arguments.http {
        Some(url) => {
            let name = format!("the recorder of {}", public_name(&target));
            http::serve(url, server, &name, LogFormat::Text).await
        }
        None => Ok(stdio::serve(server.open().await?).await),
    }
}

fn target_and_file(
    words: Vec<String>,
    command: Vec<OsString>,
    consent: Consent,
) -> Result<(Target, PathBuf), Failure> {
    let mut words = words.into_iter();
    let target = match command.is_empty() {
        true => words.next().map(|word| Target::parse(&word, consent)).transpose()?,
        false => Some(Target::Command(command)),
    };
    match (target, words.next(), words.next()) {
        (Some(target), Some(file), None) => Ok((target, file.into())),
        (_, _, Some(word)) => Err(Failure::usage(format!("unexpected argument {word:?}"))
            .with_hint("give the server and one file; a command goes after `--`")),
        _ => Err(Failure::usage("the file of the transcript is missing")
            .with_hint("gudgeon record server.py session.jsonl")),
    }
}
