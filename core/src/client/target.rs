//! Where a server is.

use std::fmt;

use super::connection::BoxFuture;
use crate::{
    error::Error,
    server::Server,
    transport::{Command, Link, child::Process, memory},
};

/// A program to start, a stream that is there already, or a server in this very process.
pub enum Target {
    Command(Command),
    /// Messages one a line, and a name for errors.
    Stream(Link, String),
    /// The other end of the link is served by this future.
    Served(Link, BoxFuture<()>),
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
            Self::Served(link, serving) => {
                tokio::spawn(serving);
                Ok((link, None, None))
            }
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

impl From<&Server> for Target {
    fn from(server: &Server) -> Self {
        let (ours, theirs) = memory::pair();
        let (input, output) = theirs.into_halves();
        Self::Served(ours, Box::pin(server.serve(input, output)))
    }
}

impl From<Server> for Target {
    fn from(server: Server) -> Self {
        Self::from(&server)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => command.fmt(f),
            Self::Stream(_, name) => f.write_str(name),
            Self::Served(..) => f.write_str("the server in memory"),
        }
    }
}
