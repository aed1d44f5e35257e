//! JWTs that clients and other issuers sign: assertions (RFC 7523), identity tokens and proofs of possession.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::server::{
    jwk::{Algorithm, Jwks},
    jwt::MAX_TOKEN,
};

/// The seconds by which clocks may differ.
const LEEWAY: f64 = 60.0;
const MALFORMED: &str = "the JWT is malformed";

/// A JWT that was taken apart and not verified.
pub(super) struct SignedJwt {
    /// The media type in lower case, without `application/`.
    pub(super) typ: String,
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    /// The public key that the header contains.
    pub(super) jwk: Option<Value>,
    pub(super) claims: Map<String, Value>,
    pub(super) signed: String,
    pub(super) signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    jwk: Option<Value>,
    crit: Option<Value>,
}

impl SignedJwt {
    pub(super) fn parse(token: &str) -> Result<Self, &'static str> {
        if token.len() > MAX_TOKEN {
            return Err("the JWT is too long");
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
        let (header, claims) = signed.split_once('.').ok_or(MALFORMED)?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| MALFORMED);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| MALFORMED)?;
        if header.crit.is_some() {
            return Err("the JWT needs an extension that is not supported");
        }
        let typ = header.typ.unwrap_or_else(|| "JWT".into()).to_ascii_lowercase();
        Ok(Self {
            typ: typ.strip_prefix("application/").map_or(typ.clone(), ToOwned::to_owned),
            algorithm: Algorithm::named(&header.alg)
                .ok_or("the algorithm of the JWT is not supported")?,
            kid: header.kid,
            jwk: header.jwk,
            claims: serde_json::from_slice(&decode(claims)?).map_err(|_| MALFORMED)?,
            signed: signed.to_owned(),
            signature: decode(signature)?,
        })
    }

    /// Returns a claim that is a non-empty string.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.claims.get(name)?.as_str().filter(|it| !it.is_empty())
    }

    pub(super) fn has_audience(&self, names: &[&str]) -> bool {
        let is_named = |it: &Value| it.as_str().is_some_and(|it| names.contains(&it));
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

    /// Verifies the signature and the times. `exp` is required.
    pub(super) fn verify(&self, keys: &Jwks, unix: u64) -> Result<(), &'static str> {
        let keys = keys.candidates(self.kid.as_deref(), self.algorithm);
        let message = self.signed.as_bytes();
        if !keys.iter().any(|it| it.verify(self.algorithm, message, &self.signature)) {
            return Err("the signature of the JWT is wrong");
        }
        #[expect(clippy::cast_precision_loss, reason = "times are below 2^52")]
        let now = unix as f64;
        let time = |name: &str| self.claims.get(name).and_then(Value::as_f64);
        match time("exp") {
            None => return Err("the JWT never expires"),
            Some(it) if it + LEEWAY <= now => return Err("the JWT has expired"),
            Some(_) => (),
        }
        if ["nbf", "iat"].iter().any(|it| time(it).is_some_and(|it| it - LEEWAY > now)) {
            return Err("the JWT is not valid yet");
        }
        Ok(())
    }
}
