//! Values that clients and browsers keep for the proxy: encrypted, so that nobody reads or changes them, and the proxy has to
//! keep nothing.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use crate::{auth::moment::Moment, protocol::json};

/// The length of a nonce, in bytes.
const NONCE: usize = 24;
/// The maximum length of a sealed value that is opened, in bytes.
const MAX_SEALED: usize = 16 * 1024;

/// The keys of the proxies of one address. The first seals, all of them open.
pub(super) struct Sealer {
    keys: Vec<XChaCha20Poly1305>,
    /// Names the provider and the proxy's client there: after a change of provider, its users are others.
    provider: String,
}

/// The use of a sealed value, which is refused for any other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    Client,
    /// A sign-in about which the user is asked.
    SignIn,
    /// A sign-in that the user has approved.
    ApprovedSignIn,
    Code,
    AccessToken,
    RefreshToken,
    /// The tokens that a refresh token was exchanged for, in a store.
    Exchange,
}

impl Sealer {
    pub(super) fn new<K: AsRef<[u8]>>(
        keys: impl IntoIterator<Item = K>,
        provider: impl Into<String>,
    ) -> Self {
        let cipher = |key: K| {
            let key = Sha256::new().chain_update("gudgeon OAuth proxy").chain_update(key);
            XChaCha20Poly1305::new(&key.finalize())
        };
        Self { keys: keys.into_iter().map(cipher).collect(), provider: provider.into() }
    }

    /// Returns the sealer of other keys for the same provider.
    pub(super) fn with_keys(&self, keys: &[Vec<u8>]) -> Self {
        Self::new(keys, self.provider.clone())
    }

    /// Seals a value of this issuer. At one moment, a use is sealed once.
    pub(super) fn seal<T: Serialize>(
        &self,
        usage: Use,
        issuer: &str,
        value: &T,
        at: &Moment,
    ) -> Option<String> {
        let nonce = &at.bytes(usage.name())[..NONCE];
        let text = serde_json::to_string(value).ok()?;
        let aad = self.aad(usage, issuer);
        let payload = Payload { msg: text.as_bytes(), aad: aad.as_bytes() };
        let sealed = self.keys.first()?.encrypt(XNonce::from_slice(nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce, &sealed].concat()))
    }

    /// Opens a value of this issuer. Returns `None` for what was not sealed for this use with one of the keys.
    pub(super) fn open<T: DeserializeOwned>(
        &self,
        usage: Use,
        issuer: &str,
        sealed: &str,
    ) -> Option<T> {
        if sealed.len() > usage.max_length() {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let aad = self.aad(usage, issuer);
        let payload = || Payload { msg: sealed, aad: aad.as_bytes() };
        let open = |key: &XChaCha20Poly1305| key.decrypt(XNonce::from_slice(nonce), payload()).ok();
        json::from_bytes(&self.keys.iter().find_map(open)?).ok()
    }
}

impl Sealer {
    fn aad(&self, usage: Use, issuer: &str) -> String {
        let provider = if usage == Use::Client { "" } else { &*self.provider };
        format!("{} {issuer} {provider}", usage.name())
    }
}

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::SignIn => "sign-in",
            Self::ApprovedSignIn => "approved sign-in",
            Self::Code => "code",
            Self::AccessToken => "access token",
            Self::RefreshToken => "refresh token",
            Self::Exchange => "exchange",
        }
    }

    fn max_length(self) -> usize {
        match self {
            // It has an access token and a refresh token.
            Self::Exchange => 3 * MAX_SEALED,
            _ => MAX_SEALED,
        }
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer of {} keys", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::time::Instant;

    use super::*;

    const ISSUER: &str = "https://mcp.example.com/mcp";

    #[test]
    fn a_value_is_opened_by_its_issuer_for_its_use_only() {
        let at = Moment { now: Instant::now(), unix: 1, random: [7; 32] };
        let (old, new) = (Sealer::new(["old"], "p"), Sealer::new(["new", "old"], "p"));
        let sealed = old.seal(Use::Code, ISSUER, &"s3cret", &at).unwrap();
        assert!(!sealed.contains("s3cret"));
        assert_eq!(new.open::<String>(Use::Code, ISSUER, &sealed).as_deref(), Some("s3cret"));
        for refused in [
            new.open::<String>(Use::AccessToken, ISSUER, &sealed),
            new.open::<String>(Use::Code, "https://other.example", &sealed),
            Sealer::new(["new"], "p").open(Use::Code, ISSUER, &sealed),
            Sealer::new(["old"], "another").open(Use::Code, ISSUER, &sealed),
            new.open(Use::Code, ISSUER, &sealed[1..]),
            new.open(Use::Code, ISSUER, ""),
            new.open(Use::Code, ISSUER, &"A".repeat(20_000)),
        ] {
            assert_eq!(refused, None);
        }
        assert_eq!(new.open::<u8>(Use::Code, ISSUER, &sealed), None);
        // Clients stay registered when the provider changes.
        let client = old.seal(Use::Client, ISSUER, &"me", &at).unwrap();
        let other = Sealer::new(["old"], "another");
        assert_eq!(other.open::<String>(Use::Client, ISSUER, &client).as_deref(), Some("me"));
    }
}
