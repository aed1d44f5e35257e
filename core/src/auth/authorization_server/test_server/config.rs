//! The options of an authorization server for tests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{
    super::clients::{Client, ClientMetadata},
    faults::Faults,
};
use crate::{
    auth::{Secret, fetch::check_url},
    error::Error,
};

/// The longest life of a token, in seconds.
const MAX_LIFE: u64 = 10 * 365 * 86_400;
/// The redirect URLs of a client that lists none: the usual ones of a native app, at any port.
const LOOPBACK: [&str; 2] = ["http://127.0.0.1/callback", "http://localhost/callback"];

/// The options.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Config {
    /// The user who signs in.
    pub(super) subject: String,
    /// The scopes that may be requested; `None`: any.
    pub(super) scopes: Option<Vec<String>>,
    /// The resources that tokens may be for; `None`: any.
    pub(super) resources: Option<Vec<String>>,
    pub(super) clients: Vec<ClientConfig>,
    /// Client metadata documents by URL; `None`: the document is fetched.
    pub(super) client_documents: BTreeMap<String, Option<Value>>,
    pub(super) registration: bool,
    pub(super) consent: Consent,
    pub(super) token_format: TokenFormat,
    /// The life of access tokens, in seconds.
    pub(super) expires_in: u64,
    pub(super) refresh_tokens: bool,
    pub(super) dpop: Dpop,
    pub(super) trusted_issuers: Vec<String>,
    pub(super) faults: Faults,
}

/// A client that is registered from the start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientConfig {
    client_id: String,
    client_secret: Option<Secret>,
    redirect_uris: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    client_name: Option<String>,
    jwks: Option<Value>,
}

/// The user's decision.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Consent {
    #[default]
    Automatic,
    /// A page asks the user.
    Page,
    Deny,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum TokenFormat {
    #[default]
    Jwt,
    Opaque,
}

/// The tokens that are bound to a key.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dpop {
    /// Those of clients that send a proof.
    #[default]
    Optional,
    Required,
    /// All; and a proof needs a nonce.
    Nonce,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            subject: "user".into(),
            scopes: None,
            resources: None,
            clients: Vec::new(),
            client_documents: BTreeMap::new(),
            registration: true,
            consent: Consent::Automatic,
            token_format: TokenFormat::Jwt,
            expires_in: 3_600,
            refresh_tokens: true,
            dpop: Dpop::Optional,
            trusted_issuers: Vec::new(),
            faults: Faults::default(),
        }
    }
}

impl Config {
    /// Reads the options. Errors, with the fix, if one can't be used.
    pub(super) fn parse(json: &[u8]) -> Result<Self, Error> {
        let config: Self = serde_json::from_slice(json)
            .map_err(|it| Error::misuse(format!("AuthorizationServer(): {it}")))?;
        if config.subject.is_empty() {
            return Err(Error::misuse("subject=: it must not be empty"));
        }
        if config.expires_in > MAX_LIFE {
            return Err(Error::misuse(format!("expires_in=: at most {MAX_LIFE} seconds")));
        }
        for issuer in &config.trusted_issuers {
            check_url(issuer).map_err(|it| Error::misuse(format!("trusted_issuers=: {it}")))?;
        }
        for url in config.client_documents.keys() {
            check_url(url).map_err(|it| Error::misuse(format!("client_documents=: {it}")))?;
        }
        config.faults.check()?;
        Ok(config)
    }

    /// Takes the clients out of the options.
    pub(super) fn clients(&mut self) -> Result<Vec<Client>, Error> {
        std::mem::take(&mut self.clients).into_iter().map(ClientConfig::client).collect()
    }
}

impl ClientConfig {
    fn client(self) -> Result<Client, Error> {
        let id = self.client_id;
        let loopback = || LOOPBACK.map(ToOwned::to_owned).to_vec();
        let metadata = ClientMetadata {
            redirect_uris: self.redirect_uris.unwrap_or_else(loopback),
            token_endpoint_auth_method: self.token_endpoint_auth_method,
            grant_types: self.grant_types,
            client_name: self.client_name,
            jwks: self.jwks,
        };
        let invalid = |reason: &str| Error::misuse(format!("clients=: {id:?}: {reason}"));
        if id.is_empty() {
            return Err(invalid("client_id must not be empty"));
        }
        Client::new(id.clone(), self.client_secret, metadata).map_err(|it| invalid(&it.description))
    }
}
