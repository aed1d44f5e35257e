//! The options of an authorization server for tests.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Map, Value};

use super::{
    super::clients::{Client, ClientMetadata},
    faults::AuthFaults,
    given::{Given, sorted},
};
use crate::{
    auth::{Secret, fetch::check_url},
    error::{Error, option_name},
};

/// The longest life of a token, in seconds.
const MAX_LIFE: u64 = 10 * 365 * 86_400;
/// The redirect URLs of a client that lists none: the usual ones of a native app, at any port.
const LOOPBACK: [&str; 2] = ["http://127.0.0.1/callback", "http://localhost/callback"];

/// The options of an [`AuthorizationServer`](crate::testing::auth::AuthorizationServer).
#[derive(Clone)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct AuthorizationServerOptions {
    /// The port of 127.0.0.1. Default: 0, any free port.
    pub port: u16,
    /// The user who signs in. Default: `user`.
    pub subject: String,
    /// The scopes that may be requested. Default: any.
    pub scopes: Option<Vec<String>>,
    /// The URLs of MCP servers that tokens may be for. Default: any.
    pub resources: Option<Vec<String>>,
    /// Clients that are registered from the start, with the names of RFC 7591: `client_id`, and if there is a secret or key
    /// `client_secret` or `jwks`, also `redirect_uris` (default: `/callback` at any port of 127.0.0.1 and localhost),
    /// `token_endpoint_auth_method`, `grant_types` (default: every grant) and `client_name`.
    pub clients: Vec<Value>,
    /// Client-id metadata documents by URL; `None`: the document is fetched. Default: none, and the metadata say that they
    /// are not supported.
    pub client_documents: BTreeMap<String, Option<Value>>,
    /// `true` if clients may register themselves. Default: true.
    pub registration: bool,
    /// The user's decision. Default: [`Consent::Automatic`].
    pub consent: Consent,
    /// The form of access tokens. Default: [`TokenFormat::Jwt`].
    pub token_format: TokenFormat,
    /// The life of access tokens, at most ten years. Default: one hour.
    pub expires_in: Duration,
    /// `true` if a code is exchanged for a refresh token as well. Default: true.
    pub refresh_tokens: bool,
    /// The tokens that are bound to a key. Default: [`Dpop::Optional`].
    pub dpop: Dpop,
    /// Other issuers whose assertions are exchanged for tokens; their keys are fetched. The server trusts itself.
    pub trusted_issuers: Vec<String>,
    /// Deviations from a correct server. Default: none.
    pub faults: AuthFaults,
}

/// An access token that a test asks for.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct TokenOptions {
    /// The user. Default: the server's `subject`.
    pub subject: Option<String>,
    /// The client that it is issued to. Default: `test`.
    pub client_id: String,
    /// The scopes that it grants.
    pub scopes: Vec<String>,
    /// The URL of the MCP server that it is for. Default: the issuer.
    pub audience: Option<String>,
    /// Seconds until it expires, negative for one that has expired. Default: the server's `expires_in`.
    pub expires_in: Option<f64>,
    /// The key that it is bound to: a public JWK, or its thumbprint. Default: none.
    pub dpop_key: Option<Value>,
    /// Further claims, which replace others of the same name.
    pub claims: Map<String, Value>,
}

/// The decision of the user who signs in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Consent {
    /// The user agrees.
    #[default]
    Automatic,
    /// A page asks the user.
    Page,
    /// The user declines.
    Deny,
}

/// The form of access tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum TokenFormat {
    #[default]
    Jwt,
    /// Random characters, which servers introspect.
    Opaque,
}

/// The tokens that are bound to a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Dpop {
    /// Tokens of clients that send a proof.
    #[default]
    Optional,
    /// All.
    Required,
    /// All, and proofs need a nonce.
    Nonce,
}

crate::error::impl_new!(AuthorizationServerOptions, TokenOptions);

impl Default for AuthorizationServerOptions {
    fn default() -> Self {
        Self {
            port: 0,
            subject: "user".into(),
            scopes: None,
            resources: None,
            clients: Vec::new(),
            client_documents: BTreeMap::new(),
            registration: true,
            consent: Consent::Automatic,
            token_format: TokenFormat::Jwt,
            expires_in: Duration::from_secs(3_600),
            refresh_tokens: true,
            dpop: Dpop::Optional,
            trusted_issuers: Vec::new(),
            faults: AuthFaults::default(),
        }
    }
}

