//! The servers that the hosts on this machine have configured.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use gudgeon::{
    client::configuration::{Notation, Resolver, SERVERS},
    error::Language,
};
use serde_json::Value;

use super::{Document, Entry, Environment, HOSTS, Host, Syntax, confirmation::FileDigest};
use crate::{
    failure::Failure,
    files::{read, trust},
    output,
};

/// The sessions of a host that use a configuration file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope {
    /// All sessions of the user.
    User,
    /// Sessions in the folder of the file, or below it.
    Project,
    /// Sessions of the user in one folder; a part of Claude Code's file.
    Local,
    /// A file that the command line names.
    File,
}

/// The place where a server is configured.
#[derive(Clone, Debug)]
pub struct Source {
    /// `None` for a file that the command line names.
    pub host: Option<&'static Host>,
    pub scope: Scope,
    pub path: PathBuf,
    /// The folder of the project, in the scopes that have one.
    pub project: Option<PathBuf>,
}

/// A server of a configuration file.
#[derive(Clone, Debug)]
pub struct Configured {
    pub source: Source,
    pub name: String,
    /// Errors with what is wrong in the entry.
    pub entry: Result<Entry, String>,
    /// `false` if the user has switched it off in the host.
    pub enabled: bool,
    /// For a file of a project, which the user has to confirm.
    pub digest: Option<FileDigest>,
}

/// All servers, those of the nearest projects first, and the failures of files that could not be read.
#[derive(Debug, Default)]
pub struct Servers {
    pub found: Vec<Configured>,
    pub failures: Vec<Failure>,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::File => "file",
        })
    }
}

impl Source {
    /// Returns the resolver of references, in the notation of the host; in a file that the command line names, in that of any
    /// host.
    pub fn resolver<'a>(&self, environment: &'a Environment) -> Resolver<'a> {
        let notation = self.host.map_or(Notation::All, |host| host.notation);
        let workspace = self.project.as_deref().unwrap_or(&environment.folder);
        let variable = |name: &str| environment.variable_or_empty(name);
        Resolver::new(notation, workspace.to_path_buf(), environment.home().ok(), variable)
    }

    /// Returns the path of a file with variables. Errors if it is one of a project that can't be trusted: a symbolic link, or what
    /// another user may have written.
    pub fn env_file(&self, resolver: &Resolver<'_>, file: &str) -> Result<PathBuf, String> {
        let path = resolver.workspace().join(resolver.resolve(file)?);
        let project = self.project.as_deref().filter(|_| self.scope == Scope::Project);
        let checked = project.map_or(Ok(()), |project| read::check_of_project(project, &path));
        checked.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns the host's name on the command line.
    pub fn host_name(&self) -> &'static str {
        self.host.map_or("file", |host| host.name)
    }
}

impl Configured {
    /// Returns the name with which the server is unambiguous among hosts.
    pub fn label(&self) -> String {
        match self.source.host {
            Some(host) => format!("{}:{}", host.name, self.name),
            None => self.name.clone(),
        }
    }
}

impl Servers {
    /// Reads the files of all hosts: those of the user, and those of projects in the current folder and above it.
    pub fn of_hosts(environment: &Environment) -> Self {
        let mut servers = Self::default();
        let mut seen = HashSet::new();
        let home = environment.home().ok();
        for folder in environment.folder.ancestors() {
            for host in HOSTS {
                let Some(project) = host.project else { continue };
                let path = folder.join(project);
                // The user's files of some hosts have the same path below the home folder.
                let is_users = host.user.resolve(environment).is_ok_and(|other| other == path);
                if is_users || !seen.insert((host.name, path.clone())) {
                    continue;
                }
                let project = Some(folder.to_path_buf());
                servers.read(&Source { host: Some(host), scope: Scope::Project, path, project });
            }
            // Folders above the home folder belong to others.
            if Some(folder) == home.as_deref() {
                break;
            }
        }
        for host in HOSTS {
            match host.user.resolve(environment) {
                Ok(path) => {
                    if host.name == "claude-code" {
                        servers.read_local(host, &path, environment);
                    }
                    let source =
                        Source { host: Some(host), scope: Scope::User, path, project: None };
                    servers.read(&source);
                }
                // One message for all hosts.
                Err(failure) if servers.failures.is_empty() => servers.failures.push(failure),
                Err(_) => (),
            }
        }
        servers
    }

    /// Reads a file that the command line names, in the form of any host.
    pub fn of_file(path: &Path, environment: &Environment) -> Result<Self, Failure> {
        let path = environment.folder.join(path);
        let mut servers = Self::default();
        let is_toml = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("toml"));
        let syntax = if is_toml { Syntax::Toml } else { Syntax::JsonWithComments };
        let document = Document::open(&path, None, syntax, SERVERS[0])?;
        if !document.exists() {
            let message = format!("there is no file {}", path.display());
            return Err(Failure::usage(message).with_hint("--config takes a file with servers"));
        }
        let value = document.value();
        let Some(entries) = SERVERS.iter().find_map(|name| value.get(name)?.as_object()) else {
            let message = format!("{}: the file has no member {:?}", path.display(), SERVERS[0]);
            return Err(Failure::usage(message));
        };
        let project = path.parent().map(Path::to_path_buf);
        let source = Source { host: None, scope: Scope::File, path, project };
        for (name, entry) in entries {
            servers.found.push(configured(source.clone(), name, entry));
        }
        Ok(servers)
    }

    fn read(&mut self, source: &Source) {
        let Some(host) = source.host else { return };
        let project = source.project.as_deref().filter(|_| source.scope == Scope::Project);
        if let Some(folder) = project
            && let Ok(below) = source.path.strip_prefix(folder)
            && let Some(problem) = trust::problem(folder, below)
        {
            output::note(format_args!("{} is not used: {problem}", source.path.display()));
            return;
        }
        match Document::open(&source.path, project, host.syntax, host.servers) {
            Ok(document) => {
                let digest = project.map(|_| FileDigest::new(document.text()));
                for (name, entry) in document.entries() {
                    let server = configured(source.clone(), &name, &entry);
                    self.found.push(Configured { digest: digest.clone(), ..server });
                }
            }
            Err(failure) => self.failures.push(failure),
        }
    }

    /// Reads the servers that Claude Code keeps for the user in one folder.
    fn read_local(&mut self, host: &'static Host, path: &Path, environment: &Environment) {
        // A broken file is reported once, by the caller.
        let Ok(document) = Document::open(path, None, host.syntax, host.servers) else { return };
        let value = document.value();
        let Some(projects) = value.get("projects").and_then(Value::as_object) else { return };
        for folder in environment.folder.ancestors() {
            let project = folder.to_str().and_then(|folder| projects.get(folder));
            let entries = project.and_then(|project| project.get(host.servers)?.as_object());
            for (name, entry) in entries.into_iter().flatten() {
                let source = Source {
                    host: Some(host),
                    scope: Scope::Local,
                    path: path.to_path_buf(),
                    project: Some(folder.to_path_buf()),
                };
                self.found.push(configured(source, name, entry));
            }
        }
    }
}

fn configured(source: Source, name: &str, entry: &Value) -> Configured {
    let is = |member: &str, value: bool| entry.get(member).and_then(Value::as_bool) == Some(value);
    let enabled = !(is("disabled", true) || is("enabled", false));
    let entry = Entry::read(Language::Rust, entry).map_err(|problem| problem.message);
    Configured { source, name: name.to_owned(), entry, enabled, digest: None }
}
