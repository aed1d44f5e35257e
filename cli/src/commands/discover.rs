//! `gudgeon discover`: the servers that hosts on this machine have configured.

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use clap::Args;
use serde_json::{Value, json};

use crate::{
    escape,
    failure::Failure,
    hosts::{
        Entry, Environment, Source, masked,
        servers::{Configured, Servers},
    },
    output,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon discover
  gudgeon discover --json

Reads the files of the user, and those of projects in the current folder and above it. The values of variables and headers \
are not shown. A name that is listed, also as HOST:NAME, is a TARGET of other commands.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process()?;
    let servers = Servers::of_hosts(&environment);
    if arguments.json {
        let found: Vec<_> = servers.found.iter().map(server).collect();
        let problems: Vec<_> = servers.failures.iter().map(Failure::message).collect();
        output::json(&json!({ "servers": found, "problems": problems }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for failure in &servers.failures {
        // Without a standard error there is no place for the message.
        let _ = writeln!(io::stderr().lock(), "warning: {}", failure.message());
    }
    let mut last: Option<&Source> = None;
    for server in &servers.found {
        let source = &server.source;
        if last.is_none_or(|last| !is_same(last, source)) {
            if last.is_some() {
                output::line("")?;
            }
            output::line(title(source))?;
        }
        last = Some(source);
        let entry = match &server.entry {
            Ok(entry) => masked::line(entry),
            Err(problem) => format!("(wrong: {})", escape::one_line(problem)),
        };
        let state = if server.enabled { "" } else { " (disabled)" };
        output::line(format_args!("  {}  {entry}{state}", escape::one_line(&server.name)))?;
    }
    if servers.found.is_empty() {
        let _ = writeln!(io::stderr().lock(), "No server is configured in a known host.");
    }
    Ok(ExitCode::SUCCESS)
}

fn title(source: &Source) -> String {
    let title = source.host.map_or("", |host| host.title);
    let path = source.path.display().to_string();
    format!("{title} ({}): {}", source.scope, escape::one_line(&path))
}

fn is_same(a: &Source, b: &Source) -> bool {
    a.path == b.path && a.scope == b.scope && a.project == b.project
}

fn server(server: &Configured) -> Value {
    let path = |path: &Path| path.display().to_string();
    let source = &server.source;
    let mut shown = json!({
        "target": server.label(),
        "host": source.host_name(),
        "scope": source.scope.to_string(),
        "name": server.name,
        "file": path(&source.path),
        "enabled": server.enabled,
    });
    let names = |pairs: &[(String, String)]| -> Value {
        pairs.iter().map(|(name, _)| Value::from(name.as_str())).collect()
    };
    match &server.entry {
        Ok(Entry::Command { program, arguments, environment, env_file, folder, .. }) => {
            shown["command"] = program.as_str().into();
            shown["args"] = masked::arguments(arguments).into();
            shown["env"] = names(environment);
            if let Some(file) = env_file {
                shown["envFile"] = file.as_str().into();
            }
            if let Some(folder) = folder {
                shown["cwd"] = folder.as_str().into();
            }
        }
        Ok(Entry::Url { url, headers }) => {
            shown["url"] = masked::url(url).into();
            shown["headers"] = names(headers);
        }
        Err(problem) => shown["problem"] = problem.as_str().into(),
    }
    if let Some(project) = &source.project {
        shown["project"] = path(project).into();
    }
    shown
}
