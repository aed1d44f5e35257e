//! `gudgeon install`: adds a server to the configuration of a host.

use std::{
    env,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use serde_json::Value;

use crate::{
    escape,
    failure::{Failure, FailureKind},
    files::write,
    hosts::{
        Consent, Document, Entry, Environment, HOSTS, Host, diff,
        entry::{moved, written, written_over},
        launch,
    },
    output,
    target::{Target, server_signs},
    yes_or_no,
};

const EXAMPLES: &str = "\
Examples:
  gudgeon install server.py --into claude-desktop
  gudgeon install server.ts --into cursor --scope project --name shelf
  gudgeon install shop.server:app --into claude-code
  gudgeon install https://mcp.example.com/mcp --into vscode \\
    --header 'Authorization: Bearer ${env:TOKEN}'
  gudgeon install --into codex --env API_KEY -- npx -y @modelcontextprotocol/server-everything

Shows the change of the configuration file before it is made, without what may be secret: values of \
variables and headers, arguments that are named like secrets, other servers. A terminal \
is asked to confirm it. The file before the change is kept beside it, as FILE.gudgeon.bak.";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = "gudgeon install [OPTIONS] --into HOST TARGET\n       gudgeon install [OPTIONS] --into HOST -- COMMAND...")]
pub struct Arguments {
    /// The file of a server, `FILE:NAME` where it defines several, `MODULE:APP` in Python, a URL, or the name of a server
    /// that another host has
    #[arg(value_name = "TARGET")]
    target: Option<String>,
    /// The host
    #[arg(long, value_name = "HOST", value_parser = host_names())]
    into: String,
    /// The name of the server in the host [default: the name of the file, package or address]
    #[arg(long)]
    name: Option<String>,
    /// Set an environment variable of the server; without a value, that of this process
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Send this HTTP header to a URL; may be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// The configuration to change: the user's, or that of the project in the current folder
    #[arg(long, value_enum, default_value = "user")]
    scope: ScopeArgument,
    /// Show the change and do not make it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask, also where a server of this name is replaced, or comes from the configuration of a project
    #[arg(long, short)]
    yes: bool,
    /// The command of a server over stdio
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ScopeArgument {
    User,
    Project,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process()?;
    let host = host(&arguments.into)?;
    let target = target(arguments)?;
    let mut entry = entry(&target, host, &environment)?;
    add_variables(&mut entry, &arguments.env, &environment)?;
    add_headers(&mut entry, &arguments.headers)?;
    let name = arguments.name.clone().unwrap_or_else(|| match &target {
        Target::File(file) if file.name().is_some() => launch::name_of(file, &environment),
        _ => launch::name(&entry),
    });
    launch::check_name(&name)?;

    let path = path(host, arguments.scope, &environment)?;
    let project = project(arguments.scope, &environment);
    let document = Document::open(&path, project, host.syntax, host.servers)?;
    let old = document.entries().remove(&name);
    let new = match &old {
        Some(old) => written_over(&entry, host, old)?,
        None => written(&entry, host)?,
    };
    if old.as_ref() == Some(&Value::Object(new.clone())) {
        output::line(format_args!(
            "{} has the server {name:?} already: {}",
            host.title,
            path.display()
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let edited = document.with(&name, &new)?;
    let change =
        Change { path: &path, project, server: &name, document: &document, edited: &edited };
    let is_replaced = old.is_some();
    let backup = match change.make(arguments.dry_run, arguments.yes, is_replaced)? {
        Made::Shown => return Ok(ExitCode::SUCCESS),
        Made::Written(backup) => backup,
    };
    output::line(format_args!("Added the server {name:?} to {}: {}", host.title, path.display()))?;
    tell_backup(backup)?;
    output::line(format_args!("Next: {}.", host.reload))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the parser of a host's name, which lists all of them in errors and in the help.
pub fn host_names() -> PossibleValuesParser {
    PossibleValuesParser::new(HOSTS.iter().map(|host| host.name))
}

/// Returns the host of a name that `host_names` accepted.
pub fn host(name: &str) -> Result<&'static Host, Failure> {
    Host::find(name).ok_or_else(|| Failure::usage(format!("there is no host {name:?}")))
}

/// Returns the path of a host's configuration file. Errors if the host has none for projects.
pub fn path(
    host: &Host,
    scope: ScopeArgument,
    environment: &Environment,
) -> Result<PathBuf, Failure> {
    match (scope, host.project) {
        (ScopeArgument::User, _) => host.user.resolve(environment),
        (ScopeArgument::Project, Some(path)) => Ok(environment.folder.join(path)),
        (ScopeArgument::Project, None) => {
            let message = format!("{} has no configuration files of projects", host.title);
            Err(Failure::usage(message).with_hint("leave out `--scope project`"))
        }
    }
}

/// Returns the folder of the project whose configuration is meant.
pub fn project(scope: ScopeArgument, environment: &Environment) -> Option<&Path> {
    (scope == ScopeArgument::Project).then_some(&environment.folder)
}

pub fn tell_backup(backup: Option<PathBuf>) -> Result<(), Failure> {
    backup.map_or(Ok(()), |path| {
        output::line(format_args!("The file before the change: {}", path.display()))
    })
}

/// A change of a configuration file.
pub struct Change<'a> {
    pub path: &'a Path,
    /// The folder of the project that the file belongs to.
    pub project: Option<&'a Path>,
    /// The name of the server that is added or removed.
    pub server: &'a str,
    pub document: &'a Document,
    pub edited: &'a Document,
}

/// The outcome of a change.
pub enum Made {
    Shown,
    /// With the path of the backup.
    Written(Option<PathBuf>),
}

impl Change<'_> {
    /// Shows the change, asks for confirmation, and makes it. Without a terminal, a change that replaces something needs
    /// `yes`.
    pub fn make(&self, dry_run: bool, yes: bool, replaces: bool) -> Result<Made, Failure> {
        let file = self.shown_path();
        let colours = io::stdout().is_terminal()
            && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let (old, new) = (self.document.masked(self.server), self.edited.masked(self.server));
        // The file may be of a project, with comments that a terminal would obey.
        let shown = diff::unified(&file, &escape::lines(&old), &escape::lines(&new), colours);
        match shown.is_empty() {
            true => output::line(format_args!(
                "{file}: values that are not shown, because they may be secret, change"
            ))?,
            false => output::line(shown.trim_end_matches('\n'))?,
        }
        if dry_run {
            return Ok(Made::Shown);
        }
        if !yes {
            self.confirm(replaces)?;
        }
        let old = self.document.exists().then(|| self.document.text());
        Ok(Made::Written(write::replace(self.path, self.project, old, self.edited.text())?))
    }

    fn shown_path(&self) -> String {
        escape::one_line(&self.path.display().to_string()).into_owned()
    }

    fn confirm(&self, replaces: bool) -> Result<(), Failure> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return match replaces {
                false => Ok(()),
                true => Err(Failure::usage("a server of this name is configured in another way")
                    .with_hint(
                        "repeat the command with --yes to replace it, or choose another --name",
                    )),
            };
        }
        match yes_or_no::ask(&format!("Write {}? [y/N] ", self.shown_path()))? {
            true => Ok(()),
            false => Err(Failure::new(FailureKind::Declined, "declined; nothing was changed")),
        }
    }
}

fn target(arguments: &Arguments) -> Result<Target, Failure> {
    match (&arguments.target, arguments.command.is_empty()) {
        (Some(text), true) => {
            Target::parse(text, if arguments.yes { Consent::Given } else { Consent::Ask })
        }
        (None, false) => Ok(Target::Command(arguments.command.clone())),
        (Some(_), false) => {
            let message = "both a target and a command after `--` are given";
            Err(Failure::usage(message).with_hint("give one of them"))
        }
        (None, true) => {
            let hint = "give a file, a URL, a name, or a command after `--`";
            Err(Failure::usage("the target is missing").with_hint(hint))
        }
    }
}

fn entry(target: &Target, host: &Host, environment: &Environment) -> Result<Entry, Failure> {
    match target {
        Target::Url(url) => {
            // Reports a wrong URL now, instead of in the host.
            gudgeon::client::Target::url(url)?;
            Ok(Entry::Url { url: url.clone(), headers: Vec::new() })
        }
        Target::Command(words) => launch::of_command(words, environment),
        Target::File(file) if file.name().is_none() => {
            server_signs::check(file.path())?;
            match launch::serves_itself(file.path()) {
                true => launch::of_file(file.path(), environment),
                false => launch::of_run(file, environment),
            }
        }
        Target::File(file) => launch::of_run(file, environment),
        Target::Configured(server) => {
            let entry = server.entry.clone().map_err(Failure::usage)?;
            let entry = moved(&entry, host, &server.source, environment);
            entry.map_err(|problem| {
                Failure::new(FailureKind::File, format!("{}: {problem}", server.label()))
            })
        }
        Target::Connection(name) => {
            let message =
                format!("{name:?} is a connection of `gudgeon connect`, which hosts can't use");
            Err(Failure::usage(message).with_hint("install the server's file, URL or command"))
        }
    }
}

fn add_variables(
    entry: &mut Entry,
    variables: &[String],
    environment: &Environment,
) -> Result<(), Failure> {
    let Entry::Command { environment: members, .. } = entry else {
        return match variables {
            [] => Ok(()),
            _ => Err(Failure::usage("--env is for commands; a URL takes --header")),
        };
    };
    for variable in variables {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (variable.as_str(), environment.variable(variable)),
        };
        let Some(value) = value else {
            let message = format!("--env {variable}: this variable is not set");
            return Err(Failure::usage(message).with_hint(format!("write --env {variable}=VALUE")));
        };
        if name.is_empty() || name.contains('\0') || value.contains('\0') {
            return Err(Failure::usage(
                "--env takes NAME=VALUE, or the NAME of a variable that is set",
            ));
        }
        members.retain(|(known, _)| known != name);
        members.push((name.to_owned(), value));
    }
    Ok(())
}

fn add_headers(entry: &mut Entry, given: &[String]) -> Result<(), Failure> {
    let Entry::Url { headers, .. } = entry else {
        return match given {
            [] => Ok(()),
            _ => Err(Failure::usage("--header is for URLs; a command takes --env")),
        };
    };
    for header in given {
        let (name, value) =
            header.split_once(':').ok_or_else(|| Failure::usage("--header takes NAME: VALUE"))?;
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name.trim()));
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(())
}
