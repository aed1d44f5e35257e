//! The user's confirmation of a project's configuration. The author of a cloned repository chose which programs its servers are,
//! where the values of variables are sent, and perhaps the name of one of the user's own servers.

use std::{
    env,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use gudgeon::client::configuration;
use sha2::{Digest as _, Sha256};

use super::{
    Entry, masked,
    servers::{Configured, Scope},
};
use crate::{
    escape,
    failure::{Failure, FailureKind},
    files::{read, write},
    output, yes_or_no,
};

/// The way in which the user agrees to use the servers of a project.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Consent {
    /// By an answer in the terminal. Without a terminal, by a name that has the host in it.
    Ask,
    /// By an option of the command.
    Given,
}

/// The digest of a configuration file that the user has to confirm.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileDigest(String);

impl FileDigest {
    pub fn new(text: &str) -> Self {
        Self(hexadecimal(text.as_bytes()))
    }
}

/// Errors if the server is of a project's file that the user has not confirmed. A confirmation is kept until the file changes.
/// `all` are the servers that were found, and `names_host` tells that the command line names the server with its host.
pub fn check(
    server: &Configured,
    all: &[Configured],
    names_host: bool,
    consent: Consent,
) -> Result<(), Failure> {
    let Some(digest) = &server.digest else { return Ok(()) };
    let file = &server.source.path;
    if is_confirmed(file, digest) {
        return Ok(());
    }
    match consent {
        Consent::Given => {}
        Consent::Ask if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            ask(server, all)?;
        }
        // A bare name may be meant for a file of the user; one with its host was chosen by somebody who knew the host's files.
        Consent::Ask if names_host => return Ok(()),
        Consent::Ask => {
            let message = format!(
                "the server {:?} is configured by the project, in {}, which you have not confirmed",
                server.name,
                file.display()
            );
            return Err(Failure::usage(message).with_hint(format!(
                "if you trust the file, give --yes or write {}; `gudgeon discover` shows its servers",
                server.label()
            )));
        }
    }
    if let Err(problem) = confirm(file, digest) {
        output::note(format_args!("the confirmation is not kept: {problem}"));
    }
    Ok(())
}

fn ask(server: &Configured, all: &[Configured]) -> Result<(), Failure> {
    let file = &server.source.path;
    let mut question = format!(
        "{} belongs to a project and configures\n",
        escape::one_line(&file.display().to_string())
    );
    // Also those that are switched off in the host, because they can be named here.
    for other in all
        .iter()
        .filter(|other| other.source.path == *file && other.source.scope == Scope::Project)
    {
        question.push_str(&described(other));
    }
    question.push_str("Use these servers, until the file changes? [y/N] ");
    match yes_or_no::ask(&question)? {
        true => Ok(()),
        false => Err(Failure::new(FailureKind::Declined, "declined; no server was started")
            .with_hint("--config FILE looks the name up in another file, such as your own")),
    }
}

/// Returns everything that a project's server consists of, with nothing left out that looks like a secret: the user decides by
/// it, the author of the file chose what it looks like, and any word may be the program.
fn described(server: &Configured) -> String {
    let name = escape::one_line(&server.name);
    match &server.entry {
        Ok(entry) => {
            let line = command_or_url(entry);
            let mut names: Vec<_> =
                entry.texts().flat_map(configuration::names).map(escape::one_line).collect();
            names.sort();
            names.dedup();
            let gets = match names.is_empty() {
                true => String::new(),
                false => format!(", which gets {}", names.join(", ")),
            };
            let lines = details(entry)
                .into_iter()
                .map(|detail| format!("    {}\n", escape::one_line(&detail)));
            format!("  {name}  {line}{gets}\n{}", lines.collect::<String>())
        }
        Err(problem) => format!("  {name}  (wrong: {})\n", escape::one_line(problem)),
    }
}

fn command_or_url(entry: &Entry) -> String {
    match entry {
        Entry::Command { program, arguments, .. } => masked::command_line(program, arguments),
        Entry::Url { url, .. } => escape::one_line(url).into_owned(),
    }
}

/// Returns what else a server is started with, or sent.
fn details(entry: &Entry) -> Vec<String> {
    match entry {
        Entry::Command { environment, inherits, env_file, folder, .. } => {
            let mut details: Vec<_> =
                environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
            if *inherits {
                details.push("all environment variables".to_owned());
            }
            details.extend(env_file.iter().map(|file| format!("the variables in the file {file}")));
            details.extend(folder.iter().map(|folder| format!("in the folder {folder}")));
            details
        }
        Entry::Url { headers, .. } => {
            headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
        }
    }
}

fn is_confirmed(file: &Path, digest: &FileDigest) -> bool {
    // What cannot be read confirms nothing.
    place(file).and_then(|place| read::small(&place)).is_ok_and(|kept| kept == digest.0.as_bytes())
}

fn confirm(file: &Path, digest: &FileDigest) -> io::Result<()> {
    write::own(&place(file)?, digest.0.as_bytes())
}

/// Returns where the confirmation of a file is kept.
fn place(file: &Path) -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute(if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME" })
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .ok_or_else(|| io::Error::other("there is no folder for it; set HOME"))?;
    let name = hexadecimal(file.as_os_str().as_encoded_bytes());
    Ok(state.join("gudgeon/confirmed").join(name))
}

fn hexadecimal(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
