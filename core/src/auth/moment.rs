//! The time and the random bytes of one step of a machine.

use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// The time, and 32 random bytes that are used for this step only.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now: Instant,
    /// The seconds since 1970.
    pub unix: u64,
    pub random: [u8; 32],
}

impl Moment {
    /// Returns random bytes for one purpose. The bytes of different purposes are unrelated.
    pub(super) fn bytes(&self, purpose: &str) -> [u8; 32] {
        Sha256::new().chain_update(self.random).chain_update(purpose).finalize().into()
    }

    /// Returns a random identifier for one purpose, safe in URLs.
    pub(super) fn id(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(&self.bytes(purpose)[..24])
    }
}

impl std::fmt::Debug for Moment {
    /// Leaves out the random bytes, from which secrets are derived.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moment").field("unix", &self.unix).finish_non_exhaustive()
    }
}
