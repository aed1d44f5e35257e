//! TLS of clients.

use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::{ByteStream, failed};
use crate::{
    error::Error,
    transport::{Url, trust::Trust},
};

/// Performs the handshake with the server at `url`.
pub(super) async fn secure(
    url: &Url,
    stream: Box<dyn ByteStream>,
    trust: &Trust,
) -> Result<Box<dyn ByteStream>, Error> {
    let name = ServerName::try_from(url.host().to_owned())
        .map_err(|_| Error::misuse(format!("{:?} is not a valid host name for TLS", url.host())))?;
    let connector = TlsConnector::from(trust.config(url).await?);
    let stream = connector.connect(name, stream).await.map_err(|error| {
        // `openssl req -x509` creates such certificates by default.
        let hint = match error.to_string().contains("CaUsedAsEndEntity") {
            true => "the server's certificate is that of an authority; create one with basicConstraints=CA:FALSE",
            false => "check that the server speaks TLS and that this machine trusts its certificate, name its authority with the option ca, or use http://",
        };
        failed(format!("the TLS handshake failed: {error}"), error).with_hint(hint)
    })?;
    Ok(Box::new(stream))
}
