//! The credentials of a client for a server over HTTP.

use std::{fmt, sync::Arc};

use super::ClientOptions;
pub use crate::{
    auth::{
        Secret,
        client::{ClientKey, Grant, RegisteredClient},
    },
    transport::sign_in::{Boxed, SignInOptions, Store, TokenSource, TokenStore, UrlCallback},
};
use crate::{
    error::Error,
    protocol::{ClientCapabilities, Members, json},
    transport::{Scheme, Url, proxy::ProxyEnvironment, sign_in::Authorizer},
};

/// The credentials of a client.
#[derive(Clone)]
pub enum Auth {
    /// An access token.
    Token(Secret),
    /// A function that returns an access token, and is called again once the server rejects it.
    Source(TokenSource),
    /// The client signs in by itself.
    SignIn(Box<SignInOptions>),
}

impl Auth {
    /// Signs in with the user's browser, as a client that registers itself.
    pub fn oauth() -> Self {
        let grant = Grant::AuthorizationCode { client: None, metadata_url: None, port: 0 };
        Self::SignIn(Box::new(SignInOptions::new(grant)))
    }

    /// Adds the extension that defines the credentials to a client's capabilities, unless the program has declared it.
    pub(super) fn declare(&self, capabilities: &mut ClientCapabilities) {
        let Self::SignIn(sign_in) = self else { return };
        let Some(extension) = sign_in.grant.extension() else { return };
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
        proxies: &ProxyEnvironment,
    ) -> Result<Arc<Authorizer>, Error> {
        let url = url.filter(|it| matches!(it.scheme(), Scheme::Http | Scheme::Https));
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
        Ok(Arc::new(match self {
            Self::Token(token) => Authorizer::of_token(token.expose())?,
            Self::Source(source) => Authorizer::of_source(Arc::clone(source)),
            Self::SignIn(sign_in) => {
                let mut sign_in = (**sign_in).clone();
                let name = &options.info.name;
                sign_in.client_name =
                    sign_in.client_name.or_else(|| Some(name.clone()).filter(|it| !it.is_empty()));
                let target = url.without_query();
                // The canonical form has no slash without a path.
                let target = match target.strip_suffix('/') {
                    Some(origin) if url.path().split('?').next() == Some("/") => origin,
                    _ => &target,
                };
                Authorizer::of_sign_in(target, sign_in, proxies.clone())
            }
        }))
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token(…)",
            Self::Source(_) => "Source(…)",
            Self::SignIn(_) => "SignIn(…)",
        })
    }
}
