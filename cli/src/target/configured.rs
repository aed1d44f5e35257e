//! Targets that are named: servers that a host, or a file of the user's own, has configured.

use std::{collections::HashSet, env, path::Path};

use gudgeon::{
    client::{ClientBuilder, ConfiguredTarget},
    error::Language,
};

use super::Launch;
use crate::{
    failure::{Failure, FailureKind},
    hosts::{
        Consent, Entry, Environment, Host, code_variables, confirmation,
        servers::{Configured, Scope, Servers},
    },
};

/// Finds a server by `NAME` or `HOST:NAME`, in the files of all hosts or in the given one. Returns `None` if there is none.
/// Errors if the name stands for several servers, and if the user does not agree to use the file of a project.
pub fn find(
    text: &str,
    file: Option<&Path>,
    consent: Consent,
) -> Result<Option<Configured>, Failure> {
    let environment = Environment::of_process()?;
    let servers = match file {
        Some(file) => Servers::of_file(file, &environment)?,
        None => Servers::of_hosts(&environment),
    };
    let chosen = choose(text, &servers)?;
    if let Some(server) = chosen {
        confirmation::check(server, &servers.found, names_host(text), consent)?;
    }
    Ok(chosen.cloned())
}

/// Returns whether the text is HOST:NAME, and not MODULE:APP.
pub fn names_host(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, _)| Host::find(host).is_some())
}

fn choose<'a>(text: &str, servers: &'a Servers) -> Result<Option<&'a Configured>, Failure> {
    let (host, name) = match text.split_once(':') {
        Some((host, name)) if Host::find(host).is_some() => (Some(host), name),
        _ => (None, text),
    };
    let matches = |server: &Configured| {
        server.name == name && host.is_none_or(|host| server.source.host_name() == host)
    };
    let mut found: Vec<_> = servers.found.iter().filter(|server| matches(server)).collect();
    // In one host, the nearest project's server is the one that is used.
    let mut hosts = HashSet::new();
    found.retain(|server| hosts.insert(server.source.host_name()));
    let Some(first) = found.first().copied() else {
        return match servers.failures.first() {
            Some(failure) => {
                let hint =
                    format!("{name:?} is in no other file; it may be configured in this one");
                Err(failure.clone().with_hint(hint))
            }
            None => Ok(None),
        };
    };
    if found.iter().any(|server| server.entry != first.entry) {
        let labels: Vec<_> = found.iter().map(|server| server.label()).collect();
        let message = format!("the name {name:?} is that of several servers");
        return Err(
            Failure::usage(message).with_hint(format!("write one of {}", labels.join(", ")))
        );
    }
    Ok(Some(first))
}

/// Returns a client of a configured server. Errors if its entry is wrong or refers to a variable without a value.
pub fn builder(server: &Configured) -> Result<ClientBuilder, Failure> {
    let place = ConfiguredTarget::from_entry(Language::Rust, &resolved(server)?);
    Ok(place.map_err(|problem| failure(server, &problem.message))?.builder())
}

/// Returns the program of a configured server. Errors as [`builder`], and if the server is at a URL.
pub fn launch(server: &Configured) -> Result<Launch, Failure> {
    match resolved(server)? {
        Entry::Command { program, arguments, environment, inherits, folder, .. } => {
            let inherited = env::vars_os().filter(|_| inherits);
            let own = environment.into_iter().map(|(name, value)| (name.into(), value.into()));
            Ok(Launch {
                program: program.into(),
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment: inherited.chain(own).collect(),
                folder: folder.map(Into::into),
            })
        }
        Entry::Url { url, .. } => Err(failure(server, &format!("{url} is a URL, not a program"))),
    }
}

/// Returns the entry with the values of its variables.
fn resolved(server: &Configured) -> Result<Entry, Failure> {
    let environment = Environment::of_process()?;
    let resolver = server.source.resolver(&environment);
    if let Ok(Entry::Command { env_file: Some(file), .. }) = &server.entry {
        let checked = server.source.env_file(&resolver, file);
        checked.map_err(|problem| failure(server, &format!("envFile: {problem}")))?;
    }
    let entry = server.entry.clone().and_then(|entry| entry.resolve(&resolver));
    let entry = entry.map_err(|problem| failure(server, &problem))?;
    match unconfirmed(server, &entry) {
        None => Ok(entry),
        Some(name) => Err(failure(
            server,
            &format!(
                "envFile: it sets {name}, which decides what is run, and only the configuration was confirmed: write it \
                 into \"env\" there"
            ),
        )),
    }
}

/// Returns a variable that decides which code the server runs, and that the user did not see when a project's configuration was
/// confirmed, because it stands in another file.
fn unconfirmed<'a>(server: &Configured, entry: &'a Entry) -> Option<&'a str> {
    let (Ok(Entry::Command { environment: seen, .. }), Entry::Command { environment, .. }) =
        (&server.entry, entry)
    else {
        return None;
    };
    let is_seen = |name: &String| seen.iter().any(|(own, _)| own == name);
    let mut names = environment.iter().map(|(name, _)| name);
    let found = names.find(|name| !is_seen(name) && code_variables::decides_code(name));
    found.filter(|_| server.source.scope == Scope::Project).map(String::as_str)
}

fn failure(server: &Configured, problem: &str) -> Failure {
    let message =
        format!("the server {:?} in {}: {problem}", server.name, server.source.path.display());
    Failure::new(FailureKind::File, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Source;

    fn server(host: &str, name: &str, url: &str) -> Configured {
        Configured {
            source: Source {
                host: Host::find(host),
                scope: Scope::User,
                path: "/f".into(),
                project: None,
            },
            name: name.into(),
            entry: Ok(Entry::Url { url: url.into(), headers: Vec::new() }),
            enabled: true,
            digest: None,
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_may_have_the_name() {
        let servers = |found| Servers {
            found,
            failures: vec![Failure::usage("mcp.json: line 1, column 14: broken")],
        };
        let error = choose("a", &servers(Vec::new())).unwrap_err();
        assert!(error.to_string().contains("mcp.json: line 1"), "{error}");
        let servers = servers(vec![server("cursor", "a", "http://x")]);
        assert!(choose("a", &servers).unwrap().is_some());
    }

    fn chosen(text: &str) -> Result<Option<String>, String> {
        let found = vec![
            server("cursor", "a", "http://project"),
            server("cursor", "a", "http://user"),
            server("codex", "a", "http://other"),
            server("cursor", "b", "http://same"),
            server("codex", "b", "http://same"),
        ];
        let url = |server: &Configured| match server.entry.as_ref().unwrap() {
            Entry::Url { url, .. } => url.clone(),
            command @ Entry::Command { .. } => panic!("{command:?}"),
        };
        match choose(text, &Servers { found, failures: Vec::new() }) {
            Ok(server) => Ok(server.map(url)),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn a_name_stands_for_one_server() {
        assert_eq!(chosen("cursor:a"), Ok(Some("http://project".into())));
        assert_eq!(chosen("codex:a"), Ok(Some("http://other".into())));
        assert_eq!(chosen("b"), Ok(Some("http://same".into())));
        assert_eq!(chosen("c"), Ok(None));
        assert_eq!(chosen("zed:a"), Ok(None));
        let error = chosen("a").unwrap_err();
        assert!(error.contains("cursor:a, codex:a"), "{error}");
    }
}
