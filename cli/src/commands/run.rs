//! `gudgeon run`: serves a file.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Args;
use gudgeon::log_events::LOG_FORMAT;

use crate::{
    failure::{Failure, FailureKind},
    frames::{http, process::Process},
    log_format::LogFormat,
    target::{FileTarget, Launch},
};

const EXAMPLES: &str = "\
Examples:
  gudgeon run server.py
  gudgeon run server.py:admin --http
  gudgeon run server.ts --http http://127.0.0.1:9000/mcp
  gudgeon run server.py --http --log-format json
  gudgeon run --directory /home/ada/shop shop.server:app

The file is run by its project's interpreter: the active virtual environment, `.venv` beside or above the file, `uv run` \
where there is a uv.lock; Node, which runs TypeScript itself from 22.18 on, or tsx of the project.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The file of a server, `FILE:NAME` where it defines several, or `MODULE:APP` in Python
    file: String,
    /// Serve over HTTP instead of stdio; port 0 chooses a free port
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = http::DEFAULT_URL)]
    http: Option<String>,
    /// Write the log of a server made with Gudgeon to standard error in this format [default: `GUDGEON_LOG_FORMAT`, or text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Change to this folder first, in which modules are found
    #[arg(long, value_name = "FOLDER")]
    directory: Option<PathBuf>,
    /// Arguments of the program, after `--`
    #[arg(last = true, value_name = "ARGUMENT")]
    words: Vec<OsString>,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(folder) = &arguments.directory {
        env::set_current_dir(folder).map_err(|error| {
            let message = format!("--directory {}: {error}", folder.display());
            Failure::new(FailureKind::File, message)
        })?;
    }
    let file = file(&arguments.file)?;
    let url = arguments.http.as_deref();
    if let Some(url) = url {
        http::check_url(url)?;
    }
    let is_own = url.is_some() && file.uses_gudgeon();
    let mut launch = file.launch(url.filter(|_| is_own))?;
    launch.arguments.extend(arguments.words);
    if let Some(format) = arguments.log_format {
        launch.environment.push((LOG_FORMAT.into(), format.as_str().into()));
    }
    let format = arguments.log_format.unwrap_or_else(LogFormat::of_environment);
    match url {
        Some(url) if !is_own => {
            http::serve(url, Process::new(launch), &file.to_string(), format).await
        }
        _ => replace_process(&launch),
    }
}

/// Reads a target that is a file or a module.
pub fn file(text: &str) -> Result<FileTarget, Failure> {
    FileTarget::parse(text)?.ok_or_else(|| {
        Failure::usage(format!("{text:?} is neither a file nor MODULE:APP"))
            .with_hint("give the file of a server, as in `gudgeon run server.py`")
    })
}

/// Makes this process the server, so that signals reach it, and its exit code is its own.
#[cfg(unix)]
fn replace_process(launch: &Launch) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt as _;

    let error = command(launch).exec();
    Err(not_started(launch, &error))
}

#[cfg(not(unix))]
fn replace_process(launch: &Launch) -> Result<ExitCode, Failure> {
    let status = command(launch).status().map_err(|error| not_started(launch, &error))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

fn command(launch: &Launch) -> std::process::Command {
    let mut command = std::process::Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command
}

fn not_started(launch: &Launch, error: &std::io::Error) -> Failure {
    let program = launch.program.to_string_lossy();
    Failure::new(FailureKind::Connect, format!("{program} could not be started: {error}"))
        .with_hint("check that it is installed and on the PATH")
}
