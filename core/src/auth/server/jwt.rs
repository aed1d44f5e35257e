//! Access tokens that are JWTs (RFC 7519, RFC 9068).

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::jwk::{Algorithm, Jwks};
use crate::{
    auth::{metadata::is_same_issuer, scopes},
    protocol::{Principal, json},
};

/// The maximum length of a token, in bytes.
pub const MAX_TOKEN: usize = 16 * 1024;

/// The usual difference between clocks that is accepted, in seconds.
pub const LEEWAY: u64 = 60;

/// The demands on a token.
#[derive(Clone, Debug)]
pub struct JwtRules {
    /// The value of `iss`, compared as plain strings.
    pub issuer: String,
    /// The names of this resource: `aud` has to contain one of them.
    pub audiences: Vec<String>,
    pub algorithms: Vec<Algorithm>,
    /// The seconds by which the clocks of issuer and server may differ.
    pub leeway: u64,
}

/// A token whose signature and claims are valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifiedToken {
    pub principal: Principal,
    /// The time at which it expires, in seconds since 1970, with the leeway.
    pub expires: Option<u64>,
    /// The thumbprint of the key that the token is bound to (RFC 9449, section 6.1).
    pub key: Option<String>,
}

/// The reason why a token is not accepted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JwtError {
    /// No key of the set has signed it. A newer set may have the key.
    UnknownKey,
    Invalid(&'static str),
}

/// A token that was taken apart and not verified. `Debug` shows its algorithm only.
pub struct ParsedJwt<'a> {
    algorithm: Option<Algorithm>,
    kid: Option<String>,
    signed: &'a str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl<'a> ParsedJwt<'a> {
    /// Takes an access token apart. Errors if it is not a JWT, or one of another kind.
    pub fn parse(token: &'a str) -> Result<Self, &'static str> {
        let (header, parsed) = Self::parts(token)?;
        match kind(header.typ.as_deref().unwrap_or("JWT")).as_str() {
            "jwt" | "at+jwt" => Ok(parsed),
            _ => Err("the token is not an access token"),
        }
    }

    fn parts(token: &'a str) -> Result<(Header, Self), &'static str> {
        let Parts { header, claims, signature, signed } = split(token)?;
        let header: Header = json::from_bytes(&header).map_err(|_| MALFORMED)?;
        if header.crit.is_some() {
            return Err("the token needs an extension that is not supported");
        }
        let parsed = Self {
            algorithm: Algorithm::named(&header.alg),
            kid: header.kid.clone(),
            signed,
            signature,
            claims: json::from_bytes(&claims).map_err(|_| MALFORMED)?,
        };
        Ok((header, parsed))
    }

    /// Returns the issuer that the token names. Nothing has verified it.
    pub fn claimed_issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }

    /// Verifies the signature and the claims. `unix` is the time, in seconds since 1970.
    pub fn verify(
        &self,
        keys: &Jwks,
        rules: &JwtRules,
        unix: u64,
    ) -> Result<VerifiedToken, JwtError> {
        let algorithm = self.algorithm.filter(|algorithm| rules.algorithms.contains(algorithm));
        let algorithm =
            algorithm.ok_or(JwtError::Invalid("the algorithm of the token is not accepted"))?;
        // Times are checked first: no key is looked up for an expired token.
        check_times(&self.claims, unix, rules.leeway, true).map_err(JwtError::Invalid)?;
        if !self.claimed_issuer().is_some_and(|issuer| is_same_issuer(issuer, &rules.issuer)) {
            return Err(JwtError::Invalid("the token is of another issuer"));
        }
        check_audience(&self.claims, &rules.audiences).map_err(JwtError::Invalid)?;
        let keys = keys.candidates(self.kid.as_deref(), algorithm);
        if keys.is_empty() {
            return Err(JwtError::UnknownKey);
        }
        let message = self.signed.as_bytes();
        if !keys.iter().any(|key| key.verify(algorithm, message, &self.signature)) {
            // Without a `kid` nothing tells an unknown key from a wrong signature.
            return Err(match self.kid {
                Some(_) => JwtError::Invalid("the signature of the token is wrong"),
                None => JwtError::UnknownKey,
            });
        }
        verified(self.claims.clone(), rules.leeway).map_err(JwtError::Invalid)
    }
}

impl fmt::Debug for ParsedJwt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParsedJwt").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

const MALFORMED: &str = "the token is malformed";

