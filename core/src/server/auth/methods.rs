//! The methods that the core knows.

use std::{fmt, path::PathBuf, time::Duration};

use serde_json::{Value, json};

pub use crate::auth::server::authenticator::Dpop;
use crate::{auth::server::api_keys::digested, protocol::Principal};

/// Accepts access tokens that are JWTs of one issuer.
///
/// Signatures are verified with the issuer's keys, which are fetched when they are needed and kept. `exp` is required; `iss`
/// and `aud` have to be those of the issuer and of this server. Spec: Authorization › Access Token Usage; RFC 9068.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Jwt {
    /// The URL of the authorization server, exactly as tokens name it in `iss`.
    pub issuer: String,
    /// The accepted values of `aud`. Default: empty, the URL of this server.
    pub audience: Vec<String>,
    /// The URL of the issuer's key set. Default: the one in the issuer's metadata.
    pub jwks_url: Option<String>,
    /// The keys themselves, as a JSON Web Key Set.
    pub keys: Option<Value>,
    /// The accepted signature algorithms. Default: empty, all that are supported: RS256, RS384, RS512, PS256, PS384, PS512,
    /// ES256, ES384 and `EdDSA`.
    pub algorithms: Vec<String>,
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    /// The difference between clocks that is accepted. Default: 60 s.
    pub leeway: Duration,
    /// The use of tokens that are bound to a key. Default: [`Dpop::Supported`].
    pub dpop: Dpop,
}

/// Accepts opaque access tokens, which are verified at the introspection endpoint of their issuer (RFC 7662).
#[derive(Clone)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Introspection {
    /// The introspection endpoint.
    pub url: String,
    /// The credentials of this server there.
    pub client_id: String,
    pub client_secret: String,
    /// The URL of the authorization server, for clients that look for it. An answer with another `iss` is refused. Default:
    /// none, and no Protected Resource Metadata is served.
    pub issuer: Option<String>,
    /// The accepted values of `aud`, which the answer must have. Default: empty, the URL of this server, if the answer has
    /// `aud`.
    pub audience: Vec<String>,
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    /// The time for which an answer is kept. Default: 60 s.
    pub cache: Duration,
}

/// Accepts keys that the program gives out itself. The server keeps their SHA-256 only.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct ApiKeys {
    /// Each key, or `sha256:` and its SHA-256 in hexadecimal, with its owner.
    pub keys: Vec<(String, Principal)>,
    /// A file with the keys, in place of `keys`: a JSON object of keys, or `sha256:` and their digests, and their owners, each a
    /// subject or an object such as `{"subject": "ada", "scopes": ["read"]}`. It is read again within seconds after it has
    /// changed; if it can't be used then, the keys that were read before stay in use. Default: none.
    pub file: Option<PathBuf>,
    /// The header that keys come in, alone, such as `X-Api-Key`. Default: `Authorization`, after the word `Bearer`.
    pub header: Option<String>,
}

/// Lets MCP clients sign in by a provider at which they can't register themselves.
///
/// The server becomes an authorization server of its own: clients register at it or have a metadata document, users see a page
/// that asks whether the client may act for them, and then sign in at the provider. The tokens are the server's own, for its
/// URL only. Register an OAuth app at the provider, with the redirect URL `{URL of the server}/oauth/callback`.
///
/// Nothing is stored: client ids, codes and tokens are sealed with the server's `request_state_keys`, or else with a key made
/// from `client_secret` if that has at least 32 characters, so that restarts and replicas with the same key accept them.
///
/// ```
/// use gudgeon::{Server, server::auth::OAuthProxy};
///
/// let server = Server::new("shelf").options(|options| {
///     let google = OAuthProxy::new(|proxy| {
///         proxy.provider = "google".into();
///         proxy.client_id = Some("shelf.apps.googleusercontent.com".into());
///         proxy.client_secret = Some("s3cret".into());
///     });
///     options.http.auth = vec![google.into()];
/// });
/// ```
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct OAuthProxy {
    /// The URL of the provider (an `OpenID` Connect issuer), or the name of one that the core knows: `auth0`, `azure`,
    /// `clerk`, `cognito`, `descope`, `discord`, `entra`, `github`, `google`, `keycloak`, `okta`, `scalekit`, `supabase`,
    /// `workos`.
    pub provider: String,
    /// The options that a known provider needs: `domain` for `auth0`, `clerk`, `okta` and `workos`; `audience` for `auth0` and `keycloak`;
    /// `tenant_id` for `entra`; `user_pool_id` for `cognito`; `project_id` and `mcp_server_id` for `descope`; `realm_url` for
    /// `keycloak`; `environment_url` and `resource_id` for `scalekit`; `project_ref` for `supabase`.
    pub options: Vec<(String, String)>,
    /// The id of the OAuth app. Without it, MCP clients register at the provider themselves, and its tokens are verified:
    /// `auth0`, `clerk`, `descope`, `keycloak`, `scalekit` and `workos` can do that.
    pub client_id: Option<String>,
    /// The secret of the OAuth app, if it has one.
    pub client_secret: Option<String>,
    /// The provider's scopes that each sign-in asks for. Default: empty, those of the provider, or `openid`, `profile` and
    /// `email`.
    pub scopes: Vec<String>,
    /// The redirect URLs that clients may have; `*` at the end stands for the rest of a path. Default: empty, every URL with
    /// https, on a loopback address, or with a scheme of an app.
    pub allowed_redirects: Vec<String>,
}

