//! Targets: the servers that a command is told to talk to.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use gudgeon::{
    Client,
    client::{self, ClientBuilder},
    transport,
};

use crate::{background, failure::Failure};

/// A server as named on the command line.
#[derive(Clone, Debug)]
pub enum Target {
    Url(String),
    Command(Vec<OsString>),
    /// A connection that `gudgeon connect` made.
    Connection(String),
    /// A file of a server in Python, TypeScript or JavaScript.
    File(PathBuf),
}

impl Target {
    /// Reads a target other than a command.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text.contains("://") {
            return Ok(Self::Url(text.to_owned()));
        }
        if background::is_connection(text) {
            return Ok(Self::Connection(text.to_owned()));
        }
        if Path::new(text).is_file() {
            return Ok(Self::File(text.into()));
        }
        let message =
            format!("there is no target {text:?}: it is neither a URL, a file, nor a connection");
        Err(Failure::usage(message).with_hint("a command goes after `--`"))
    }

    /// Returns a client of this server that is not connected yet.
    pub fn builder(&self) -> Result<ClientBuilder, Failure> {
        let target = match self {
            Self::Url(url) => client::Target::url(url)?,
            Self::Command(words) => command(words).into(),
            Self::Connection(name) => {
                let builder = Client::builder(background::client::open(name)?);
                // The background process may have to connect to the server first.
                return Ok(builder.options(|it| it.probe_timeout = Duration::MAX));
            }
            Self::File(path) => {
                let interpreter = match path.extension().and_then(|it| it.to_str()) {
                    Some("py") => "python3",
                    Some("js" | "mjs" | "cjs") => "node",
                    _ => {
                        let message = format!("{}: the suffix tells no language", path.display());
                        let hint =
                            "it may be .py, .js, .mjs or .cjs; or give the command after `--`";
                        return Err(Failure::usage(message).with_hint(hint));
                    }
                };
                transport::Command::new(interpreter).args([path]).into()
            }
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
            Self::Url(text) | Self::Connection(text) => f.write_str(text),
            Self::Command(words) => {
                let words: Vec<_> = words.iter().map(|it| it.to_string_lossy()).collect();
                f.write_str(&words.join(" "))
            }
            Self::File(path) => path.display().fmt(f),
        }
    }
}
