//! The credentials of a client for a server over HTTP, for [`ClientOptions::auth`]. Spec: Basic › Authorization.
//!
//! ```no_run
//! use gudgeon::{
//!     Client,
//!     client::{Target, auth::{OAuth, Store}},
//! };
//!
//! # async fn sign_in() -> Result<(), gudgeon::Error> {
//! let auth = OAuth::new(|oauth| oauth.store = Store::File("tokens.json".into()));
//! let client = Client::builder(Target::url("https://shelf.example.com/mcp")?)
//!     .options(|options| options.auth = Some(auth.into()))
//!     .connect()
//!     .await?;
//! # Ok(())
//! # }
//! ```

mod credentials;

use std::{fmt, sync::Arc};

pub use self::credentials::{ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity};
use super::ClientOptions;
pub use crate::transport::sign_in::{BoxFuture, Store, TokenSource, TokenStore};
use crate::{
    error::Error,
    protocol::{ClientCapabilities, Members, json},
    transport::{
        Scheme, Url,
        network::Network,
        sign_in::{Authorizer, OnStep},
    },
};

/// The credentials of a client.
///
/// They are sent to the origin of the server's URL only, and no log or error shows them.
#[derive(Clone)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Auth {
    /// An access token.
    Token(String),
    /// A function that returns an access token, and is called again once the server rejects that.
    Source(TokenSource),
    /// The user signs in with a browser.
    OAuth(OAuth),
    /// The program acts for itself.
    ClientCredentials(ClientCredentials),
    /// The identity provider of an organisation decides.
    EnterpriseManaged(EnterpriseManaged),
    /// A token of the platform that the program runs on is exchanged.
    WorkloadIdentity(WorkloadIdentity),
}

impl Auth {
    /// Errors if the credentials can't work, such as a key that can't be read.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Token(_) | Self::Source(_) => Ok(()),
            Self::OAuth(it) => it.sign_in().map(drop),
            Self::ClientCredentials(it) => it.sign_in().map(drop),
            Self::EnterpriseManaged(it) => it.sign_in().map(drop),
            Self::WorkloadIdentity(it) => it.sign_in().map(drop),
        }
    }

    /// Returns the identifier of the extension that defines the grant; clients declare the extensions that they use
    /// (Extensions, "Negotiation").
    fn extension(&self) -> Option<&'static str> {
        match self {
            Self::ClientCredentials(_) => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Self::EnterpriseManaged(_) => {
                Some("io.modelcontextprotocol/enterprise-managed-authorization")
            }
            Self::Token(_) | Self::Source(_) | Self::OAuth(_) | Self::WorkloadIdentity(_) => None,
        }
    }

    /// Adds the extension that defines the credentials to a client's capabilities, unless the program has declared it.
    pub(super) fn declare(&self, capabilities: &mut ClientCapabilities) {
        let Some(extension) = self.extension() else { return };
        let extensions = capabilities.extensions.get_or_insert_with(|| Members(Vec::new()));
        if extensions.get(extension).is_none() {
            extensions.0.push((extension.into(), json::raw("{}".into())));
        }
    }

    /// Returns the authorizer of the requests to a URL. Errors if the URL is not `http` or `https`, or if the headers
    /// already have `Authorization`.
    pub(super) fn authorizer(
        &self,
        url: Option<&Url>,
        options: &ClientOptions,
        network: &Network,
        on_step: Option<OnStep>,
    ) -> Result<Arc<Authorizer>, Error> {
        let url = url.filter(|url| matches!(url.scheme(), Scheme::Http | Scheme::Https));
        let url = url.ok_or_else(|| {
            Error::misuse(
                "auth: the server is not at an http or https URL, so no credentials can be sent",
            )
            .with_hint("pass credentials in the environment of a command")
        })?;
        if options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            return Err(Error::misuse(
                "auth: headers has Authorization as well; leave one of them out",
            ));
        }
        let mut sign_in = match self {
            Self::Token(token) => return Authorizer::of_token(token).map(Arc::new),
            Self::Source(source) => return Ok(Arc::new(Authorizer::of_source(Arc::clone(source)))),
            Self::OAuth(it) => it.sign_in()?,
            Self::ClientCredentials(it) => it.sign_in()?,
            Self::EnterpriseManaged(it) => it.sign_in()?,
            Self::WorkloadIdentity(it) => it.sign_in()?,
        };
        sign_in.on_step = on_step;
        sign_in.client_name = Some(options.info.name.clone()).filter(|name| !name.is_empty());
        Ok(Arc::new(Authorizer::of_sign_in(&resource(url), sign_in, network.clone())))
    }
}

/// Returns the URL by which the tokens of a server are stored.
#[cfg(feature = "bindings")]
#[doc(hidden)] // For the command line.
pub fn stored_as(url: &Url) -> String {
    resource(url)
}

/// Returns the URL of a server in its canonical form, which has no slash without a path.
fn resource(url: &Url) -> String {
    let target = url.without_query();
    match target.strip_suffix('/') {
        Some(origin) if url.path().split('?').next() == Some("/") => origin.to_owned(),
        _ => target,
    }
}

/// An access token; `"oauth"` stands for [`OAuth`] with its default options.
///
/// ```
/// use gudgeon::{Client, client::auth::Auth};
///
/// let client =
///     Client::builder("https://shelf.example.com/mcp").options(|options| options.auth = Some("s3cret".into()));
/// assert!(matches!(Auth::from("oauth"), Auth::OAuth(_)));
/// ```
impl From<&str> for Auth {
    fn from(token: &str) -> Self {
        String::from(token).into()
    }
}

/// An access token, like that of a `&str`.
impl From<String> for Auth {
    fn from(token: String) -> Self {
        match &*token {
            "oauth" => Self::OAuth(OAuth::default()),
            _ => Self::Token(token),
        }
    }
}

impl From<OAuth> for Auth {
    fn from(auth: OAuth) -> Self {
        Self::OAuth(auth)
    }
}

impl From<ClientCredentials> for Auth {
    fn from(auth: ClientCredentials) -> Self {
        Self::ClientCredentials(auth)
    }
}

impl From<EnterpriseManaged> for Auth {
    fn from(auth: EnterpriseManaged) -> Self {
        Self::EnterpriseManaged(auth)
    }
}

impl From<WorkloadIdentity> for Auth {
    fn from(auth: WorkloadIdentity) -> Self {
        Self::WorkloadIdentity(auth)
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(_) => f.write_str("Token(…)"),
            Self::Source(_) => f.write_str("Source(…)"),
            Self::OAuth(it) => it.fmt(f),
            Self::ClientCredentials(it) => it.fmt(f),
            Self::EnterpriseManaged(it) => it.fmt(f),
            Self::WorkloadIdentity(it) => it.fmt(f),
        }
    }
}
