//! Without TLS, a client needs to trust nobody.

use super::{Pem, Url};
use crate::error::Error;

#[derive(Clone, Debug, Default)]
pub(crate) struct Trust;

impl Trust {
    /// Errors if an option needs TLS.
    pub(crate) fn new(
        url: &Url,
        ca: Option<&Pem>,
        certificate: Option<&(Pem, Pem)>,
    ) -> Result<Self, Error> {
        match ca.is_some() || certificate.is_some() {
            true => Err(Error::without_feature("tls", url)),
            false => Ok(Self),
        }
    }
}