/// The decoded parts of a JWT.
pub(in crate::auth) struct Parts<'a> {
    pub(in crate::auth) header: Vec<u8>,
    pub(in crate::auth) claims: Vec<u8>,
    pub(in crate::auth) signature: Vec<u8>,
    /// The text that is signed.
    pub(in crate::auth) signed: &'a str,
}

/// Takes a signed JWT apart.
pub(in crate::auth) fn split(token: &str) -> Result<Parts<'_>, &'static str> {
    if token.len() > MAX_TOKEN {
        return Err("the token is too long");
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
    let (header, claims) = signed.split_once('.').ok_or(MALFORMED)?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| MALFORMED);
    let (header, claims, signature) = (decode(header)?, decode(claims)?, decode(signature)?);
    Ok(Parts { header, claims, signature, signed })
}

/// Returns the media type of a `typ` header in lower case, without `application/`.
pub(in crate::auth) fn kind(typ: &str) -> String {
    let typ = typ.to_ascii_lowercase();
    typ.strip_prefix("application/").map_or(typ.clone(), ToOwned::to_owned)
}

/// Returns whether a token looks like a JWT, so that it is worth to be taken apart.
pub fn looks_like_jwt(token: &str) -> bool {
    token.starts_with("eyJ") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Checks the times of a token.
pub(in crate::auth) fn check_times(
    claims: &Map<String, Value>,
    unix: u64,
    leeway: u64,
    needs_expiry: bool,
) -> Result<(), &'static str> {
    let (now, leeway) = (seconds(unix), seconds(leeway));
    let time = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(it) => match it.as_f64().filter(|number| number.is_finite()) {
            Some(it) => Ok(Some(it)),
            None => Err("a time of the token is not a number"),
        },
    };
    match time("exp")? {
        None if needs_expiry => return Err("the token never expires"),
        Some(it) if it + leeway <= now => return Err("the token has expired"),
        _ => (),
    }
    if time("nbf")?.is_some_and(|start| start - leeway > now) {
        return Err("the token is not valid yet");
    }
    if time("iat")?.is_some_and(|issued| issued - leeway > now) {
        return Err("the token was issued in the future");
    }
    Ok(())
}

/// Checks that the token is for this resource (RFC 8707).
pub(super) fn check_audience(
    claims: &Map<String, Value>,
    audiences: &[String],
) -> Result<(), &'static str> {
    let own = |audience: &Value| {
        audience.as_str().is_some_and(|name| audiences.iter().any(|own| own == name))
    };
    let is_for_us = match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(own),
        Some(one) => own(one),
        None => false,
    };
    if is_for_us { Ok(()) } else { Err("the token is for another audience") }
}

/// Reads the claims of a token that is valid.
pub(super) fn verified(
    claims: Map<String, Value>,
    leeway: u64,
) -> Result<VerifiedToken, &'static str> {
    let text = |name: &str| {
        claims
            .get(name)
            .and_then(Value::as_str)
            .filter(|value| !value.is_empty())
            .map(ToOwned::to_owned)
    };
    let client_id = text("client_id").or_else(|| text("azp"));
    let subject = text("sub").or_else(|| client_id.clone()).ok_or("the token names no subject")?;
    let key = match claims.get("cnf") {
        None | Some(Value::Null) => None,
        // A token that is bound in a way that can't be checked is refused, not taken as unbound.
        Some(it) => match it.as_object() {
            Some(it) if it.len() == 1 => it.get("jkt").and_then(Value::as_str),
            _ => None,
        }
        .map(|thumbprint| Some(thumbprint.to_owned()))
        .ok_or("the token is bound in a way that is not supported")?,
    };
    let granted = ["scope", "scp"].iter().filter_map(|name| claims.get(*name)).flat_map(scopes_of);
    let scopes = granted.collect();
    let expires = expiry(&claims, leeway);
    Ok(VerifiedToken { principal: Principal { subject, client_id, scopes, claims }, expires, key })
}

/// Returns the time at which a token expires, in seconds since 1970, with the leeway.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
pub(in crate::auth) fn expiry(claims: &Map<String, Value>, leeway: u64) -> Option<u64> {
    let expires = claims.get("exp")?.as_f64()?;
    Some((expires as u64).saturating_add(leeway))
}

fn scopes_of(claim: &Value) -> scopes::Scopes {
    match claim {
        Value::String(text) => scopes::parse(text),
        Value::Array(all) => all.iter().filter_map(Value::as_str).flat_map(scopes::parse).collect(),
        _ => scopes::Scopes::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "times are below 2^52")]
fn seconds(unix: u64) -> f64 {
    unix as f64
}
