//! Listening sockets.

#[cfg(unix)]
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
#[cfg(unix)]
use std::path::Path;
use std::{io, net::IpAddr, path::PathBuf};

#[cfg(feature = "simulation")]
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixSocket, UnixStream};

use super::{Address, address::ListenAddress};
#[cfg(feature = "simulation")]
use crate::transport::memory_network::{self, MemoryListener};
use crate::{
    error::{Error, ErrorKind},
    http::Peer,
    transport::ByteStream,
};

/// The maximum number of connections that wait to be accepted.
pub(super) const BACKLOG: u16 = 1024;

/// A bound socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix {
        listener: UnixListener,
        _file: Removed,
    },
    #[cfg(feature = "simulation")]
    Memory(MemoryListener),
}

/// An accepted connection.
pub(super) enum Accepted {
    Tcp(TcpStream, IpAddr),
    #[cfg(unix)]
    Unix(UnixStream),
    #[cfg(feature = "simulation")]
    Memory(DuplexStream),
}

impl Accepted {
    /// Returns the other side of the connection.
    pub(super) fn peer(&self) -> Peer {
        match self {
            Self::Tcp(_, address) => Peer::Address(*address),
            #[cfg(unix)]
            Self::Unix(_) => Peer::UnixSocket,
            #[cfg(feature = "simulation")]
            Self::Memory(_) => Peer::Address(IpAddr::from([127, 0, 0, 1])),
        }
    }

    /// Returns the stream as the one type that connections are compiled for.
    pub(super) fn boxed(self) -> Box<dyn ByteStream> {
        match self {
            Self::Tcp(stream, _) => Box::new(stream),
            #[cfg(unix)]
            Self::Unix(stream) => Box::new(stream),
            #[cfg(feature = "simulation")]
            Self::Memory(stream) => Box::new(stream),
        }
    }
}

/// Removes the socket's file when dropped, unless another server has replaced it.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Removed {
    path: PathBuf,
    inode: Option<(u64, u64)>,
}

#[cfg(unix)]
impl Drop for Removed {
    fn drop(&mut self) {
        if self.inode.is_some() && inode(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Socket {
    pub(super) async fn bind(at: &Address, shares_port: bool) -> Result<Self, Error> {
        match &at.place {
            #[cfg(feature = "simulation")]
            ListenAddress::Http { host, port, .. } | ListenAddress::Tcp { host, port }
                if memory_network::is_host(host) =>
            {
                MemoryListener::bind(*port).map(Self::Memory).map_err(|error| explain(at, error))
            }
            ListenAddress::Http { host, port, .. } | ListenAddress::Tcp { host, port } => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                let bound = match shares_port {
                    false => TcpListener::bind((bare, *port)).await,
                    true => bind_shared(bare, *port).await,
                };
                bound.map(Self::Tcp).map_err(|error| explain(at, error))
            }
            ListenAddress::Unix(path) | ListenAddress::HttpUnix(path) => {
                Self::bind_unix(at, path).await
            }
        }
    }

    #[cfg(unix)]
    async fn bind_unix(at: &Address, path: &PathBuf) -> Result<Self, Error> {
        let bound = match listen_privately(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                match is_left_behind(path).await {
                    true => std::fs::remove_file(path).and_then(|()| listen_privately(path)),
                    false => Err(error),
                }
            }
            bound => bound,
        };
        let listener = bound.map_err(|error| explain(at, error))?;
        let inode = inode(path);
        Ok(Self::Unix { listener, _file: Removed { path: path.clone(), inode } })
    }

    #[cfg(not(unix))]
    async fn bind_unix(_: &Address, _: &PathBuf) -> Result<Self, Error> {
        Err(Error::misuse("this system has no Unix sockets; use tcp:// or http://"))
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or(0, |address| address.port()),
            #[cfg(unix)]
            Self::Unix { .. } => 0,
            #[cfg(feature = "simulation")]
            Self::Memory(listener) => listener.port(),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, remote) = listener.accept().await?;
                // Without this option, Nagle's algorithm delays small messages until the previous one is
                // acknowledged.
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(stream, remote.ip()))
            }
            #[cfg(unix)]
            Self::Unix { listener, .. } => Ok(Accepted::Unix(listener.accept().await?.0)),
            #[cfg(feature = "simulation")]
            Self::Memory(listener) => Ok(Accepted::Memory(listener.accept().await)),
        }
    }
}

/// The connections in the queue of a socket that is about to close.
///
/// The system is asked itself: tokio does not know of a connection before it has waited for events again, and closing a socket
/// resets those in its queue, also where a request was sent already.
pub(super) struct Waiting(Queue);

enum Queue {
    Tcp(std::net::TcpListener),
    #[cfg(unix)]
    Unix {
        listener: std::os::unix::net::UnixListener,
        _file: Removed,
    },
    #[cfg(feature = "simulation")]
    Memory(MemoryListener),
}

