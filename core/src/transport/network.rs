//! The way of a client to servers.

use std::{fmt, sync::Arc};

use super::{
    ByteStream, Scheme, Url,
    proxy::{Proxy, ProxyEnvironment},
    trust::Trust,
};
use crate::error::Error;

/// Opens a stream on which a program answers the HTTP requests for the origin of a URL.
pub(crate) type Connect = Arc<dyn Fn(&Url) -> Result<Box<dyn ByteStream>, Error> + Send + Sync>;

/// The proxies of the environment, and the certificates that are trusted; or a program that stands between the client and the
/// network.
#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) proxies: ProxyEnvironment,
    pub(crate) trust: Trust,
    /// Takes the place of the network for `http` and `https`.
    pub(crate) connect: Option<Connect>,
}

impl Network {
    /// Reads the environment of this process; see [`ProxyEnvironment::read`] for the thread to call it on.
    pub(crate) fn of_environment() -> Self {
        Self { proxies: ProxyEnvironment::read(), ..Self::default() }
    }

    /// Returns the proxy for a URL, if the network needs one. Errors if its URL is invalid.
    pub(crate) fn proxy_for(&self, url: &Url) -> Result<Option<Proxy>, Error> {
        match self.connects(url) {
            Some(_) => Ok(None),
            None => self.proxies.proxy_for(url),
        }
    }

    /// Returns the program that answers requests for a URL.
    pub(super) fn connects(&self, url: &Url) -> Option<&Connect> {
        let is_http = matches!(url.scheme(), Scheme::Http | Scheme::Https);
        self.connect.as_ref().filter(|_| is_http)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}
