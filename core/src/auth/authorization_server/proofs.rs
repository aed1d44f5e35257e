//! Proofs of possession at the token endpoint (RFC 9449, sections 5 and 8).

use http::{HeaderName, HeaderValue};

use super::{
    super::{
        server::dpop_check,
        used_once::{NotUsable, UsedOnce},
    },
    message::{OAuthError, Request},
};
use crate::auth::moment::Moment;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The time that a nonce is given out, in seconds. It is accepted for twice as long.
const NONCE_LIFE: u64 = 300;

/// Checks proofs, each of which is used once.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    used: UsedOnce,
    /// The last nonces with the times at which they were made, newest first.
    nonces: Vec<(String, u64)>,
}

impl Proofs {
    /// Returns the thumbprint of the key that signed the proof of a request, or `None` if there is no proof.
    pub(super) fn check(
        &mut self,
        request: &Request,
        url: &str,
        needs_nonce: bool,
        at: &Moment,
    ) -> Result<Option<String>, OAuthError> {
        let invalid = |reason: &str| OAuthError::new("invalid_dpop_proof", reason);
        let proof = dpop_check::read(&request.headers, &request.method, url, at.unix);
        let Some(proof) = proof.map_err(invalid)? else { return Ok(None) };
        if needs_nonce && !self.accepts(&proof.nonce, at.unix) {
            let mut error = OAuthError::new("use_dpop_nonce", "the DPoP proof needs a nonce");
            let nonce = HeaderValue::from_str(self.nonce(at)).ok();
            error.header = nonce.map(|nonce| Box::new((DPOP_NONCE, nonce)));
            return Err(error);
        }
        match self.used.use_once(proof.owner(), proof.id, proof.until, at.unix) {
            Ok(()) => Ok(Some(proof.key)),
            Err(NotUsable::UsedBefore) => Err(invalid("the DPoP proof was used before")),
            Err(NotUsable::NoRoom) => Err(invalid(
                "very many DPoP proofs of this key are remembered until they expire; send fewer",
            )),
        }
    }

    fn accepts(&self, nonce: &str, unix: u64) -> bool {
        self.nonces
            .iter()
            .any(|(own, made)| own == nonce && unix - made.min(&unix) <= 2 * NONCE_LIFE)
    }

    /// Returns the nonce to use, a new one if the last is old.
    fn nonce(&mut self, at: &Moment) -> &str {
        let is_old = self.nonces.first().is_none_or(|(_, made)| made + NONCE_LIFE < at.unix);
        if is_old {
            self.nonces.insert(0, (at.id("dpop nonce"), at.unix));
            self.nonces.truncate(2);
        }
        self.nonces.first().map_or("", |(nonce, _)| nonce)
    }
}
