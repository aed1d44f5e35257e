//! Other issuers whose assertions are accepted: identity providers and the platforms of workloads.

use std::collections::BTreeMap;

use super::{super::server::jwk::Jwks, message::OAuthError};
use crate::auth::{
    fetch::{FetchError, FetchRequest, FetchResponse, MAX_DOCUMENT, MAX_KEY_SET},
    metadata::{ServerMetadata, issuer_locations},
};

/// The issuers, with what is known of them.
#[derive(Debug, Default)]
pub(super) struct TrustedIssuers(BTreeMap<String, Issuer>);

#[derive(Debug, Default)]
struct Issuer {
    /// The number of places at which the metadata were not found.
    missing: usize,
    keys_url: Option<String>,
    keys: Option<Jwks>,
}

/// The keys of an issuer.
pub(super) enum Found<'a> {
    Untrusted,
    Keys(&'a Jwks),
    /// The document that leads to the keys.
    Fetch(Box<FetchRequest>),
}

impl TrustedIssuers {
    pub(super) fn new(issuers: impl IntoIterator<Item = String>) -> Self {
        Self(issuers.into_iter().map(|issuer| (issuer, Issuer::default())).collect())
    }

    pub(super) fn keys(&self, issuer: &str) -> Result<Found<'_>, FetchError> {
        let Some(known) = self.0.get(issuer) else { return Ok(Found::Untrusted) };
        Ok(match (&known.keys, &known.keys_url) {
            (Some(keys), _) => Found::Keys(keys),
            (None, Some(url)) => Found::Fetch(Box::new(FetchRequest::get(url, MAX_KEY_SET)?)),
            (None, None) => {
                let places = issuer_locations(issuer);
                let place = places.get(known.missing).map_or("", String::as_str);
                Found::Fetch(Box::new(FetchRequest::get(place, MAX_DOCUMENT)?))
            }
        })
    }

    /// Forgets the keys of an issuer, which may have new ones.
    pub(super) fn forget_keys(&mut self, issuer: &str) {
        if let Some(known) = self.0.get_mut(issuer) {
            known.keys = None;
        }
    }

    /// Takes a document that [`TrustedIssuers::keys`] asked for. Returns false if it belongs to no issuer.
    pub(super) fn take(
        &mut self,
        url: &str,
        answer: &Result<FetchResponse, FetchError>,
    ) -> Result<bool, OAuthError> {
        for (issuer, known) in &mut self.0 {
            let failed = |error: &FetchError| {
                let reason = format!("the keys of {issuer} could not be fetched: {url}: {error}");
                OAuthError::new("invalid_grant", reason)
            };
            let answer = answer.as_ref().map_err(failed);
            if known.keys_url.as_deref() == Some(url) {
                let answer = answer?;
                let keys = Jwks::read(&answer.body).map_err(FetchError::Json);
                known.keys = Some(keys.map_err(|error| failed(&error))?);
                return Ok(true);
            }
            let places = issuer_locations(issuer);
            if places.get(known.missing).is_some_and(|place| place == url) {
                let read = answer.and_then(|answer| {
                    ServerMetadata::read(answer, issuer).map_err(|error| failed(&error))
                });
                match read {
                    Ok(metadata) => known.keys_url = metadata.jwks_uri,
                    Err(_) if known.missing + 1 < places.len() => known.missing += 1,
                    Err(error) => {
                        known.missing = 0;
                        return Err(error);
                    }
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}
