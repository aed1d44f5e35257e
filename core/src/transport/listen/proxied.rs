//! Connections that a proxy passes on with the PROXY protocol.

use tokio::{io::AsyncReadExt, time::timeout};

use super::{Open, Peers};
use crate::{
    clock,
    driver::Holding,
    error::option_name,
    http::Peer,
    protocol::ClientKey,
    transport::{
        ByteStream,
        proxy_protocol::{NotAHeader, ProxyHeader},
    },
};

/// A connection whose header was read.
pub(super) struct Proxied {
    pub(super) stream: Box<dyn ByteStream>,
    /// The client that the header names.
    pub(super) peer: Peer,
    pub(super) open: Open,
}

/// Reads the header with which a connection begins. Returns `None` for a connection that must be closed.
pub(super) async fn read_header(
    peers: &Peers,
    mut stream: Box<dyn ByteStream>,
    proxy: Peer,
    open: Open,
) -> Option<Proxied> {
    if !peers.endpoint.admission().trusts(proxy) {
        if let Some(left_out) = peers.log().due(clock::unix()) {
            tracing::warn!(
                "closing a connection from {proxy}, which is not in {}{left_out}",
                option_name("trusted_proxies")
            );
        }
        return None;
    }
    let header = read(&mut *stream);
    // A proxy that connects and says nothing checks whether the server is there.
    let header = timeout(peers.timeouts.header, header).await.ok().flatten()?;
    let client = match header {
        Ok(client) => client,
        Err(problem) => {
            if let Some(left_out) = peers.log().due(clock::unix()) {
                tracing::warn!("closing a connection from {proxy}: {problem}{left_out}");
            }
            return None;
        }
    };
    let Some(client) = client else { return Some(Proxied { stream, peer: proxy, open }) };
    // The connection is the client's from now on.
    let Open { held, place } = open;
    drop(place);
    let mut place =
        Holding::new(&peers.endpoint.ledgers().connections, ClientKey::new(None, Some(client)));
    if !place.set(1) {
        if let Some(left_out) = peers.log().due(clock::unix()) {
            tracing::warn!("closing new connections of a client that has too many{left_out}");
        }
        return None;
    }
    Some(Proxied { stream, peer: Peer::Address(client), open: Open { held, place } })
}

/// Reads exactly the header. Returns the address that it names, if any; `None` if the connection ended before.
async fn read(
    stream: &mut dyn ByteStream,
) -> Option<Result<Option<core::net::IpAddr>, NotAHeader>> {
    let mut header = Vec::new();
    loop {
        match ProxyHeader::parse(&header) {
            Err(problem) => return Some(Err(problem)),
            Ok(ProxyHeader::Complete(client)) => return Some(Ok(client)),
            Ok(ProxyHeader::Incomplete(missing)) => {
                let start = header.len();
                header.resize(start + missing, 0);
                let count =
                    stream.read(&mut header[start..]).await.ok().filter(|count| *count > 0)?;
                header.truncate(start + count);
            }
        }
    }
}
