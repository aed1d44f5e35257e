//! Proofs of possession (RFC 9449): a request has to be signed with the key that its token is bound to.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, Method};
use ring::hmac;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    jwk::{Algorithm, Jwk},
    jwt,
};
use crate::{
    auth::{TokenDigest, fetch::without_query, url::WebUrl},
    protocol::json,
};

/// The seconds by which the time of a proof may differ from the server's.
pub const MAX_SKEW: u64 = 300;
/// The seconds that a nonce is accepted.
const NONCE_LIFE: u64 = 300;
/// The maximum length of `jti`, in bytes.
const MAX_ID: usize = 512;

/// The reason why a proof is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProofError {
    Invalid(&'static str),
    /// The proof needs a nonce of this server, or a newer one.
    NeedsNonce,
}

/// The facts that a proof has to agree with.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub method: &'a Method,
    /// The URL of the request, as the client knows it.
    pub url: &'a str,
    pub token: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub key: &'a str,
    /// The time, in seconds since 1970.
    pub unix: u64,
}

#[derive(Deserialize)]
struct Header {
    typ: Option<String>,
    alg: String,
    jwk: Value,
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

/// A proof that is signed with its own key, for this method, URL and time.
pub(in crate::auth) struct Proof {
    /// The thumbprint of its key.
    pub(in crate::auth) key: String,
    /// The hash of the token that it is for.
    hash: Option<String>,
    pub(in crate::auth) nonce: String,
    /// The id that may not be used again.
    pub(in crate::auth) id: TokenDigest,
    /// The time until which it is accepted, in seconds since 1970.
    pub(in crate::auth) until: u64,
}

impl Proof {
    /// Returns the owner of the proof's id.
    pub(in crate::auth) fn owner(&self) -> TokenDigest {
        TokenDigest::new(&self.key)
    }
}

/// A proof that is accepted once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProofId {
    /// The digest of its key's thumbprint.
    pub owner: TokenDigest,
    /// The digest of its key, URL and `jti`: ids are unique for one URL (RFC 9449, section 11.1).
    pub id: TokenDigest,
    /// The time until which it is accepted, in seconds since 1970.
    pub until: u64,
}

/// Checks the proof in the headers of a request (RFC 9449, section 4.3). Returns the id that may not be used again.
pub fn check(
    headers: &HeaderMap,
    expected: Expected<'_>,
    nonces: Option<&Nonces>,
) -> Result<ProofId, ProofError> {
    use ProofError::Invalid;
    let proof = read(headers, expected.method, expected.url, expected.unix).map_err(Invalid)?;
    let proof = proof.ok_or(Invalid("the request has no DPoP proof"))?;
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(expected.token));
    if proof.hash.as_deref() != Some(&hash) {
        return Err(Invalid("the DPoP proof is for another token"));
    }
    if proof.key != expected.key {
        return Err(Invalid("the token is bound to another key"));
    }
    if nonces.is_some_and(|nonces| !nonces.accepts(&proof.nonce, expected.unix)) {
        return Err(ProofError::NeedsNonce);
    }
    Ok(ProofId { owner: proof.owner(), id: proof.id, until: proof.until })
}

/// Reads and verifies the proof in the headers of a request with this method and URL; `None` without one.
pub(in crate::auth) fn read(
    headers: &HeaderMap,
    method: &Method,
    url: &str,
    unix: u64,
) -> Result<Option<Proof>, &'static str> {
    let mut proofs = headers.get_all("dpop").iter();
    let Some(proof) = proofs.next() else { return Ok(None) };
    if proofs.next().is_some() {
        return Err("the request has more than one DPoP proof");
    }
    let proof = proof.to_str().map_err(|_| MALFORMED)?;
    let jwt::Parts { header, claims, signature, signed } =
        jwt::split(proof).map_err(|_| MALFORMED)?;
    let header: Header = json::from_bytes(&header).map_err(|_| MALFORMED)?;
    let claims: Claims = json::from_bytes(&claims).map_err(|_| MALFORMED)?;
    if header.crit.is_some() {
        return Err("the DPoP proof needs an extension that is not supported");
    }
    if jwt::kind(header.typ.as_deref().unwrap_or_default()) != "dpop+jwt" {
        return Err("the DPoP proof has another type than dpop+jwt");
    }
    let algorithm =
        Algorithm::named(&header.alg).ok_or("the algorithm of the DPoP proof is not accepted")?;
    let key =
        Jwk::read(&header.jwk).map_err(|_| "the DPoP proof has no public key that can be used")?;
    if claims.htm != method.as_str() {
        return Err("the DPoP proof is for another method");
    }
    if !is_same_place(&claims.htu, url) {
        return Err("the DPoP proof is for another URL");
    }
    #[expect(clippy::cast_precision_loss, reason = "times are below 2^52")]
    let age = unix as f64 - claims.iat;
    #[expect(clippy::cast_precision_loss, reason = "times are below 2^52")]
    if !age.is_finite() || age.abs() > MAX_SKEW as f64 {
        return Err("the DPoP proof is too old, or from the future");
    }
    if claims.jti.is_empty() || claims.jti.len() > MAX_ID {
        return Err("the DPoP proof has no usable jti");
    }
    if !key.verify(algorithm, signed.as_bytes(), &signature) {
        return Err("the signature of the DPoP proof is wrong");
    }
    let thumbprint = key.thumbprint();
    let id = TokenDigest::new(&format!("{thumbprint} {} {}", claims.htu, claims.jti));
    let (hash, nonce) = (claims.ath, claims.nonce.unwrap_or_default());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was compared with the time"
    )]
    let until = (claims.iat.ceil() as u64).saturating_add(MAX_SKEW);
    Ok(Some(Proof { key: thumbprint, hash, nonce, id, until }))
}

