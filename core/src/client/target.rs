//! Where a server is.

use std::fmt;

use crate::{
    error::Error,
    transport::{Command, Link, child::Process},
};

/// A program to start, or a stream that is there already.
#[derive(Debug)]
pub enum Target {
    Command(Command),
    /// Messages one a line, and a name for errors.
    Stream(Link, String),
}

impl Target {
    /// Any two halves of a byte stream, one message a line.
    pub fn stream(
        input: impl tokio::io::AsyncRead + Send + Unpin + 'static,
        output: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::Stream(Link::new(input, output), "stream".into())
    }

    /// Reaches the server; a way to reach it again, where there is one.
    pub(super) fn reach(self) -> Result<(Link, Option<Process>, Option<Command>), Error> {
        match self {
            Self::Command(command) => {
                let (link, process) = command.spawn()?;
                Ok((link, Some(process), Some(command)))
            }
            Self::Stream(link, _) => Ok((link, None, None)),
        }
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<Link> for Target {
    fn from(link: Link) -> Self {
        Self::Stream(link, "memory".into())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => command.fmt(f),
            Self::Stream(_, name) => f.write_str(name),
        }
    }
}