impl AuthorizationServerOptions {
    /// Reads the options of a binding. Errors, with the fix, if one can't be read.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Error> {
        let mut given = Given::parse("", json)?;
        let defaults = Self::default();
        let consents = [Consent::Automatic, Consent::Page, Consent::Deny];
        let formats = [TokenFormat::Jwt, TokenFormat::Opaque];
        let uses = [Dpop::Optional, Dpop::Required, Dpop::Nonce];
        let port = u16::try_from(given.count("port")?);
        let documents = given.object("client_documents")?.into_iter();
        let options = Self {
            port: port.map_err(|_| Error::misuse("port: it must be at most 65535"))?,
            subject: given.text("subject")?.unwrap_or(defaults.subject),
            scopes: given.texts("scopes")?,
            resources: given.texts("resources")?,
            clients: given.list("clients")?,
            client_documents: sorted(
                documents
                    .map(|(url, document)| (url, Some(document).filter(|value| !value.is_null()))),
            ),
            registration: given.flag("registration", true)?,
            consent: consents[given.choice("consent", &["automatic", "page", "deny"])?],
            token_format: formats[given.choice("token_format", &["jwt", "opaque"])?],
            expires_in: given.duration("expires_in", defaults.expires_in)?,
            refresh_tokens: given.flag("refresh_tokens", true)?,
            dpop: uses[given.choice("dpop", &["optional", "required", "nonce"])?],
            trusted_issuers: given.texts("trusted_issuers")?.unwrap_or_default(),
            faults: match given.value("faults") {
                Some(faults) => AuthFaults::from_value(faults)?,
                None => AuthFaults::default(),
            },
        };
        given.finish()?;
        Ok(options)
    }

    /// Errors, with the fix, if an option can't be used.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |name: &str, reason: &dyn fmt::Display| {
            Error::misuse(format!("{}: {reason}", option_name(name)))
        };
        if self.subject.is_empty() {
            return Err(wrong("subject", &"it must not be empty"));
        }
        if self.expires_in.as_secs() > MAX_LIFE {
            return Err(wrong("expires_in", &format!("at most {MAX_LIFE} seconds")));
        }
        for issuer in &self.trusted_issuers {
            check_url(issuer).map_err(|error| wrong("trusted_issuers", &error))?;
        }
        for url in self.client_documents.keys() {
            check_url(url).map_err(|error| wrong("client_documents", &error))?;
        }
        self.faults.check()
    }

    /// Takes the clients out of the options.
    pub(super) fn take_clients(&mut self) -> Result<Vec<Client>, Error> {
        let mut clients = Vec::with_capacity(self.clients.len());
        for given in std::mem::take(&mut self.clients) {
            clients.push(client(given)?);
        }
        Ok(clients)
    }
}

/// Reads a client.
fn client(given: Value) -> Result<Client, Error> {
    let mut given = Given::of_snake("clients: ", given)?;
    let id = given.text("client_id")?.unwrap_or_default();
    let secret = given.text("client_secret")?.map(Secret::from);
    let loopback = || LOOPBACK.map(ToOwned::to_owned).to_vec();
    let metadata = ClientMetadata {
        redirect_uris: given.texts("redirect_uris")?.unwrap_or_else(loopback),
        token_endpoint_auth_method: given.text("token_endpoint_auth_method")?,
        grant_types: given.texts("grant_types")?,
        client_name: given.text("client_name")?,
        jwks: given.value("jwks"),
    };
    given.finish()?;
    let invalid = |reason: &str| Error::misuse(format!("clients: {id:?}: {reason}"));
    if id.is_empty() {
        return Err(invalid("client_id must not be empty"));
    }
    Client::new(id.clone(), secret, metadata).map_err(|error| invalid(&error.description))
}

impl TokenOptions {
    /// Reads the options of a binding. Errors, with the fix, if one can't be read.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Error> {
        let mut given = Given::parse("token(): ", json)?;
        let defaults = Self::default();
        let options = Self {
            subject: given.text("subject")?,
            client_id: given.text("client_id")?.unwrap_or(defaults.client_id),
            scopes: given.texts("scopes")?.unwrap_or_default(),
            audience: given.text("audience")?,
            expires_in: given.number("expires_in")?,
            dpop_key: given.value("dpop_key"),
            claims: given.object("claims")?,
        };
        given.finish()?;
        Ok(options)
    }
}

impl Default for TokenOptions {
    fn default() -> Self {
        Self {
            subject: None,
            client_id: "test".into(),
            scopes: Vec::new(),
            audience: None,
            expires_in: None,
            dpop_key: None,
            claims: Map::new(),
        }
    }
}

impl fmt::Debug for AuthorizationServerOptions {
    /// Clients have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationServerOptions")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}
