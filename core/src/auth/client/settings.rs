//! The settings of a sign-in.

use std::{fmt, sync::Arc, time::Duration};

use crate::{
    auth::{Secret, jwt_signing::SigningKey, metadata::ServerMetadata},
    error::Error,
};

/// The settings of a sign-in.
#[derive(Clone, Debug)]
pub struct SignInSettings {
    pub grant: Grant,
    /// Scopes that are requested in addition to those that the server asks for.
    pub scopes: Vec<String>,
    /// True if tokens must be bound to a key of this client.
    pub dpop: bool,
    /// The name that the authorization server shows to the user.
    pub client_name: String,
    /// The name of the store, for errors.
    pub store: String,
    /// The time limit for the user to sign in.
    pub user_timeout: Duration,
}

/// The way in which a client gets a token.
#[derive(Clone, Debug)]
pub enum Grant {
    /// The user signs in with a browser.
    AuthorizationCode {
        /// The client as it was registered beforehand.
        client: Option<RegisteredClient>,
        /// The URL of the client's metadata document, which is its id where the authorization server supports that.
        metadata_url: Option<String>,
        /// The port of the redirect URL; 0 for any.
        port: u16,
    },
    /// The client acts for itself.
    ClientCredentials(RegisteredClient),
    /// The identity provider of an organisation decides: it exchanges the user's identity token for a grant.
    EnterpriseManaged {
        client: RegisteredClient,
        /// The issuer of the identity provider.
        idp: String,
        /// The client as the identity provider knows it.
        idp_client: RegisteredClient,
    },
    /// A token of the platform that the client runs on is exchanged.
    WorkloadIdentity {
        client_id: Option<String>,
        /// The only authorization server that gets the token; `None`: the first to which it is sent.
        issuer: Option<String>,
    },
}

/// A client that is known to an authorization server.
#[derive(Clone, Debug)]
pub struct RegisteredClient {
    pub id: String,
    pub secret: Option<Secret>,
    pub key: Option<ClientKey>,
    /// The authorization server that knows the client; `None`: the first to which it is sent.
    pub issuer: Option<String>,
}

/// A private key by which a client authenticates.
#[derive(Clone)]
pub struct ClientKey(pub(super) Arc<SigningKey>);

impl ClientKey {
    /// Reads a private key in PKCS#8, as PEM. Errors if the key does not fit the algorithm, such as `ES256`.
    pub fn from_pem(pem: &str, algorithm: &str) -> Result<Self, Error> {
        SigningKey::from_pem(pem, algorithm).map(|key| Self(Arc::new(key)))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl RegisteredClient {
    /// Creates a client with an id only.
    pub fn public(id: impl Into<String>) -> Self {
        Self { id: id.into(), secret: None, key: None, issuer: None }
    }

    /// Creates a client with a secret.
    pub fn with_secret(id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        Self { secret: Some(secret.into()), ..Self::public(id) }
    }
}

impl Grant {
    /// Returns whether a user takes part.
    pub fn is_interactive(&self) -> bool {
        matches!(self, Self::AuthorizationCode { .. })
    }

    /// Returns whether the program gave credentials, which one authorization server only may get.
    pub(super) fn has_credentials(&self) -> bool {
        !matches!(self, Self::AuthorizationCode { client: None, .. })
    }

    /// Returns the only authorization server that may get the credentials, if the program named one.
    pub(super) fn issuer(&self) -> Option<&str> {
        match self {
            Self::AuthorizationCode { client, .. } => client.as_ref()?.issuer.as_deref(),
            Self::ClientCredentials(client) | Self::EnterpriseManaged { client, .. } => {
                client.issuer.as_deref()
            }
            Self::WorkloadIdentity { issuer, .. } => issuer.as_deref(),
        }
    }

    /// Returns the issuer of the identity provider that the program named.
    pub(super) fn provider(&self) -> Option<&str> {
        match self {
            Self::EnterpriseManaged { idp, .. } => Some(idp),
            _ => None,
        }
    }

    /// Returns the client's id that the program gave.
    pub(super) fn given_id(&self) -> Option<&str> {
        match self {
            Self::AuthorizationCode { client, .. } => client.as_ref().map(|client| &*client.id),
            Self::ClientCredentials(client) | Self::EnterpriseManaged { client, .. } => {
                Some(&client.id)
            }
            Self::WorkloadIdentity { client_id, .. } => client_id.as_deref(),
        }
    }

    /// Returns the client's id at an authorization server, unless it comes from dynamic registration.
    pub(super) fn client_id(&self, server: &ServerMetadata) -> Option<&str> {
        self.given_id().or_else(|| match self {
            Self::AuthorizationCode { metadata_url, .. } => {
                metadata_url.as_deref().filter(|_| server.client_id_metadata_document_supported)
            }
            _ => None,
        })
    }
}
