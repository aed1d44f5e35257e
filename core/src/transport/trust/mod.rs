//! The certificates that a client trusts, and the certificate by which servers know the client.
//!
//! With the option `ca` these are the authorities in it and no others. Otherwise they are those of the environment, or else of
//! the system.

mod environment;
mod file;

use std::{fmt, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    sign::{CertifiedKey, SingleCertAndKey},
};
use tokio::sync::OnceCell;

use self::{
    environment::Variables,
    file::{certificates, private_key},
};
use super::{Pem, Url};
use crate::error::Error;

/// The trust of a client. Clones share their configurations of TLS.
#[derive(Clone)]
pub(crate) struct Trust(Arc<Shared>);

struct Shared {
    /// The authorities of the option `ca`; `None` for those of the environment.
    authorities: Option<Arc<RootCertStore>>,
    variables: Variables,
    identity: Option<Identity>,
    /// The configuration for servers that are not to know the client.
    anonymous: OnceCell<Arc<ClientConfig>>,
    identified: OnceCell<Arc<ClientConfig>>,
}

/// The certificate of a client.
struct Identity {
    /// The URL whose origin is shown the certificate; other servers, such as proxies, are not.
    server: Url,
    key: Arc<CertifiedKey>,
}

impl Trust {
    /// Reads the options `ca` and `certificate`, the latter a chain and its key for the server at `url`, and the variables of
    /// this process; see [`Variables`] for the thread to call it on. Errors with the option, the file and what is wrong.
    pub(crate) fn new(
        url: &Url,
        ca: Option<&Pem>,
        certificate: Option<&(Pem, Pem)>,
    ) -> Result<Self, Error> {
        let authorities = ca.map(authorities).transpose()?.map(Arc::new);
        let identity = certificate.map(|(chain, key)| {
            Ok::<_, Error>(Identity { server: url.clone(), key: identity(chain, key)? })
        });
        Ok(Self::with_options(authorities, identity.transpose()?))
    }

    /// Trusts the authorities of the environment.
    pub(crate) fn of_environment() -> Self {
        Self::with_options(None, None)
    }

    fn with_options(authorities: Option<Arc<RootCertStore>>, identity: Option<Identity>) -> Self {
        Self(Arc::new(Shared {
            authorities,
            variables: Variables::read(),
            identity,
            anonymous: OnceCell::new(),
            identified: OnceCell::new(),
        }))
    }

    /// Returns the configuration for a server. Errors if the certificates of the environment can't be read.
    pub(super) async fn config(&self, url: &Url) -> Result<Arc<ClientConfig>, Error> {
        let shared = &self.0;
        let identity = shared.identity.as_ref().filter(|own| url.has_origin_of(&own.server));
        let (cell, key) = match identity {
            Some(identity) => (&shared.identified, Some(&identity.key)),
            None => (&shared.anonymous, None),
        };
        let config = cell.get_or_try_init(async || {
            let authorities = match &shared.authorities {
                Some(authorities) => Arc::clone(authorities),
                None => environment::authorities(&shared.variables).await?,
            };
            config(authorities, key.cloned())
        });
        config.await.cloned()
    }
}

impl Default for Trust {
    fn default() -> Self {
        Self::of_environment()
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

fn config(
    authorities: Arc<RootCertStore>,
    key: Option<Arc<CertifiedKey>>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::misuse(format!("TLS can't be set up: {error}")))?
        .with_root_certificates(authorities);
    let mut config = match key {
        Some(key) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key))),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn authorities(ca: &Pem) -> Result<RootCertStore, Error> {
    let mut authorities = RootCertStore::empty();
    for (at, certificate) in certificates("ca", ca)?.into_iter().enumerate() {
        authorities.add(certificate).map_err(|error| {
            file::unusable("ca", ca, &format!("its certificate {} is not valid: {error}", at + 1))
        })?;
    }
    Ok(authorities)
}

fn identity(chain: &Pem, key: &Pem) -> Result<Arc<CertifiedKey>, Error> {
    let certificates = certificates("certificate", chain)?;
    let private = private_key("certificate", key)?;
    let provider = rustls::crypto::ring::default_provider();
    let certified = CertifiedKey::from_der(certificates, private, &provider);
    certified.map(Arc::new).map_err(|error| {
        let why = format!("it is not the key of {chain}: {error}");
        file::unusable("certificate", key, &why)
    })
}
