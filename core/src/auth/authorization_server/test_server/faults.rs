//! Faults of an authorization server, on demand.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

use super::super::metadata::{AUTHORIZE, INTROSPECT, KEYS, REGISTER, REVOKE, TOKEN};
use crate::error::Error;

/// The names of endpoints in [`Faults::errors`].
const ENDPOINTS: [(&str, &str); 6] = [
    ("authorize", AUTHORIZE),
    ("token", TOKEN),
    ("register", REGISTER),
    ("jwks", KEYS),
    ("introspect", INTROSPECT),
    ("revoke", REVOKE),
];
const METADATA: &str = "metadata";
const MAX_DELAY: f64 = 600.0;
const MAX_PADDING: usize = 64 * 1024 * 1024;

/// Deviations from a correct server. None by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Faults {
    /// The time before each response, in seconds.
    delay: f64,
    /// The number of requests to an endpoint that are answered with status 500, by the endpoint's name.
    errors: BTreeMap<String, u32>,
    /// The issuer that the metadata name.
    pub(super) metadata_issuer: Option<String>,
    /// The issuer that authorization responses name.
    pub(super) response_issuer: Option<String>,
    /// The metadata do not say that PKCE is supported.
    pub(super) no_pkce: bool,
    /// The size of the metadata, in bytes.
    pub(super) metadata_bytes: usize,
    /// Tokens have expired before they are issued.
    pub(super) expired_tokens: bool,
    /// Registrations are refused.
    pub(super) refuse_registration: bool,
    /// Each token is signed by a new key, and former keys are no longer published.
    pub(super) rotate_keys: bool,
}

impl Faults {
    pub(super) fn parse(json: &[u8]) -> Result<Self, Error> {
        let faults: Self =
            serde_json::from_slice(json).map_err(|it| Error::misuse(format!("faults=: {it}")))?;
        faults.check()?;
        Ok(faults)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if !(0.0..=MAX_DELAY).contains(&self.delay) {
            return Err(Error::misuse(format!("faults=: delay is from 0 to {MAX_DELAY} seconds")));
        }
        if self.metadata_bytes > MAX_PADDING {
            return Err(Error::misuse(format!("faults=: metadata_bytes is at most {MAX_PADDING}")));
        }
        let is_known = |it: &str| it == METADATA || ENDPOINTS.iter().any(|(name, _)| *name == it);
        match self.errors.keys().find(|it| !is_known(it)) {
            Some(name) => Err(Error::misuse(format!(
                "faults=: errors has no endpoint {name:?}; the endpoints are metadata, authorize, token, register, jwks, introspect and revoke"
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay)
    }

    /// Returns whether this request is answered with status 500, and counts it.
    pub(super) fn takes_error(&mut self, path: &str) -> bool {
        let found = ENDPOINTS.iter().find(|(_, it)| *it == path).map(|(name, _)| *name);
        let name = found.or_else(|| path.starts_with("/.well-known/").then_some(METADATA));
        let left = name.and_then(|it| self.errors.get_mut(it)).filter(|it| **it > 0);
        left.map(|it| *it -= 1).is_some()
    }
}
