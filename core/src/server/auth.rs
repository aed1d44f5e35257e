//! Authentication of callers over HTTP, for [`HttpOptions::auth`](super::HttpOptions::auth). Spec: Basic › Authorization.
//!
//! ```
//! use gudgeon::{Server, server::auth::Jwt};
//!
//! let server = Server::new("shelf").options(|options| {
//!     let tokens = Jwt::new(|jwt| jwt.issuer = "https://login.example.com".into());
//!     options.http.auth = vec![tokens.into()];
//! });
//! ```

mod methods;
mod verify;

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Value, json};

use self::verify::{Function, Functions};
pub use self::{
    methods::{ApiKeys, Dpop, Introspection, Jwt, OAuthProxy},
    verify::VerifyError,
};
pub use crate::auth::server::config::VerifiedRequest as RequestHead;
use crate::{
    auth::server::config::AuthConfig, driver::auth_config, error::Error, protocol::Principal,
};

/// A method by which callers are authenticated.
///
/// The URL of an authorization server is a method, too: its JWTs are accepted, as with [`Jwt`].
#[derive(Clone)]
pub struct Auth {
    /// The method, as [`AuthConfig::parse`] reads it.
    declaration: Value,
    function: Option<Function>,
}

impl Auth {
    /// Creates a method that calls a function with the token and the head of each request, and once for a WebSocket. The
    /// function returns `None` for a token that it does not know. An error `Failed`, a panic, or no reply within 15 s is
    /// answered with 500. Tokens with the scheme `DPoP` are refused.
    ///
    /// ```
    /// use gudgeon::{protocol::Principal, server::auth::Auth};
    ///
    /// let auth = Auth::verify(|token, _request| async move {
    ///     Ok((token == "s3cret").then(|| Principal::new("ada")))
    /// });
    /// ```
    pub fn verify<F, Fut>(verify: F) -> Self
    where
        F: Fn(String, Arc<RequestHead>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Principal>, VerifyError>> + Send + 'static,
    {
        let function: Function = Arc::new(move |token, request| Box::pin(verify(token, request)));
        Self { declaration: json!({ "kind": "verify" }), function: Some(function) }
    }

    fn declared(declaration: Value) -> Self {
        Self { declaration, function: None }
    }
}

impl From<&str> for Auth {
    fn from(issuer: &str) -> Self {
        Jwt { issuer: issuer.into(), ..Jwt::default() }.into()
    }
}

impl From<Jwt> for Auth {
    fn from(method: Jwt) -> Self {
        Self::declared(method.declaration())
    }
}

impl From<Introspection> for Auth {
    fn from(method: Introspection) -> Self {
        Self::declared(method.declaration())
    }
}

impl From<ApiKeys> for Auth {
    fn from(method: ApiKeys) -> Self {
        Self::declared(method.declaration())
    }
}

impl From<OAuthProxy> for Auth {
    fn from(method: OAuthProxy) -> Self {
        Self::declared(method.declaration())
    }
}

impl fmt::Debug for Auth {
    /// Shows the kind only, because the rest has secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Auth({})", self.declaration["kind"].as_str().unwrap_or_default())
    }
}

/// Returns the configuration of these methods; `None` without any. Errors, with the fix, if one can't work.
pub(super) fn config(
    methods: &[Auth],
    scope_implies: &BTreeMap<String, Vec<String>>,
) -> Result<Option<Arc<AuthConfig>>, Error> {
    if methods.is_empty() {
        return Ok(None);
    }
    let declarations: Vec<_> = methods.iter().map(|method| &method.declaration).collect();
    let config = json!({ "methods": declarations, "scopeImplies": scope_implies });
    let config = auth_config(config.to_string().as_bytes())?;
    let functions: Vec<_> = methods.iter().map(|method| method.function.clone()).collect();
    config.set_verifier(Arc::new(Functions(functions)));
    Ok(Some(Arc::new(config)))
}