const MALFORMED: &str = "the DPoP proof is malformed";

/// Compares two URLs without query and fragment. Scheme and host are the same in any case, and a default port may be left
/// out (RFC 9449, section 4.3).
fn is_same_place(one: &str, other: &str) -> bool {
    let place = |url: &str| {
        let url = WebUrl::parse(without_query(url)).ok()?;
        let path = if url.path().is_empty() { "/" } else { url.path() };
        Some((url.origin(), path.to_owned()))
    };
    place(one).is_some_and(|parts| Some(parts) == place(other))
}

/// Makes and checks nonces. They hold a time, so that every server with the same keys accepts them.
pub struct Nonces(Vec<hmac::Key>);

impl Nonces {
    /// Creates the keys. The first makes nonces, all of them are accepted.
    pub fn new<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Self {
        let key = |bytes: K| {
            let secret = Sha256::new().chain_update("gudgeon DPoP nonce").chain_update(bytes);
            hmac::Key::new(hmac::HMAC_SHA256, &secret.finalize())
        };
        Self(keys.into_iter().map(key).collect())
    }

    /// Makes a nonce.
    pub fn make(&self, unix: u64) -> Option<String> {
        let time = unix.to_be_bytes();
        let tag = hmac::sign(self.0.first()?, &time);
        Some(URL_SAFE_NO_PAD.encode([&time[..], &tag.as_ref()[..16]].concat()))
    }

    fn accepts(&self, nonce: &str, unix: u64) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(nonce) else { return false };
        let Some((time, tag)) = bytes.split_first_chunk::<8>() else { return false };
        let made = u64::from_be_bytes(*time);
        let is_fresh =
            made <= unix.saturating_add(MAX_SKEW) && unix.saturating_sub(made) <= NONCE_LIFE;
        let is_own =
            |key: &hmac::Key| crate::auth::is_equal(&hmac::sign(key, time).as_ref()[..16], tag);
        is_fresh && self.0.iter().any(is_own)
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonces of {} keys", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    #[test]
    fn a_nonce_is_accepted_by_servers_with_its_key_while_it_is_fresh() {
        let (old, both, other) =
            (Nonces::new(["old"]), Nonces::new(["new", "old"]), Nonces::new(["other"]));
        let nonce = old.make(1_000).unwrap();
        assert!(old.accepts(&nonce, 1_000) && both.accepts(&nonce, 1_000 + NONCE_LIFE));
        assert!(!both.accepts(&nonce, 1_001 + NONCE_LIFE));
        assert!(!other.accepts(&nonce, 1_000));
        assert!(!old.accepts(&both.make(1_000).unwrap(), 1_000));
        for wrong in ["", "x", "AAAA", &nonce[1..], &format!("{nonce}A")] {
            assert!(!old.accepts(wrong, 1_000), "{wrong}");
        }
        assert!(!old.accepts(&old.make(u64::MAX).unwrap(), 1_000));
    }

    #[test]
    fn urls_are_compared_without_query_and_default_port() {
        let url = "https://mcp.example.com/mcp";
        for same in [url, "HTTPS://MCP.example.com/mcp", "https://mcp.example.com:443/mcp?a=b#c"] {
            assert!(is_same_place(same, url), "{same}");
        }
        for other in [
            "https://mcp.example.com/",
            "http://mcp.example.com/mcp",
            "/mcp",
            "",
            "https://mcp.example.com:444/mcp",
            "https://mcp.example.com/MCP",
            "https://evil.example/mcp",
        ] {
            assert!(!is_same_place(other, url), "{other}");
        }
    }
}
