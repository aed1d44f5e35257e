//! Secrets, which no log or error shows, and their comparison.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A token, password or key. `Debug` leaves the value out, and `==` takes constant time.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the value, for a place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        is_equal(self.0.as_bytes(), other.0.as_bytes())
    }
}

impl Eq for Secret {}

/// Compares secrets. The time depends on their lengths only.
pub fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differ = |all, (a, b): (&u8, &u8)| std::hint::black_box(all | (a ^ b));
    one.len() == other.len() && one.iter().zip(other).fold(0, differ) == 0
}

/// The SHA-256 of a token or key. Tables have it as their key, so that they hold no token.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TokenDigest(pub [u8; 32]);

impl TokenDigest {
    pub fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Returns the digest of a token that is for this resource, which has no space.
    pub(crate) fn at(resource: &str, token: &str) -> Self {
        Self(
            Sha256::new()
                .chain_update(resource)
                .chain_update(" ")
                .chain_update(token)
                .finalize()
                .into(),
        )
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Some(Secret::from("hunter2"))), "Some(…)");
        assert_eq!(format!("{:?}", TokenDigest::new("hunter2")), "TokenDigest(…)");
    }

    #[test]
    fn secrets_are_equal_if_all_their_bytes_are() {
        assert_eq!(Secret::from("abc"), Secret::from("abc"));
        for other in ["abd", "ab", "abcd", ""] {
            assert_ne!(Secret::from("abc"), Secret::from(other));
        }
    }
}
