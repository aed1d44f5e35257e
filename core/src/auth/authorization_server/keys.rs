//! The keys that sign tokens, and their publication (RFC 7517).

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::super::{
    jwt_signing::SigningKey,
    server::jwk::{Jwk, Jwks},
};
use crate::error::Error;

/// The maximum number of former keys that are still published.
const MAX_FORMER: usize = 4;

/// A key for ES256 that signs, and former ones that still verify.
#[derive(Debug)]
pub(super) struct SigningKeys {
    current: NamedKey,
    former: VecDeque<NamedKey>,
}

#[derive(Debug)]
struct NamedKey {
    key: SigningKey,
    kid: String,
    public: Value,
}

impl SigningKeys {
    /// Reads the private key, in PKCS#8.
    pub(super) fn new(pkcs8: &[u8]) -> Result<Self, Error> {
        Ok(Self { current: NamedKey::new(pkcs8)?, former: VecDeque::new() })
    }

    /// Signs with another key from here on. `keeps_former`: the former key stays published.
    pub(super) fn rotate(&mut self, pkcs8: &[u8], keeps_former: bool) -> Result<(), Error> {
        let former = std::mem::replace(&mut self.current, NamedKey::new(pkcs8)?);
        match keeps_former {
            true => self.former.push_front(former),
            false => self.former.clear(),
        }
        self.former.truncate(MAX_FORMER);
        Ok(())
    }

    /// Signs a JWT of this type.
    pub(super) fn sign(&self, typ: &str, claims: &Value) -> Result<String, Error> {
        self.current.key.sign(&json!({ "typ": typ, "kid": self.current.kid }), claims)
    }

    /// Returns the key set.
    pub(super) fn published(&self) -> Value {
        let keys = std::iter::once(&self.current).chain(&self.former);
        json!({ "keys": keys.map(|key| &key.public).collect::<Vec<_>>() })
    }

    pub(super) fn public(&self) -> Jwks {
        Jwks::read(self.published().to_string().as_bytes()).unwrap_or_default()
    }
}

impl NamedKey {
    fn new(pkcs8: &[u8]) -> Result<Self, Error> {
        let key = SigningKey::from_pkcs8(pkcs8, "ES256")?;
        let mut public = public_key(&key)?;
        let kid = Jwk::read(&public).map_err(Error::misuse)?.thumbprint();
        public["kid"] = kid.as_str().into();
        public["use"] = "sig".into();
        public["alg"] = "ES256".into();
        Ok(Self { key, kid, public })
    }
}

/// Returns the public key as a JWK.
pub(super) fn public_key(key: &SigningKey) -> Result<Value, Error> {
    let (x, y) = key.point().ok_or_else(|| Error::misuse("the key is not P-256"))?;
    Ok(json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y }))
}
