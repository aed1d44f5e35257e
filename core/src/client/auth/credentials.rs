//! The ways in which a client gets an access token.

use std::{fmt, sync::Arc};

use super::{Store, TokenSource};
use crate::{
    auth::{
        Secret,
        client::{ClientKey, Grant, RegisteredClient},
    },
    error::{Error, option_name},
    transport::sign_in::{SignInOptions, UrlCallback},
};

/// The algorithm of a private key if the program names none.
const DEFAULT_ALGORITHM: &str = "ES256";

/// The user signs in with a browser (authorization code with PKCE).
///
/// Without a `client_id` the client registers itself. Spec: Authorization › Client Registration Approaches.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct OAuth {
    /// The id of a client that was registered beforehand. Default: `client_metadata_url` where that is supported, else the
    /// client registers itself.
    pub client_id: Option<String>,
    /// The secret of `client_id`, if it has one.
    pub client_secret: Option<String>,
    /// The only authorization server that gets the credentials. Needs `client_id`. Default: the first to which they are sent.
    pub issuer: Option<String>,
    /// The URL of the client's metadata document, which is its id where the authorization server supports that.
    pub client_metadata_url: Option<String>,
    /// Scopes that are requested in addition to those that the server asks for.
    pub scopes: Vec<String>,
    /// The store of tokens and registrations. Default: memory.
    pub store: Store,
    /// If true, tokens must be bound to a key of this client (RFC 9449). Default: false.
    pub dpop: bool,
    /// The port of the redirect URL `http://127.0.0.1:<port>/callback`. Default: 0, any free port; with `on_redirect`, the
    /// port of the last registration, or else 3000.
    pub redirect_port: u16,
    /// Opens a URL. Default: the system's browser.
    pub open_url: Option<UrlCallback<()>>,
    /// Takes the URL to open and returns the one to which the browser is redirected, for programs that can't listen.
    /// Default: the client listens on 127.0.0.1.
    pub on_redirect: Option<UrlCallback<String>>,
}

/// The program acts for itself, without a user (client credentials).
///
/// Spec: extension OAuth Client Credentials.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ClientCredentials {
    /// The client as it was registered with the authorization server.
    pub client_id: String,
    /// The secret. Exactly one of `client_secret` and `private_key` is required.
    pub client_secret: Option<String>,
    /// A private key in PKCS#8, as PEM, by which the client signs assertions (RFC 7523).
    pub private_key: Option<String>,
    /// The algorithm of the key: ES256, ES384, RS256, RS384, RS512, PS256 or `EdDSA`. Default: ES256.
    pub algorithm: Option<String>,
    /// The only authorization server that gets the credentials. Default: the first to which they are sent.
    pub issuer: Option<String>,
    /// Scopes that are requested in addition to those that the server asks for.
    pub scopes: Vec<String>,
    /// If true, tokens must be bound to a key of this client (RFC 9449). Default: false.
    pub dpop: bool,
}

/// The identity provider of an organisation decides: it exchanges the user's identity token for a grant (ID-JAG).
///
/// Spec: extension Enterprise-Managed Authorization.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct EnterpriseManaged {
    /// Returns the user's identity token. Required.
    pub identity_token: Option<TokenSource>,
    /// The issuer of the identity provider.
    pub idp: String,
    /// The client as the authorization server of the MCP server knows it.
    pub client_id: String,
    pub client_secret: Option<String>,
    /// The client as the identity provider knows it. Default: `client_id` and `client_secret`.
    pub idp_client_id: Option<String>,
    pub idp_client_secret: Option<String>,
    /// The only authorization server that gets the credentials. Default: the first to which they are sent.
    pub issuer: Option<String>,
    /// Scopes that are requested in addition to those that the server asks for.
    pub scopes: Vec<String>,
}

/// A token of the platform that the program runs on is exchanged (RFC 7523). A failed exchange is not repeated.
///
/// Spec: extension Workload Identity Federation.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct WorkloadIdentity {
    /// Returns the platform's token. Required.
    pub token: Option<TokenSource>,
    /// The client as the authorization server knows it. Default: none.
    pub client_id: Option<String>,
    /// The only authorization server that gets the token. Default: the first to which it is sent.
    pub issuer: Option<String>,
    /// Scopes that are requested in addition to those that the server asks for.
    pub scopes: Vec<String>,
}

crate::error::impl_new!(OAuth, ClientCredentials, EnterpriseManaged, WorkloadIdentity);