impl Socket {
    /// Stops accepting. The socket closes when the returned value is dropped.
    pub(super) fn into_waiting(self) -> io::Result<Waiting> {
        Ok(Waiting(match self {
            Self::Tcp(listener) => Queue::Tcp(listener.into_std()?),
            #[cfg(unix)]
            Self::Unix { listener, _file: file } => {
                Queue::Unix { listener: listener.into_std()?, _file: file }
            }
            #[cfg(feature = "simulation")]
            Self::Memory(listener) => Queue::Memory(listener),
        }))
    }
}

impl Iterator for Waiting {
    type Item = io::Result<Accepted>;

    fn next(&mut self) -> Option<Self::Item> {
        let accepted = match &mut self.0 {
            Queue::Tcp(listener) => listener.accept().and_then(|(stream, remote)| {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(TcpStream::from_std(stream)?, remote.ip()))
            }),
            #[cfg(unix)]
            Queue::Unix { listener, .. } => listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream).map(Accepted::Unix)
            }),
            #[cfg(feature = "simulation")]
            Queue::Memory(listener) => {
                return listener.next_waiting().map(Accepted::Memory).map(Ok);
            }
        };
        match accepted {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            accepted => Some(accepted),
        }
    }
}

/// Listens at a socket that only this user may connect to, whatever the umask. Before it listens nobody can connect.
#[cfg(unix)]
fn listen_privately(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let listening = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| socket.listen(BACKLOG.into()));
    if listening.is_err() {
        let _ = std::fs::remove_file(path);
    }
    listening
}

/// Returns whether the file is a socket on which nobody listens, left by a server that was killed. Other files are
/// never removed.
#[cfg(unix)]
async fn is_left_behind(path: &Path) -> bool {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    let refuses = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).await.err().is_some_and(refuses)
}

/// Returns the device and inode of the file.
#[cfg(unix)]
fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Binds a port that other processes may listen at as well.
async fn bind_shared(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut refused = io::Error::from(io::ErrorKind::NotFound);
    for address in tokio::net::lookup_host((host, port)).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG.into())) {
            Ok(listener) => return Ok(listener),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn explain(at: &Address, error: io::Error) -> Error {
    let hint = match (error.kind(), &at.place) {
        (io::ErrorKind::AddrInUse, ListenAddress::Unix(_) | ListenAddress::HttpUnix(_)) => {
            "a server listens there already, or the file is not a socket; choose another path"
        }
        (
            io::ErrorKind::AddrInUse,
            ListenAddress::Http { port, .. } | ListenAddress::Tcp { port, .. },
        ) => &format!(
            "port {port} is in use; stop the other program, or choose another port (0 for any free one)"
        ),
        (io::ErrorKind::AddrNotAvailable, _) => {
            "this machine does not have the address; use 127.0.0.1 for local clients only, 0.0.0.0 for all"
        }
        (io::ErrorKind::PermissionDenied, _) => {
            "this user has no permission to listen there; choose a port above 1023"
        }
        (io::ErrorKind::NotFound, _) => "the host or the directory does not exist",
        _ => "check that the address belongs to this machine",
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

    #[cfg(unix)]
    #[tokio::test]
    async fn only_a_socket_that_nobody_listens_at_is_removed() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("gudgeon-socket-{}", std::process::id()));
        let at: Address = format!("unix:{}", path.display()).parse().expect("an address");
        std::fs::write(&path, "mine").expect("a file");
        let refused = Socket::bind(&at, false).await.expect_err("it is a file").to_string();
        assert!(refused.contains("the file is not a socket"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), "mine");
        std::fs::remove_file(&path).expect("mine");

        drop(std::os::unix::net::UnixListener::bind(&path).expect("left behind"));
        let one = Socket::bind(&at, false).await.expect("nobody listens there");
        assert!(Socket::bind(&at, false).await.is_err(), "somebody does");
        std::fs::remove_file(&path).expect("a socket");
        let other = Socket::bind(&at, false).await.expect("a path that is free");
        drop(one);
        assert!(path.exists(), "it is the other's");
        drop(other);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_this_user_may_connect_to_a_unix_socket() {
        let path = std::env::temp_dir().join(format!("gudgeon-private-{}", std::process::id()));
        let at: Address = format!("unix:{}", path.display()).parse().expect("an address");
        let socket = Socket::bind(&at, false).await.expect("a path that is free");
        let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        UnixStream::connect(&path).await.expect("it listens");
        drop(socket);
    }

    #[tokio::test]
    async fn small_messages_do_not_wait_for_acknowledgements() {
        for shares_port in [false, true] {
            let at: Address = "http://127.0.0.1:0/mcp".parse().expect("an address");
            let socket = Socket::bind(&at, shares_port).await.expect("a port");
            let client = TcpStream::connect(("127.0.0.1", socket.port())).await.expect("a peer");
            let Ok(Accepted::Tcp(stream, _)) = socket.accept().await else {
                panic!("no connection")
            };
            assert!(stream.nodelay().expect("a socket"));
            drop(client);
        }
    }
}
