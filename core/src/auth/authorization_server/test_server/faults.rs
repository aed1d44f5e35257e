//! Faults of an authorization server, on demand.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::{
    super::metadata::{AUTHORIZE, INTROSPECT, KEYS, REGISTER, REVOKE, TOKEN},
    given::{Given, sorted},
};
use crate::{
    error::{Error, option_name},
    protocol::json,
};

/// The names of endpoints in [`AuthFaults::errors`].
const ENDPOINTS: [(&str, &str); 6] = [
    ("authorize", AUTHORIZE),
    ("token", TOKEN),
    ("register", REGISTER),
    ("jwks", KEYS),
    ("introspect", INTROSPECT),
    ("revoke", REVOKE),
];
const METADATA: &str = "metadata";
const MAX_DELAY: Duration = Duration::from_secs(600);
const MAX_PADDING: usize = 64 * 1024 * 1024;

/// Ways in which an [`AuthorizationServer`](crate::testing::auth::AuthorizationServer) deviates from a correct one. By
/// default, it does not.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub struct AuthFaults {
    /// The time before each response, at most 600 s.
    pub delay: Duration,
    /// The number of requests to an endpoint that are answered with status 500, by the endpoint's name: `metadata`,
    /// `authorize`, `token`, `register`, `jwks`, `introspect`, `revoke`.
    pub errors: BTreeMap<String, u32>,
    /// The issuer that the metadata name in place of the right one.
    pub metadata_issuer: Option<String>,
    /// The issuer (`iss`) that authorization responses name in place of the right one.
    pub response_issuer: Option<String>,
    /// The metadata do not say that PKCE is supported.
    pub no_pkce: bool,
    /// The minimum size of the metadata in bytes, at most 67,108,864.
    pub metadata_bytes: usize,
    /// Tokens have expired before they are issued.
    pub expired_tokens: bool,
    /// Registrations of clients are refused.
    pub refuse_registration: bool,
    /// After each token that is issued to a client, the key is replaced, and the former one is no longer published.
    pub rotate_keys: bool,
}

impl AuthFaults {
    /// Reads the faults of a binding. Errors, with the fix, if one can't be read.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Error> {
        Self::from_value(json::from_bytes(json).unwrap_or_default())
    }

    /// Reads the faults of a binding.
    pub(super) fn from_value(given: Value) -> Result<Self, Error> {
        let mut given = Given::new("faults: ", given)?;
        let mut errors = Vec::new();
        for (name, count) in given.object("errors")? {
            let count = count.as_u64().and_then(|count| u32::try_from(count).ok());
            let wrong = || Error::misuse(format!("faults: errors: {name} must be a number"));
            errors.push((name.clone(), count.ok_or_else(wrong)?));
        }
        let faults = Self {
            delay: given.duration("delay", Duration::ZERO)?,
            errors: sorted(errors),
            metadata_issuer: given.text("metadata_issuer")?,
            response_issuer: given.text("response_issuer")?,
            no_pkce: given.flag("no_pkce", false)?,
            metadata_bytes: usize::try_from(given.count("metadata_bytes")?).unwrap_or(usize::MAX),
            expired_tokens: given.flag("expired_tokens", false)?,
            refuse_registration: given.flag("refuse_registration", false)?,
            rotate_keys: given.flag("rotate_keys", false)?,
        };
        given.finish()?;
        Ok(faults)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |reason: String| Err(Error::misuse(format!("faults: {reason}")));
        if self.delay > MAX_DELAY {
            let (name, most) = (option_name("delay"), MAX_DELAY.as_secs());
            return wrong(format!("{name} is from 0 to {most} seconds"));
        }
        if self.metadata_bytes > MAX_PADDING {
            return wrong(format!("{} is at most {MAX_PADDING}", option_name("metadata_bytes")));
        }
        let is_known =
            |key: &str| key == METADATA || ENDPOINTS.iter().any(|(name, _)| *name == key);
        match self.errors.keys().find(|key| !is_known(key)) {
            Some(name) => wrong(format!(
                "errors has no endpoint {name:?}; the endpoints are metadata, authorize, token, register, jwks, introspect and revoke"
            )),
            None => Ok(()),
        }
    }

    /// Returns whether this request is answered with status 500, and counts it.
    pub(super) fn takes_error(&mut self, path: &str) -> bool {
        let found = ENDPOINTS.iter().find(|(_, known)| *known == path).map(|(name, _)| *name);
        let name = found.or_else(|| path.starts_with("/.well-known/").then_some(METADATA));
        let left = name.and_then(|name| self.errors.get_mut(name)).filter(|count| **count > 0);
        left.map(|count| *count -= 1).is_some()
    }
}
