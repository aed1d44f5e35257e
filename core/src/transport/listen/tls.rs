//! Certificates, from files.

use std::{
    path::Path,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{driver::watched_files, error::Error};

/// The name of HTTP/2 in the handshake.
const HTTP2: &[u8] = b"h2";

/// Returns whether the client of this connection has chosen HTTP/2.
pub(super) fn is_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

/// Reads the certificate chain and its key, both PEM, now and whenever they change.
pub(super) fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let current = RwLock::new(Arc::new(read(chain, key, &provider)?));
    let certificate = Arc::new(Certificate { current });
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::misuse(format!("TLS can't be set up: {error}")))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::<Certificate>::clone(&certificate));
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    let (chain, key) = (chain.to_path_buf(), key.to_path_buf());
    watched_files::watch(&[&chain.clone(), &key.clone()], &certificate, move |certificate| {
        certificate.replace(read(&chain, &key, &provider)?);
        Ok(())
    });
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificate for new connections.
#[derive(Debug)]
struct Certificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    fn replace(&self, new: CertifiedKey) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(chain: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable("certificate", chain, &error))?;
    if certificates.is_empty() {
        return Err(unusable("certificate", chain, &"it contains no certificate in PEM format"));
    }
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable("key", key, &error))?;
    CertifiedKey::from_der(certificates, private, provider).map_err(|error| {
        unusable("key", key, &format!("it does not match {}: {error}", chain.display()))
    })
}

fn unusable(what: &str, path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::misuse(format!("the TLS {what} {} can't be used: {why}", path.display()))
        .with_hint("set the option tls to two PEM files: the certificate chain, then its key")
}
