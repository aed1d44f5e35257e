//! The way of a client to servers.

use super::{proxy::ProxyEnvironment, trust::Trust};

/// The proxies of the environment, and the certificates that are trusted.
#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) proxies: ProxyEnvironment,
    pub(crate) trust: Trust,
}

impl Network {
    /// Reads the environment of this process; see [`ProxyEnvironment::read`] for the thread to call it on.
    pub(crate) fn of_environment() -> Self {
        Self { proxies: ProxyEnvironment::read(), trust: Trust::default() }
    }
}
