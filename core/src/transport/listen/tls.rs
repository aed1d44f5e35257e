//! Certificates, from files.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::error::Error;

/// The name of HTTP/2 in the handshake.
const HTTP2: &[u8] = b"h2";

/// Returns whether the client of this connection has chosen HTTP/2.
pub(super) fn is_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

/// Reads the certificate chain and its key, both PEM.
pub(super) fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable("certificate", chain, &error))?;
    if certificates.is_empty() {
        return Err(unusable("certificate", chain, &"it contains no certificate in PEM format"));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("key", key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::misuse(format!("TLS can't be set up: {error}")))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| {
            unusable("key", key, &format!("it does not match {}: {error}", chain.display()))
        })?;
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(what: &str, path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::misuse(format!("the TLS {what} {} can't be used: {why}", path.display()))
        .with_hint("set the option tls to two PEM files: the certificate chain, then its key")
}
