//! An authorization server that signs tokens, for tests of their checks.

#![allow(clippy::needless_pass_by_value, reason = "`json!` at the call reads best by value")]

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) const ISSUER: &str = "https://as.example.com";
pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
/// The time of the tests, in seconds since 1970.
pub(crate) const UNIX: u64 = 1_800_000_000;

/// A P-256 key with its name.
pub(crate) struct Signer {
    pub(crate) kid: &'static str,
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Signer {
    pub(crate) fn new(kid: &'static str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { kid, pair, random }
    }

    /// The public key, without a name.
    pub(crate) fn public(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        json!({ "kty": "EC", "crv": "P-256", "x": text(x), "y": text(y) })
    }

    /// The public key with its name, as in a key set.
    pub(crate) fn jwk(&self) -> Value {
        let mut key = self.public();
        key["kid"] = json!(self.kid);
        key
    }

    pub(crate) fn thumbprint(&self) -> String {
        let key = self.public();
        let members = json!({ "crv": "P-256", "kty": "EC", "x": key["x"], "y": key["y"] });
        text(Sha256::digest(members.to_string()))
    }

    /// An access token with the usual claims, changed by these.
    pub(crate) fn token(&self, changes: Value) -> String {
        self.sign(&json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.kid }), &claims(changes))
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", text(signature.as_ref()))
    }

    /// A proof for a request with this token, with its claims changed by these.
    pub(crate) fn proof(&self, token: &str, changes: Value) -> String {
        let hash = text(Sha256::digest(token));
        let usual = json!({ "jti": "1", "htm": "POST", "htu": RESOURCE, "iat": UNIX, "ath": hash });
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.public() });
        self.sign(&header, &changed(usual, &changes))
    }
}

/// The claims of a valid token, changed by these. `null` removes a claim.
pub(crate) fn claims(changes: Value) -> Value {
    let usual = json!({ "iss": ISSUER, "sub": "ada", "aud": RESOURCE, "client_id": "editor",
        "scope": "books:read", "iat": UNIX, "exp": UNIX + 300, "jti": "t" });
    changed(usual, &changes)
}

pub(crate) fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn changed(mut usual: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(usual.as_object_mut().unwrap().remove(name)),
            value => usual[name] = value.clone(),
        }
    }
    usual
}

pub(crate) fn key_set(signers: &[&Signer]) -> Vec<u8> {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk()).collect();
    json!({ "keys": keys }).to_string().into_bytes()
}
