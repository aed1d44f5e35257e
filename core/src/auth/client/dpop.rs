//! Proofs of possession of a key to which a token is bound (RFC 9449), and the nonces that servers ask for.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Moment;
use crate::{
    auth::{fetch::without_query, jwt_signing::SigningKey, url::WebUrl},
    error::{Error, ErrorKind},
};

/// The maximum number of origins whose nonces are kept.
const MAX_ORIGINS: usize = 8;
/// The maximum length of a nonce.
const MAX_NONCE: usize = 1024;

/// The client's key, and the last nonce of each origin.
#[derive(Debug)]
pub(super) struct Prover {
    key: SigningKey,
    nonces: BTreeMap<String, String>,
}

impl Prover {
    /// Creates a prover with a P-256 key in PKCS#8.
    pub(super) fn new(pkcs8: &[u8]) -> Result<Self, Error> {
        Ok(Self { key: SigningKey::from_pkcs8(pkcs8, "ES256")?, nonces: BTreeMap::new() })
    }

    /// Returns a fresh proof for one HTTP request, with a hash of the access token if one is sent with it (section 4.2).
    pub(super) fn proof(
        &self,
        at: &Moment,
        method: &str,
        url: &str,
        token: Option<&str>,
    ) -> Result<String, Error> {
        let (x, y) = self.key.point().ok_or_else(|| Error::misuse("the DPoP key is not P-256"))?;
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        let mut claims = json!({
            "jti": at.id(&format!("proof {method} {url}")),
            "htm": method,
            "htu": without_query(url),
            "iat": at.unix,
        });
        if let Some(token) = token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(Sha256::digest(token)).into();
        }
        if let Some(nonce) = origin(url).and_then(|origin| self.nonces.get(&origin)) {
            claims["nonce"] = nonce.as_str().into();
        }
        self.key.sign(&json!({ "typ": "dpop+jwt", "jwk": jwk }), &claims)
    }

    /// Keeps the nonce of a response for the next proofs to its origin (sections 8 and 9). Returns whether it is new.
    pub(super) fn take_nonce(&mut self, url: &str, nonce: &str) -> bool {
        let Some(origin) = origin(url) else { return false };
        let is_valid = nonce.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
        if nonce.is_empty() || nonce.len() > MAX_NONCE || !is_valid {
            return false;
        }
        if self.nonces.len() >= MAX_ORIGINS && !self.nonces.contains_key(&origin) {
            self.nonces.clear();
        }
        self.nonces.insert(origin, nonce.to_owned()).as_deref() != Some(nonce)
    }
}

/// Creates an error for a nonce that the server asks for again, although the last proof contained it.
pub(super) fn endless(place: &str) -> Error {
    let message = format!("{place} rejects every DPoP proof and asks for another nonce");
    Error::new(ErrorKind::Auth, message).with_hint("its operator must correct that")
}

fn origin(url: &str) -> Option<String> {
    WebUrl::parse(url).ok().map(|url| url.origin())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ring::{
        rand::SystemRandom,
        signature::{
            ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
            UnparsedPublicKey,
        },
    };
    use serde_json::Value;

    use super::*;

    fn claims(jwt: &str) -> Value {
        let part = jwt.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    fn moment(random: u8) -> Moment {
        Moment { now: Instant::now(), unix: 1_000, random: [random; 32] }
    }

    #[test]
    fn a_proof_is_for_one_request_and_signed_by_the_key_in_it() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random);
        let prover = Prover::new(der.as_ref()).unwrap();
        let url = "https://mcp.example.com/mcp?key=1#x";
        let proof = prover.proof(&moment(1), "POST", url, Some("token")).unwrap();
        let (message, signature) = proof.rsplit_once('.').unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.unwrap().public_key())
            .verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
            .unwrap();
        let first = claims(&proof);
        assert_eq!(first["htm"], "POST");
        assert_eq!(first["htu"], "https://mcp.example.com/mcp");
        assert_eq!(first["iat"], 1_000);
        assert_eq!(first["ath"], URL_SAFE_NO_PAD.encode(Sha256::digest("token")));
        assert_eq!(first["nonce"], Value::Null);
        let next = prover.proof(&moment(2), "POST", url, None).unwrap();
        assert_ne!(claims(&next)["jti"], first["jti"]);
        assert_eq!(claims(&next)["ath"], Value::Null);
        let header = URL_SAFE_NO_PAD.decode(proof.split('.').next().unwrap()).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        assert_eq!((&header["typ"], &header["alg"]), (&"dpop+jwt".into(), &"ES256".into()));
        assert_eq!(header["jwk"]["d"], Value::Null);
    }

    #[test]
    fn a_nonce_belongs_to_its_origin() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let mut prover = Prover::new(der.as_ref()).unwrap();
        assert!(prover.take_nonce("https://as.example.com/token", "one"));
        assert!(!prover.take_nonce("https://as.example.com/token", "one"));
        assert!(!prover.take_nonce("https://as.example.com/token", "a\"b"));
        let nonce = |prover: &Prover, url: &str| {
            claims(&prover.proof(&moment(1), "GET", url, None).unwrap())["nonce"].clone()
        };
        assert_eq!(nonce(&prover, "https://AS.example.com/other"), "one");
        assert_eq!(nonce(&prover, "https://mcp.example.com/mcp"), Value::Null);
        for number in 0..100 {
            prover.take_nonce(&format!("https://host{number}.example.com"), "n");
            assert!(prover.nonces.len() <= MAX_ORIGINS);
        }
    }
}
