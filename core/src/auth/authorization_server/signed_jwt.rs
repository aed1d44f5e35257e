//! JWTs that clients and other issuers sign: assertions (RFC 7523) and identity tokens.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::server::{
    jwk::{Algorithm, Jwks},
    jwt::{self, Parts},
};
use crate::protocol::json;

const MALFORMED: &str = "the JWT is malformed";

/// A JWT that was taken apart and not verified.
pub(super) struct SignedJwt {
    /// The media type in lower case, without `application/`.
    pub(super) typ: String,
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) claims: Map<String, Value>,
    pub(super) signed: String,
    pub(super) signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl SignedJwt {
    pub(super) fn parse(token: &str) -> Result<Self, &'static str> {
        let Parts { header, claims, signature, signed } = jwt::split(token)?;
        let header: Header = json::from_bytes(&header).map_err(|_| MALFORMED)?;
        if header.crit.is_some() {
            return Err("the JWT needs an extension that is not supported");
        }
        Ok(Self {
            typ: jwt::kind(header.typ.as_deref().unwrap_or("JWT")),
            algorithm: Algorithm::named(&header.alg)
                .ok_or("the algorithm of the JWT is not supported")?,
            kid: header.kid,
            claims: json::from_bytes(&claims).map_err(|_| MALFORMED)?,
            signed: signed.to_owned(),
            signature,
        })
    }

    /// Returns a claim that is a non-empty string.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn has_audience(&self, names: &[&str]) -> bool {
        let is_named =
            |audience: &Value| audience.as_str().is_some_and(|name| names.contains(&name));
        match self.claims.get("aud") {
            Some(Value::Array(all)) => all.iter().any(is_named),
            Some(one) => is_named(one),
            None => false,
        }
    }

    /// Returns whether the set has a key that may have signed the JWT.
    pub(super) fn has_key_in(&self, keys: &Jwks) -> bool {
        !keys.candidates(self.kid.as_deref(), self.algorithm).is_empty()
    }

    /// Returns the last second at which its times are accepted, in seconds since 1970.
    pub(super) fn accepted_until(&self) -> u64 {
        jwt::expiry(&self.claims, jwt::LEEWAY).unwrap_or(u64::MAX)
    }

    /// Verifies the signature and the times. `exp` is required.
    pub(super) fn verify(&self, keys: &Jwks, unix: u64) -> Result<(), &'static str> {
        let keys = keys.candidates(self.kid.as_deref(), self.algorithm);
        let message = self.signed.as_bytes();
        if !keys.iter().any(|key| key.verify(self.algorithm, message, &self.signature)) {
            return Err("the signature of the JWT is wrong");
        }
        jwt::check_times(&self.claims, unix, jwt::LEEWAY, true)
    }
}
