//! Targets: the servers that commands connect to.

mod configured;
mod file;
pub mod interpreter;
mod module;
mod script;
pub mod server_signs;

use std::{ffi::OsString, fmt, path::Path};

use gudgeon::{
    Client,
    client::{self, ClientBuilder},
    transport,
};

pub use self::{
    file::{FileTarget, Launch},
    script::is_script,
};
use crate::{
    background,
    failure::Failure,
    hosts::{Consent, masked, servers::Configured},
};

/// A server as named on the command line.
#[derive(Clone, Debug)]
pub enum Target {
    Url(String),
    Command(Vec<OsString>),
    /// A connection that `gudgeon connect` made.
    Connection(String),
    /// A file of a server in Python, TypeScript or JavaScript, or a module of Python.
    File(FileTarget),
    /// A server that a host has configured.
    Configured(Box<Configured>),
}

impl Target {
    /// Reads a target other than a command. Names of configured servers are looked up in the files of hosts.
    pub fn parse(text: &str, consent: Consent) -> Result<Self, Failure> {
        Self::find(text, None, consent)
    }

    /// Reads a target other than a command. Names are looked up in `file` only, if there is one. Errors if `consent` does not
    /// allow to use the server of a project.
    pub fn find(text: &str, file: Option<&Path>, consent: Consent) -> Result<Self, Failure> {
        if file.is_none() && background::is_connection(text) {
            return Ok(Self::Connection(text.to_owned()));
        }
        Self::server(text, file, consent)
    }

    /// Like [`Self::find`], without the named connections.
    pub fn server(text: &str, file: Option<&Path>, consent: Consent) -> Result<Self, Failure> {
        if file.is_none() {
            if text.contains("://") {
                return Ok(Self::Url(text.to_owned()));
            }
            if !configured::names_host(text)
                && let Some(file) = FileTarget::parse(text)?
            {
                return Ok(Self::File(file));
            }
        }
        if let Some(server) = configured::find(text, file, consent)? {
            return Ok(Self::Configured(Box::new(server)));
        }
        let message = match file {
            Some(file) => format!("there is no server {text:?} in {}", file.display()),
            None => format!(
                "there is no target {text:?}: it is neither a URL, nor a file, nor the name of a configured server"
            ),
        };
        let hint = "`gudgeon discover` lists configured servers; a command goes after `--`";
        Err(Failure::usage(message).with_hint(url_hint(text).unwrap_or_else(|| hint.into())))
    }

    /// Returns whether the server can get an access token: over HTTP and WebSocket.
    pub fn takes_token(&self) -> bool {
        let schemes = ["http://", "https://", "ws://", "wss://"];
        let has_scheme = |url: &str, scheme: &str| {
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        matches!(self, Self::Url(url) if schemes.iter().any(|scheme| has_scheme(url, scheme)))
    }

    /// Returns the program of a server over stdio. Errors for a URL and for a named connection.
    pub fn launch(&self) -> Result<Launch, Failure> {
        match self {
            Self::Url(url) => Err(Failure::usage(format!("{url} is a URL, not a program"))
                .with_hint("give a file of a server, or a command after `--`")),
            Self::Command(words) => Ok(Launch::from_words(words)),
            Self::File(file) => file.launch(None),
            Self::Configured(server) => configured::launch(server),
            Self::Connection(_) => {
                let message = format!("{self} is the name of a connection, not a program");
                let hint = "give its server: a URL, a file, or a command after `--`";
                Err(Failure::usage(message).with_hint(hint))
            }
        }
    }

    /// Returns a client of this server that is not connected yet.
    pub fn builder(&self) -> Result<ClientBuilder, Failure> {
        let target = match self {
            Self::Url(url) => client::Target::url(url)?,
            Self::Command(words) => command(words).into(),
            Self::Connection(name) => return background::client::open(name),
            Self::Configured(server) => return configured::builder(server),
            Self::File(file) => file.launch(None)?.into_command().named(file.to_string()).into(),
        };
        Ok(Client::builder(target))
    }
}

/// Returns the hint for a URL without its scheme; `None` if the target does not look like one.
fn url_hint(text: &str) -> Option<String> {
    transport::Url::with_scheme(text).map(|url| format!("a URL has a scheme: {url}"))
}

fn command(words: &[OsString]) -> transport::Command {
    let (program, arguments) =
        words.split_first().map_or((OsString::new(), &[][..]), |pair| (pair.0.clone(), pair.1));
    transport::Command::new(program).args(arguments)
}

/// Without what may be secret, because reports and lists of connections are kept and passed on.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(&masked::url(url)),
            Self::Connection(name) => f.write_str(name),
            Self::Command(words) => {
                let words: Vec<_> =
                    words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
                f.write_str(&masked::arguments(&words).join(" "))
            }
            Self::File(file) => file.fmt(f),
            Self::Configured(server) => f.write_str(&server.label()),
        }
    }
}