impl OAuth {
    pub(super) fn sign_in(&self) -> Result<SignInOptions, Error> {
        let client = match (&self.client_id, &self.client_secret, &self.issuer) {
            (Some(id), secret, issuer) => {
                Some(registered(id, secret.as_deref(), issuer.as_deref()))
            }
            (None, Some(_), _) => {
                return Err(without("client_secret", "client_id"));
            }
            (None, None, Some(_)) => {
                return Err(Error::misuse(format!(
                    "auth: issuer is given without {0}; pass the {0} that this issuer registered, or leave issuer out",
                    option_name("client_id")
                )));
            }
            (None, None, None) => None,
        };
        let grant = Grant::AuthorizationCode {
            client,
            metadata_url: self.client_metadata_url.clone(),
            port: self.redirect_port,
        };
        Ok(SignInOptions {
            scopes: self.scopes.clone(),
            store: self.store.clone(),
            dpop: self.dpop,
            open_url: self.open_url.clone(),
            on_redirect: self.on_redirect.clone(),
            ..SignInOptions::new(grant)
        })
    }
}

impl ClientCredentials {
    pub(super) fn sign_in(&self) -> Result<SignInOptions, Error> {
        if self.client_secret.is_some() == self.private_key.is_some() {
            return Err(Error::misuse(format!(
                "auth: pass exactly one of {} and {}",
                option_name("client_secret"),
                option_name("private_key")
            )));
        }
        let algorithm = self.algorithm.as_deref().unwrap_or(DEFAULT_ALGORITHM);
        let key = self.private_key.as_ref().map(|pem| ClientKey::from_pem(pem, algorithm));
        let client = RegisteredClient {
            key: key.transpose()?,
            ..registered(&self.client_id, self.client_secret.as_deref(), self.issuer.as_deref())
        };
        Ok(SignInOptions {
            scopes: self.scopes.clone(),
            dpop: self.dpop,
            ..SignInOptions::new(Grant::ClientCredentials(client))
        })
    }
}

impl EnterpriseManaged {
    pub(super) fn sign_in(&self) -> Result<SignInOptions, Error> {
        let secret = self.client_secret.as_deref();
        if self.idp_client_id.is_none() && self.idp_client_secret.is_some() {
            return Err(without("idp_client_secret", "idp_client_id"));
        }
        let idp_client = match &self.idp_client_id {
            Some(id) => registered(id, self.idp_client_secret.as_deref(), None),
            None => registered(&self.client_id, secret, None),
        };
        let client = registered(&self.client_id, secret, self.issuer.as_deref());
        let grant = Grant::EnterpriseManaged { client, idp: self.idp.clone(), idp_client };
        Ok(SignInOptions {
            scopes: self.scopes.clone(),
            identity: Some(required("identity_token", self.identity_token.as_ref())?),
            ..SignInOptions::new(grant)
        })
    }
}

impl WorkloadIdentity {
    pub(super) fn sign_in(&self) -> Result<SignInOptions, Error> {
        let (client_id, issuer) = (self.client_id.clone(), self.issuer.clone());
        Ok(SignInOptions {
            scopes: self.scopes.clone(),
            identity: Some(required("token", self.token.as_ref())?),
            ..SignInOptions::new(Grant::WorkloadIdentity { client_id, issuer })
        })
    }
}

/// Names the authorization server and the client, and no secret.
macro_rules! impl_debug {
    ($($name:ident: $($field:ident)*;)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    )*};
}

impl_debug! {
    OAuth: client_id issuer scopes;
    ClientCredentials: client_id issuer scopes;
    EnterpriseManaged: idp client_id issuer scopes;
    WorkloadIdentity: client_id issuer scopes;
}

fn registered(id: &str, secret: Option<&str>, issuer: Option<&str>) -> RegisteredClient {
    RegisteredClient {
        id: id.to_owned(),
        secret: secret.map(Secret::from),
        key: None,
        issuer: issuer.map(ToOwned::to_owned),
    }
}

fn without(given: &str, missing: &str) -> Error {
    let (given, missing) = (option_name(given), option_name(missing));
    Error::misuse(format!("auth: {given} is given without {missing}; pass both"))
}

fn required(name: &str, source: Option<&TokenSource>) -> Result<TokenSource, Error> {
    source
        .map(Arc::clone)
        .ok_or_else(|| Error::misuse(format!("auth: {} is missing", option_name(name))))
}
