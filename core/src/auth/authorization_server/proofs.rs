//! Proofs of possession at the token endpoint (RFC 9449, sections 5 and 8).

use http::{HeaderName, HeaderValue};

use super::{
    super::server::{
        dpop_check::{MAX_SKEW, UsedProofs},
        jwk::Jwk,
    },
    message::{OAuthError, Request},
    signed_jwt::SignedJwt,
};
use crate::auth::{TokenDigest, fetch::without_query, moment::Moment};

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The time that a nonce is given out, in seconds. It is accepted for twice as long.
const NONCE_LIFE: u64 = 300;
/// The maximum length of `jti`, in bytes.
const MAX_ID: usize = 512;

/// Checks proofs, each of which is used once.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    used: UsedProofs,
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
        let mut proofs = request.headers.get_all("dpop").iter();
        let Some(proof) = proofs.next() else { return Ok(None) };
        if proofs.next().is_some() {
            return Err(invalid("the request has more than one DPoP proof"));
        }
        let proof = proof.to_str().map_err(|_| invalid("the DPoP proof is malformed"))?;
        let proof = SignedJwt::parse(proof).map_err(invalid)?;
        if proof.typ != "dpop+jwt" {
            return Err(invalid("the DPoP proof has another type than dpop+jwt"));
        }
        let key = proof.jwk.as_ref().and_then(|it| Jwk::read(it).ok());
        let key =
            key.ok_or_else(|| invalid("the DPoP proof has no public key that can be used"))?;
        if !key.verify(proof.algorithm, proof.signed.as_bytes(), &proof.signature) {
            return Err(invalid("the signature of the DPoP proof is wrong"));
        }
        let is_here = proof.text("htm") == Some(request.method.as_str())
            && proof.text("htu").is_some_and(|it| without_query(it) == url);
        if !is_here {
            return Err(invalid("the DPoP proof is for another method or URL"));
        }
        let made = proof.claims.get("iat").and_then(serde_json::Value::as_u64);
        if made.is_none_or(|it| it.abs_diff(at.unix) > MAX_SKEW) {
            return Err(invalid("the DPoP proof is too old, or from the future"));
        }
        let id = proof.text("jti").filter(|it| it.len() <= MAX_ID);
        let id = id.ok_or_else(|| invalid("the DPoP proof has no usable jti"))?;
        if needs_nonce && !self.accepts(proof.text("nonce").unwrap_or_default(), at.unix) {
            let mut error = OAuthError::new("use_dpop_nonce", "the DPoP proof needs a nonce");
            let nonce = HeaderValue::from_str(self.nonce(at)).ok();
            error.header = nonce.map(|it| Box::new((DPOP_NONCE, it)));
            return Err(error);
        }
        let thumbprint = key.thumbprint();
        match self.used.use_once(TokenDigest::of(&format!("{thumbprint} {id}")), at.unix) {
            true => Ok(Some(thumbprint)),
            false => Err(invalid("the DPoP proof was used before")),
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
        self.nonces.first().map_or("", |(it, _)| it)
    }
}
