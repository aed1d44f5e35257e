//! Outgoing byte streams: TCP, TLS over TCP, Unix sockets.

#[cfg(feature = "tls")]
mod tls;

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{Link, Url, url::Scheme};
use crate::error::{Error, ErrorKind};

/// The time limit for a connection, including its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a stream to the server at `url`, with TLS if the scheme requires it.
pub(crate) async fn dial(url: &Url) -> Result<Box<dyn Stream>, Error> {
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, open(url)).await;
    opened.unwrap_or_else(|_| {
        let message = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
        Err(Error::new(ErrorKind::Connect, message)
            .with_hint("check the host, and that no firewall blocks the connection")
            .in_phase("connect"))
    })
}

/// Opens a stream that carries one message per line.
pub(crate) async fn dial_lines(url: &Url) -> Result<Link, Error> {
    let (input, output) = tokio::io::split(dial(url).await?);
    Ok(Link::new(input, output))
}

async fn open(url: &Url) -> Result<Box<dyn Stream>, Error> {
    if url.scheme() == Scheme::Unix {
        return open_socket(url).await;
    }
    let tcp = TcpStream::connect((url.host(), url.port())).await.map_err(|it| explain(url, it))?;
    // Without this option, Nagle's algorithm delays small messages until the previous one is acknowledged.
    tcp.set_nodelay(true).map_err(|it| explain(url, it))?;
    if !url.scheme().is_secure() {
        return Ok(Box::new(tcp));
    }
    #[cfg(feature = "tls")]
    return tls::secure(url, tcp).await;
    #[cfg(not(feature = "tls"))]
    Err(Error::without_feature("tls", url))
}

#[cfg(unix)]
async fn open_socket(url: &Url) -> Result<Box<dyn Stream>, Error> {
    let path = url.socket();
    match tokio::net::UnixStream::connect(&path).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(explain(url, error)),
    }
}

#[cfg(not(unix))]
async fn open_socket(_: &Url) -> Result<Box<dyn Stream>, Error> {
    Err(Error::misuse("this system has no Unix sockets; use tcp://"))
}

fn explain(url: &Url, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens at this address; is the server running?"
        }
        io::ErrorKind::NotFound if url.scheme() == Scheme::Unix => {
            "the socket does not exist; is the server running?"
        }
        io::ErrorKind::PermissionDenied => "this user has no permission to connect to the socket",
        _ => "check the address and the network",
    };
    failed(error.to_string(), error).with_hint(hint)
}

fn failed(message: String, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Connect, message).caused_by(source).in_phase("connect")
}
