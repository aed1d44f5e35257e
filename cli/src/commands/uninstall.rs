//! `gudgeon uninstall`: removes a server from the configuration of a host.

use std::process::ExitCode;

use clap::Args;

use super::install::{Change, Made, ScopeArgument, host, host_names, path, project, tell_backup};
use crate::{
    failure::{Failure, FailureKind},
    hosts::{Document, Environment},
    output,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon uninstall shelf --from claude-desktop
  gudgeon uninstall shelf --from cursor --scope project --dry-run";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The name of the server in the host
    name: String,
    /// The host
    #[arg(long, value_name = "HOST", value_parser = host_names())]
    from: String,
    /// The configuration to change: the user's, or that of the project in the current folder
    #[arg(long, value_enum, default_value = "user")]
    scope: ScopeArgument,
    /// Show the change and do not make it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process()?;
    let host = host(&arguments.from)?;
    let path = path(host, arguments.scope, &environment)?;
    let project = project(arguments.scope, &environment);
    let document = Document::open(&path, project, host.syntax, host.servers)?;
    let entries = document.entries();
    let name = &arguments.name;
    if !entries.contains_key(name) {
        let message = format!("{} has no server {name:?}: {}", host.title, path.display());
        let names: Vec<_> = entries.keys().map(|name| format!("{name:?}")).collect();
        let failure = Failure::new(FailureKind::NotFound, message);
        return Err(match names.is_empty() {
            true => failure.with_hint("`gudgeon discover` lists the servers of all hosts"),
            false => failure.with_hint(format!("it has {}", names.join(", "))),
        });
    }
    let edited = document.without(name)?;
    let change =
        Change { path: &path, project, server: name, document: &document, edited: &edited };
    if let Made::Written(backup) = change.make(arguments.dry_run, arguments.yes, false)? {
        output::line(format_args!(
            "Removed the server {name:?} from {}: {}",
            host.title,
            path.display()
        ))?;
        tell_backup(backup)?;
        output::line(format_args!("Next: {}.", host.reload))?;
    }
    Ok(ExitCode::SUCCESS)
}
