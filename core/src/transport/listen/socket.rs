//! Sockets that take connections.

use std::{io, path::PathBuf};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use super::{Address, address::Place};
use crate::error::{Error, ErrorKind};

/// Connections that wait to be taken.
const BACKLOG: u32 = 1024;

/// A bound socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix {
        listener: UnixListener,
        _file: Removed,
    },
}

/// A connection that was taken.
pub(super) enum Accepted {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Removes the socket's file at the end.
#[derive(Debug)]
pub(super) struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Socket {
    pub(super) async fn bind(at: &Address, shares_port: bool) -> Result<Self, Error> {
        match &at.place {
            Place::Http { host, port, .. } | Place::Tcp { host, port } => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                let bound = match shares_port {
                    false => TcpListener::bind((bare, *port)).await,
                    true => bind_shared(bare, *port).await,
                };
                bound.map(Self::Tcp).map_err(|it| explain(at, it))
            }
            Place::Unix(path) => Self::bind_unix(at, path).await,
        }
    }

    #[cfg(unix)]
    async fn bind_unix(at: &Address, path: &PathBuf) -> Result<Self, Error> {
        let bound = match UnixListener::bind(path) {
            // A server that was killed leaves its file behind: nobody answers there any more.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                match UnixStream::connect(path).await {
                    Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => {
                        std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
                    }
                    _ => Err(error),
                }
            }
            bound => bound,
        };
        let listener = bound.map_err(|it| explain(at, it))?;
        Ok(Self::Unix { listener, _file: Removed(path.clone()) })
    }

    #[cfg(not(unix))]
    async fn bind_unix(_: &Address, _: &PathBuf) -> Result<Self, Error> {
        Err(Error::misuse("this system has no Unix sockets: use tcp://"))
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or(0, |it| it.port()),
            #[cfg(unix)]
            Self::Unix { .. } => 0,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Without this, small messages wait for the acknowledgement of the one before.
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(stream))
            }
            #[cfg(unix)]
            Self::Unix { listener, .. } => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}

/// Listens beside other processes at the same port.
async fn bind_shared(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for address in tokio::net::lookup_host((host, port)).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn explain(at: &Address, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "something listens there already: end it, or choose another port (0: any free one)"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: 127.0.0.1 is for itself alone, 0.0.0.0 for all"
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not listen there: ports below 1024 are the system's"
        }
        io::ErrorKind::NotFound => "there is no such host, or no such folder",
        _ => "is the address this machine's own?",
    };
    Error::new(ErrorKind::Connect, format!("can't listen: {error}"))
        .caused_by(error)
        .with_hint(hint)
        .with_target(at.to_string())
        .in_phase("listen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_messages_do_not_wait_for_acknowledgements() {
        for shares_port in [false, true] {
            let at: Address = "http://127.0.0.1:0/mcp".parse().expect("an address");
            let socket = Socket::bind(&at, shares_port).await.expect("a port");
            let client = TcpStream::connect(("127.0.0.1", socket.port())).await.expect("a peer");
            let Ok(Accepted::Tcp(stream)) = socket.accept().await else { panic!("no connection") };
            assert!(stream.nodelay().expect("a socket"));
            drop(client);
        }
    }
}
