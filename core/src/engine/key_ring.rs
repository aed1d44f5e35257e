//! The keys of a server, for what clients carry: states and cursors.

use std::{fmt, sync::Arc};

#[cfg(feature = "http")]
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305,
    aead::{Aead, Payload},
};
use sha2::{Digest, Sha256};

/// The length of a nonce in bytes.
pub(crate) const NONCE: usize = 24;

/// The keys of a server. The first seals and every one opens, so that keys can be rotated while clients hold states.
#[derive(Clone)]
pub struct KeyRing {
    // Shared, because each request for a list takes the ring along.
    ciphers: Arc<[XChaCha20Poly1305]>,
    server: Arc<str>,
}

impl KeyRing {
    /// Creates a ring of keys of any length. Without a key, nothing is sealed or opened.
    pub fn new<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Self {
        let cipher = |key: K| XChaCha20Poly1305::new(&Sha256::digest(key.as_ref()));
        Self { ciphers: keys.into_iter().map(cipher).collect(), server: "".into() }
    }

    /// Binds what is sealed to the server of this name: another one with the same keys can't open it.
    #[must_use]
    pub fn of_server(self, name: &str) -> Self {
        Self { server: name.into(), ..self }
    }

    /// Returns a text of visible ASCII that rings of servers with other names do not have.
    #[cfg(feature = "http")]
    pub(crate) fn scope(&self) -> String {
        let digest = Sha256::digest(&*self.server);
        format!("{}:", URL_SAFE_NO_PAD.encode(&digest[..9]))
    }

    /// Returns the ring of other keys for the same server.
    pub(crate) fn with_keys(&self, keys: &[Vec<u8>]) -> Self {
        Self { server: Arc::clone(&self.server), ..Self::new(keys) }
    }

    /// Returns the bytes that what is sealed is bound to, for one purpose.
    pub(super) fn bound_to(&self, purpose: &str) -> Vec<u8> {
        // No purpose contains a null character.
        [purpose.as_bytes(), self.server.as_bytes()].join(&0)
    }

    /// Returns the nonce and the sealed bytes; `None` without a key. The nonce must never be used twice for one purpose of
    /// one server.
    pub(crate) fn seal(&self, purpose: &str, nonce: &[u8; NONCE], text: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload { msg: text, aad: &self.bound_to(purpose) };
        let sealed = self.ciphers.first()?.encrypt(nonce.into(), payload).ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    /// Opens the nonce and the sealed bytes; `None` if no key opens them, or if they are of another purpose or server.
    pub(crate) fn open(&self, purpose: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let aad = &*self.bound_to(purpose);
        self.ciphers
            .iter()
            .find_map(|cipher| cipher.decrypt(nonce.into(), Payload { msg: sealed, aad }).ok())
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing of {}", self.ciphers.len())
    }
}
