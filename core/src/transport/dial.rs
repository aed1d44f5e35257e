//! Outgoing byte streams: TCP, TLS over TCP, Unix sockets.

use std::{io, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OnceCell,
};
use tokio_rustls::TlsConnector;

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
    let name = ServerName::try_from(url.host().to_owned())
        .map_err(|_| Error::misuse(format!("{:?} is not a valid host name for TLS", url.host())))?;
    let connector = TlsConnector::from(tls().await?);
    let stream = connector.connect(name, tcp).await.map_err(|it| {
        // `openssl req -x509` creates such certificates by default.
        let hint = match it.to_string().contains("CaUsedAsEndEntity") {
            true => "the server's certificate is that of an authority; create one with basicConstraints=CA:FALSE",
            false => "check that the server speaks TLS and that this machine trusts its certificate, or use http://",
        };
        failed(format!("the TLS handshake failed: {it}"), it).with_hint(hint)
    })?;
    Ok(Box::new(stream))
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

/// Returns a configuration that trusts the system's certificates.
async fn tls() -> Result<Arc<ClientConfig>, Error> {
    static CONFIG: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();
    let config = CONFIG.get_or_try_init(async || {
        let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
        let loaded = loaded
            .map_err(|it| failed("the system's certificates could not be read".into(), it))?;
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(loaded.certs);
        if added == 0 {
            let hint = "install the package ca-certificates, or name a file with SSL_CERT_FILE";
            let message = "this system has no trusted certificates";
            return Err(Error::new(ErrorKind::Connect, message)
                .with_hint(hint)
                .in_phase("connect"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|it| failed("TLS can't be set up".into(), it))?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    });
    config.await.cloned()
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
