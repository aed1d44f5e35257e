//! The unit by which what clients hold is counted, so that one of them leaves room for the others.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
};

use super::Principal;

/// A client, as far as the server can tell clients apart: its principal, or else the address that it calls from.
///
/// Two principals with the same hash are counted as one, which changes nothing but their shares.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum ClientKey {
    Principal(u64),
    V4(u32),
    /// The first 64 bits, because a single machine may use all addresses of such a network.
    V6(u64),
}

impl ClientKey {
    /// Returns `None` if neither is known.
    pub(crate) fn new(principal: Option<&Principal>, remote: Option<IpAddr>) -> Option<Self> {
        if let Some(principal) = principal {
            let mut hasher = DefaultHasher::new();
            let Principal { subject, client_id, claims, .. } = principal;
            (claims.get("iss"), subject, client_id).hash(&mut hasher);
            return Some(Self::Principal(hasher.finish()));
        }
        remote.map(|remote| match remote.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_counts_before_an_address() {
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let here = Some(IpAddr::from([192, 0, 2, 1]));
        assert_eq!(ClientKey::new(Some(&ada), here), ClientKey::new(Some(&ada), None));
        assert_ne!(ClientKey::new(Some(&ada), here), ClientKey::new(Some(&bob), here));
        assert_eq!(ClientKey::new(None, None), None);
    }

    #[test]
    fn addresses_of_one_network_of_64_bits_count_as_one() {
        let key = |text: &str| ClientKey::new(None, text.parse().ok());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:0:0:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }
}