crate::error::impl_new!(Jwt, Introspection, ApiKeys, OAuthProxy);

impl OAuthProxy {
    pub(super) fn declaration(&self) -> Value {
        let Self { provider, options, client_id, client_secret, .. } = self;
        let mut declaration = json!({
            "clientId": client_id,
            "clientSecret": client_secret,
            "scopes": given(&self.scopes),
            "allowedRedirects": given(&self.allowed_redirects),
        });
        if provider.contains("://") {
            declaration["kind"] = "proxy".into();
            declaration["provider"] = provider.as_str().into();
        } else {
            declaration["kind"] = "provider".into();
            declaration["name"] = provider.as_str().into();
        }
        let options = options.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        declaration["options"] = Value::Object(options.collect());
        declaration
    }
}

impl fmt::Debug for OAuthProxy {
    /// Leaves out the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthProxy").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl Jwt {
    pub(super) fn declaration(&self) -> Value {
        json!({
            "kind": "jwt",
            "issuer": self.issuer,
            "audience": given(&self.audience),
            "jwksUrl": self.jwks_url,
            "keys": self.keys,
            "algorithms": given(&self.algorithms),
            "scopes": self.scopes,
            "leeway": self.leeway.as_secs_f64(),
            "dpop": match self.dpop {
                Dpop::Off => json!(false),
                Dpop::Supported => json!(true),
                Dpop::Required => json!("required"),
                Dpop::WithNonce => json!("nonce"),
            },
        })
    }
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            audience: Vec::new(),
            jwks_url: None,
            keys: None,
            algorithms: Vec::new(),
            scopes: Vec::new(),
            leeway: Duration::from_secs(60),
            dpop: Dpop::default(),
        }
    }
}

impl Introspection {
    pub(super) fn declaration(&self) -> Value {
        json!({
            "kind": "introspection",
            "url": self.url,
            "clientId": self.client_id,
            "clientSecret": self.client_secret,
            "issuer": self.issuer,
            "audience": given(&self.audience),
            "scopes": self.scopes,
            "cache": self.cache.as_secs_f64(),
        })
    }
}

impl Default for Introspection {
    fn default() -> Self {
        Self {
            url: String::new(),
            client_id: String::new(),
            client_secret: String::new(),
            issuer: None,
            audience: Vec::new(),
            scopes: Vec::new(),
            cache: Duration::from_secs(60),
        }
    }
}

impl fmt::Debug for Introspection {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ApiKeys {
    pub(super) fn declaration(&self) -> Value {
        // An empty key stays empty, so that it is refused.
        let keys = self.keys.iter().map(|(key, owner)| match key.is_empty() {
            true => (String::new(), owner),
            false => (digested(key), owner),
        });
        let file = self.file.as_ref().map(|file| file.to_string_lossy());
        json!({ "kind": "apiKeys", "keys": keys.collect::<Vec<_>>(), "header": self.header, "file": file })
    }
}

impl fmt::Debug for ApiKeys {
    /// Leaves out the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeys of {}", self.keys.len())
    }
}

/// Returns a list that is not empty.
fn given(list: &[String]) -> Option<&[String]> {
    (!list.is_empty()).then_some(list)
}
