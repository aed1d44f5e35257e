//! Outgoing byte streams: TCP, TLS over TCP, each possibly through a proxy, and Unix sockets.

#[cfg(feature = "tls")]
mod tls;
mod tunnel;
#[cfg(feature = "auth")]
mod public;
#[cfg(feature = "auth")]
mod reach;

use std::{io, pin::Pin, time::Duration};

use tokio::net::TcpStream;

#[cfg(feature = "simulation")]
use super::memory_network;
use super::{ByteStream, Link, Url, network::Network, proxy::Proxy, trust::Trust};
#[cfg(feature = "auth")]
use crate::auth::fetch::Reach;
use crate::error::{Error, ErrorKind};

/// The time limit for a connection, including the proxy's response and the TLS handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a stream to the server at `url`, with TLS if the scheme requires it.
///
/// With a proxy, the stream leads through it; for `http`, where a proxy forwards requests, to the proxy itself.
pub(crate) async fn dial(
    url: &Url,
    proxy: Option<&Proxy>,
    network: &Network,
) -> Result<Box<dyn ByteStream>, Error> {
    if let Some(connect) = network.connects(url) {
        return connect(url);
    }
    let trust = &network.trust;
    // Without its type, the compiler gives up to show that the futures of all that connects may be sent to other threads.
    let opened: Pin<Box<dyn Future<Output = _> + Send + '_>> = match proxy {
        Some(proxy) => Box::pin(open_through(proxy, url, trust)),
        None => Box::pin(open(url, trust)),
    };
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, opened).await;
    opened.unwrap_or_else(|_| {
        let limit = CONNECT_TIMEOUT.as_secs();
        Err(match proxy {
            Some(proxy) => proxy.silent(limit),
            None => Error::new(ErrorKind::Connect, format!("no connection within {limit} s"))
                .with_hint("check the host, and that no firewall blocks the connection")
                .in_phase("connect"),
        })
    })
}

/// Opens a stream to the server at `url` if its addresses are within reach; nothing in between resolves the name again.
#[cfg(feature = "auth")]
pub(crate) async fn dial_within(
    url: &Url,
    reach: &Reach,
    network: &Network,
) -> Result<Box<dyn ByteStream>, Error> {
    // A program that stands between decides itself what may be reached.
    if *reach == Reach::Anywhere || network.connects(url).is_some() {
        return dial(url, None, network).await;
    }
    #[cfg(feature = "simulation")]
    if memory_network::is_host(url.host()) {
        return dial(url, None, network).await;
    }
    let opened = async {
        let addresses = tokio::net::lookup_host((url.host(), url.port())).await;
        let addresses: Vec<_> = addresses.map_err(|error| explain(url, error))?.collect();
        reach::check(url.host(), &addresses, reach).await?;
        let tcp = TcpStream::connect(&*addresses).await.map_err(|error| explain(url, error))?;
        secure_if_required(url, Box::new(tcp), &network.trust).await
    };
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, opened).await;
    opened.unwrap_or_else(|_| {
        let limit = CONNECT_TIMEOUT.as_secs();
        Err(Error::new(ErrorKind::Connect, format!("no connection within {limit} s"))
            .in_phase("connect"))
    })
}

/// Opens a stream that carries one message per line.
pub(crate) async fn dial_lines(url: &Url) -> Result<Link, Error> {
    let (input, output) = tokio::io::split(dial(url, None, &Network::default()).await?);
    Ok(Link::new(input, output))
}

async fn open(url: &Url, trust: &Trust) -> Result<Box<dyn ByteStream>, Error> {
    if url.scheme().is_unix() {
        return open_socket(url).await;
    }
    let tcp = open_tcp(url).await.map_err(|error| explain(url, error))?;
    secure_if_required(url, tcp, trust).await
}

async fn open_through(
    proxy: &Proxy,
    url: &Url,
    trust: &Trust,
) -> Result<Box<dyn ByteStream>, Error> {
    let unreachable = |error: Error| proxy.unreachable(&error.message).caused_by(error);
    let tcp = open_tcp(proxy.url())
        .await
        .map_err(|error| unreachable(failed(error.to_string(), error)))?;
    let stream = secure_if_required(proxy.url(), tcp, trust).await.map_err(unreachable)?;
    if Proxy::forwards(url) {
        return Ok(stream);
    }
    let tunnel = tunnel::open(proxy, stream, url).await?;
    secure_if_required(url, tunnel, trust).await.map_err(|error| proxy.explain(error))
}

async fn open_tcp(url: &Url) -> io::Result<Box<dyn ByteStream>> {
    #[cfg(feature = "simulation")]
    if memory_network::is_host(url.host()) {
        return Ok(Box::new(memory_network::connect(url.port())?));
    }
    let tcp = TcpStream::connect((url.host(), url.port())).await?;
    // Without this option, Nagle's algorithm delays small messages until the previous one is acknowledged.
    tcp.set_nodelay(true)?;
    Ok(Box::new(tcp))
}

async fn secure_if_required(
    url: &Url,
    stream: Box<dyn ByteStream>,
    trust: &Trust,
) -> Result<Box<dyn ByteStream>, Error> {
    if !url.scheme().is_secure() {
        return Ok(stream);
    }
    #[cfg(feature = "tls")]
    return tls::secure(url, stream, trust).await;
    #[cfg(not(feature = "tls"))]
    {
        let Trust = trust;
        Err(Error::without_feature("tls", url))
    }
}

#[cfg(unix)]
async fn open_socket(url: &Url) -> Result<Box<dyn ByteStream>, Error> {
    let path = url.socket();
    match tokio::net::UnixStream::connect(&path).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(explain(url, error)),
    }
}

#[cfg(not(unix))]
async fn open_socket(_: &Url) -> Result<Box<dyn ByteStream>, Error> {
    Err(Error::misuse("this system has no Unix sockets; use tcp:// or http://"))
}

fn explain(url: &Url, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens at this address; is the server running?"
        }
        io::ErrorKind::NotFound if url.scheme().is_unix() => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_never_answers_is_given_up_at_the_limit() {
        let listener = memory_network::MemoryListener::bind(0).expect("a port");
        let address = format!("{}:{}", memory_network::HOST, listener.port());
        let proxy = Proxy::parse(&address, "HTTPS_PROXY").expect("a proxy");
        let url = Url::parse("https://shelf.example").expect("a URL");
        let error =
            dial(&url, Some(&proxy), &Network::default()).await.err().expect("no connection");
        assert_eq!(error.kind, ErrorKind::Connect);
        let expected =
            format!("the proxy http://{address} (HTTPS_PROXY) opened no connection within 10 s");
        assert_eq!(error.message, expected);
    }
}
