//! The arguments that all commands with a target share, and the client that they describe.

use std::{env, ffi::OsString, io, path::PathBuf, time::Duration};

use clap::Args;
use gudgeon::{
    Client, Revision,
    client::{ClientBuilder, Target as ClientTarget, auth::Auth},
};

use crate::{
    failure::{Failure, FailureKind},
    files::read,
    hosts::Consent,
    target::Target,
    tokens,
};

/// The environment variable with an access token.
const TOKEN: &str = "GUDGEON_TOKEN";

/// The user's consent to use the servers of a project.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ConsentArguments {
    /// Do not ask before a server is used that the configuration of a project names
    #[arg(long)]
    yes: bool,
}

impl ConsentArguments {
    pub fn consent(self) -> Consent {
        if self.yes { Consent::Given } else { Consent::Ask }
    }
}

/// The connection to a target.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArguments {
    /// Speak this revision of the protocol instead of the newest that the server speaks
    #[arg(long, value_name = "DATE", value_parser = revision)]
    pub revision: Option<Revision>,
    /// Send this HTTP header; may be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// The longest time to wait for a response, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
    /// The longest time for a call as a whole, whatever progress it makes, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_timeout: Option<Duration>,
    /// The longest time to connect, in seconds; by default that of --timeout
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub connect_timeout: Option<Duration>,
    /// Send the access token in this file to a server over HTTP; by default the one in the environment variable
    /// `GUDGEON_TOKEN`
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Trust the certificates in this PEM file, and no others, for https and wss
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Show the server this certificate, a PEM file; with --certificate-key
    #[arg(long, value_name = "FILE", requires = "certificate_key")]
    pub certificate: Option<PathBuf>,
    /// The key of --certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub certificate_key: Option<PathBuf>,
    /// Look up the name of a server in this file instead of in those of hosts
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub consent: ConsentArguments,
    /// The command of a server over stdio
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Default for ConnectionArguments {
    fn default() -> Self {
        Self {
            revision: None,
            headers: Vec::new(),
            timeout: Duration::from_secs(60),
            max_timeout: None,
            connect_timeout: None,
            token_file: None,
            ca: None,
            certificate: None,
            certificate_key: None,
            config: None,
            consent: ConsentArguments::default(),
            command: Vec::new(),
        }
    }
}

impl ConnectionArguments {
    /// Splits positional arguments into the target, which is the command after `--` or else the first of them, and the
    /// rest.
    pub fn target(&self, mut words: Vec<String>) -> Result<(Target, Vec<String>), Failure> {
        if !self.command.is_empty() {
            return Ok((Target::Command(self.command.clone()), words));
        }
        if words.is_empty() {
            let hint = "give a URL, a file, a name, or a command after `--`; see `gudgeon --help`";
            return Err(Failure::usage("the target is missing").with_hint(hint));
        }
        let target =
            Target::find(&words.remove(0), self.config.as_deref(), self.consent.consent())?;
        if let Target::Connection(name) = &target
            && let Some(option) = self.options_of_connect().next()
        {
            return Err(belongs_to_connect(option, name));
        }
        Ok((target, words))
    }

    /// Returns the options that are given, and that only the command can take that opens a connection.
    fn options_of_connect(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("--revision", self.revision.is_some()),
            ("--header", !self.headers.is_empty()),
            ("--token-file", self.token_file.is_some()),
            ("--ca", self.ca.is_some()),
            ("--certificate", self.certificate.is_some()),
        ];
        given.into_iter().filter_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Connects to the target, for commands in which the server asks nothing.
    pub async fn connect(&self, target: &Target) -> Result<Client, Failure> {
        Ok(self.builder(target)?.connect().await?)
    }

    /// Returns a client of the target that is not connected yet.
    pub fn builder(&self, target: &Target) -> Result<ClientBuilder, Failure> {
        let token = if target.takes_token() { self.token()? } else { None };
        let builder = target.builder()?;
        if !matches!(builder.target().0, ClientTarget::Url(_)) {
            let given =
                [("--ca", self.ca.is_some()), ("--certificate", self.certificate.is_some())];
            if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::usage(format!("{option} is for URLs; a command takes none")));
            }
        }
        let has_credentials = token.is_some()
            || self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let stored = match has_credentials {
            true => None,
            false => tokens::stored_for(builder.target().0),
        };
        let builder = builder.options(|options| {
            options.info.name = "gudgeon".into();
            options.info.version = env!("CARGO_PKG_VERSION").into();
            options.timeout = Some(self.timeout);
            options.max_timeout = self.max_timeout;
            options.connect_timeout = self.connect_timeout;
            options.auth = token.map(Auth::Token).or_else(|| options.auth.take()).or(stored);
            options.headers.extend(self.headers.iter().cloned());
            options.ca = self.ca.clone().map(Into::into).or_else(|| options.ca.take());
            if let (Some(certificate), Some(key)) = (&self.certificate, &self.certificate_key) {
                options.certificate = Some((certificate.clone().into(), key.clone().into()));
            }
            if let Some(revision) = self.revision {
                options.revisions = vec![revision];
            }
        });
        Ok(builder)
    }

    /// Returns the access token, which never stands on the command line, where other users of the machine see it.
    fn token(&self) -> Result<Option<String>, Failure> {
        let (token, place) = match &self.token_file {
            Some(file) => {
                let read = read::text_file(file, read::MAX_SECRET);
                let failed = |error: io::Error| {
                    let message = format!("--token-file {}: {error}", file.display());
                    Failure::new(FailureKind::File, message)
                };
                (read.map_err(failed)?, format!("the file {}", file.display()))
            }
            None => match env::var(TOKEN) {
                Ok(token) if !token.is_empty() => (token, format!("the variable {TOKEN}")),
                _ => return Ok(None),
            },
        };
        let token = token.trim();
        // The token itself is not repeated: it is secret.
        match token.is_empty() || token.contains(|letter: char| !letter.is_ascii_graphic()) {
            true => Err(Failure::usage(format!("{place} does not contain an access token"))
                .with_hint("it is one word of printable ASCII characters")),
            false => Ok(Some(token.to_owned())),
        }
    }
}

/// Returns the failure of an option that can't change a named connection.
pub fn belongs_to_connect(option: &str, name: &str) -> Failure {
    let message =
        format!("{option} can't change the connection {name:?}, which other commands use too");
    Failure::usage(message).with_hint(format!(
        "run `gudgeon disconnect {name}`, then `gudgeon connect {name} {option} … TARGET`"
    ))
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| {
        let all = Revision::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("the revisions are {all}")
    })
}

/// Reads a header of the command line.
pub fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Reads a positive number of seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "a number of seconds is expected, such as 2.5")?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("it must be above 0".into()) } else { Ok(duration) }
}
