//! Targets: the servers that a command is told to talk to.

mod file;
mod interpreter;

use std::{ffi::OsString, fmt};

use gudgeon::{
    Client,
    client::{self, ClientBuilder},
    transport,
};

pub use self::file::{FileTarget, Launch};
use crate::failure::Failure;

/// A server as named on the command line.
#[derive(Clone, Debug)]
pub enum Target {
    Url(String),
    Command(Vec<OsString>),
    /// A file of a server in Python, TypeScript or JavaScript, or a module of Python.
    File(FileTarget),
}

impl Target {
    /// Reads a target other than a command.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text.contains("://") {
            return Ok(Self::Url(text.to_owned()));
        }
        if let Some(file) = FileTarget::parse(text)? {
            return Ok(Self::File(file));
        }
        let message = format!("there is no target {text:?}: it is neither a URL nor a file");
        Err(Failure::usage(message).with_hint("a command goes after `--`"))
    }

    /// Returns the program of a server over stdio. Errors for a URL.
    pub fn launch(&self) -> Result<Launch, Failure> {
        match self {
            Self::Url(url) => Err(Failure::usage(format!("{url} is a URL, not a program"))
                .with_hint("give a file of a server, or a command after `--`")),
            Self::Command(words) => Ok(Launch::of(words)),
            Self::File(file) => file.launch(None),
        }
    }

    /// Returns a client of this server that is not connected yet.
    pub fn builder(&self) -> Result<ClientBuilder, Failure> {
        let target = match self {
            Self::Url(url) => client::Target::url(url)?,
            Self::Command(words) => command(words).into(),
            Self::File(file) => file.launch(None)?.into_command().into(),
        };
        Ok(Client::builder(target))
    }
}

fn command(words: &[OsString]) -> transport::Command {
    let (program, arguments) =
        words.split_first().map_or((OsString::new(), &[][..]), |it| (it.0.clone(), it.1));
    transport::Command::new(program).args(arguments)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Command(words) => {
                let words: Vec<_> = words.iter().map(|it| it.to_string_lossy()).collect();
                f.write_str(&words.join(" "))
            }
            Self::File(file) => file.fmt(f),
        }
    }
}
