//! TLS of clients, with the certificates that the system trusts.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::{ByteStream, failed};
use crate::{
    error::{Error, ErrorKind},
    transport::Url,
};

/// Performs the handshake with the server at `url`.
pub(super) async fn secure(
    url: &Url,
    stream: Box<dyn ByteStream>,
) -> Result<Box<dyn ByteStream>, Error> {
    let name = ServerName::try_from(url.host().to_owned())
        .map_err(|_| Error::misuse(format!("{:?} is not a valid host name for TLS", url.host())))?;
    let connector = TlsConnector::from(tls().await?);
    let stream = connector.connect(name, stream).await.map_err(|it| {
        // `openssl req -x509` creates such certificates by default.
        let hint = match it.to_string().contains("CaUsedAsEndEntity") {
            true => "the server's certificate is that of an authority; create one with basicConstraints=CA:FALSE",
            false => "check that the server speaks TLS and that this machine trusts its certificate, or use http://",
        };
        failed(format!("the TLS handshake failed: {it}"), it).with_hint(hint)
    })?;
    Ok(Box::new(stream))
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
