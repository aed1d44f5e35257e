//! The ways to verify credentials.

use crate::auth::{
    authorization_server::proxy::OAuthProxy,
    server::{api_keys::ApiKeys, introspection::Introspection, jwk::Algorithm, keys::Keys},
};

/// A way to verify credentials.
#[derive(Debug)]
pub enum Method {
    Jwt(Box<Jwt>),
    Introspection(Box<Introspection>, Option<String>),
    ApiKeys(ApiKeys),
    /// Tokens of the server's own OAuth proxy.
    Proxy(Box<OAuthProxy>),
    /// A function of the host.
    Verify,
}

/// JWTs of one issuer.
#[derive(Debug)]
pub struct Jwt {
    pub issuer: String,
    /// The accepted values of `aud`; `None`: the identifier of this resource.
    pub audiences: Option<Vec<String>>,
    pub keys: Keys,
    pub algorithms: Vec<Algorithm>,
    pub leeway: u64,
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    pub dpop: Dpop,
}

/// The use of tokens that are bound to a key (RFC 9449).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Dpop {
    /// Bound tokens are refused.
    Off,
    /// Bound tokens are accepted with a proof, beside others.
    #[default]
    Supported,
    /// Tokens that are not bound are refused.
    Required,
    /// Tokens that are not bound are refused, and proofs need a nonce of this server.
    WithNonce,
}

impl Method {
    /// Returns the issuer of the tokens that the method verifies, which the metadata of this resource names.
    pub(super) fn issuer(&self) -> Option<&String> {
        match self {
            Self::Jwt(it) => Some(&it.issuer),
            Self::Introspection(_, issuer) => issuer.as_ref(),
            Self::ApiKeys(_) | Self::Proxy(_) | Self::Verify => None,
        }
    }

    /// Returns whether metadata of this resource name an authorization server for the method.
    pub(super) fn has_issuer(&self) -> bool {
        self.issuer().is_some() || matches!(self, Self::Proxy(_))
    }

    /// Returns whether the method accepts tokens that are not bound to a key.
    pub(super) fn takes_bearer(&self) -> bool {
        match self {
            Self::Jwt(it) => matches!(it.dpop, Dpop::Off | Dpop::Supported),
            Self::ApiKeys(it) => !it.has_own_header(),
            Self::Introspection(..) | Self::Proxy(_) | Self::Verify => true,
        }
    }
}
