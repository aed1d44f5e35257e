//! The methods with a provider, as a program configures them: a known provider, or an OAuth proxy in front of one.

use serde::Deserialize;
use serde_json::Value;

use super::{
    authenticator::Method,
    config::{JwtConfig, MethodConfig, check_issuer},
    providers::{self, Chosen, ClientOptions, Options},
};
use crate::{
    auth::{
        Secret,
        authorization_server::proxy::{OAuthProxy, ProviderPlace, ProviderSettings, is_long},
        metadata::split,
    },
    error::{Error, option_name},
    protocol::json,
};

/// A provider of the table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProviderConfig {
    name: String,
    #[serde(default)]
    options: Options,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    scopes: Option<Vec<String>>,
    allowed_redirects: Option<Vec<String>>,
}

/// An OAuth proxy in front of a provider.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProxyConfig {
    /// The URL of an issuer, or another method that names one.
    provider: Value,
    #[serde(default)]
    options: Options,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    scopes: Option<Vec<String>>,
    allowed_redirects: Option<Vec<String>>,
}

/// The keys by which a proxy seals what it issues.
#[derive(Clone, Copy)]
pub(super) struct ProxyKeys<'a> {
    /// The keys that the servers of one address share.
    pub(super) shared: &'a [Vec<u8>],
    /// The key of this process, if there is no other.
    pub(super) own: &'a [u8],
}

impl ProviderConfig {
    pub(super) fn method(&self, keys: ProxyKeys<'_>) -> Result<Method, Error> {
        let client = ClientOptions::new(
            self.client_id.as_ref(),
            self.client_secret.as_ref(),
            self.scopes.as_ref(),
        );
        match providers::choose(&self.name, &self.options, client)? {
            Chosen::Direct { .. }
                if self.client_secret.is_some() || self.allowed_redirects.is_some() =>
            {
                Err(Error::misuse(format!(
                    "auth: {}: {} and {} are for an OAuth proxy, which needs {}",
                    self.name,
                    option_name("client_secret"),
                    option_name("allowed_redirects"),
                    option_name("client_id")
                )))
            }
            Chosen::Direct { issuer, audiences } => {
                let scopes = self.scopes.clone().unwrap_or_default();
                let config =
                    JwtConfig { issuer, audience: audiences, scopes, ..JwtConfig::default() };
                MethodConfig::Jwt(config).method(keys)
            }
            Chosen::Proxy(provider) => proxy(*provider, self.allowed_redirects.as_deref(), keys),
        }
    }

    /// Returns whether the configuration has options of an OAuth proxy.
    fn has_client(&self) -> bool {
        self.client_id.is_some()
            || self.client_secret.is_some()
            || self.scopes.is_some()
            || self.allowed_redirects.is_some()
    }
}

impl ProxyConfig {
    pub(super) fn method(&self, keys: ProxyKeys<'_>) -> Result<Method, Error> {
        let client = ClientOptions::new(
            self.client_id.as_ref(),
            self.client_secret.as_ref(),
            self.scopes.as_ref(),
        );
        if let Some(option) = self.options.keys().next() {
            return Err(Error::misuse(format!(
                "auth: {option} is an option of a known provider, and this one is given by its URL"
            )));
        }
        let method = |config: &Value| {
            let method = json::from_value::<MethodConfig>(config);
            // The text of serde's error may quote a secret.
            method.map_err(|_| Error::misuse("auth: the provider can't be read"))
        };
        let provider = match &self.provider {
            Value::String(issuer) => providers::issuer(issuer, client),
            other => match &method(other)? {
                MethodConfig::Jwt(JwtConfig { issuer, audience, scopes, .. }) => {
                    if audience.is_some() || !scopes.is_empty() {
                        return Err(Error::misuse(
                            "auth: the provider of an OAuth proxy has neither audience nor scopes; give scopes to the proxy",
                        ));
                    }
                    providers::issuer(issuer, client)
                }
                MethodConfig::Provider(inner) if inner.has_client() => Err(Error::misuse(format!(
                    "auth: the provider {} of an OAuth proxy takes only what names the provider; give the rest to the proxy",
                    inner.name
                ))),
                MethodConfig::Provider(ProviderConfig { name, options, .. }) => {
                    match providers::choose(name, options, client)? {
                        Chosen::Proxy(provider) => Ok(*provider),
                        Chosen::Direct { .. } => Err(Error::misuse(format!(
                            "auth: MCP clients register at {name} themselves; use it without a proxy"
                        ))),
                    }
                }
                _ => Err(Error::misuse(
                    "auth: the provider of an OAuth proxy must be the URL of an issuer, or a method with one",
                )),
            },
        };
        proxy(provider?, self.allowed_redirects.as_deref(), keys)
    }
}

/// Returns the method of an OAuth proxy. Errors, with the fix, if its settings can't work.
fn proxy(
    provider: ProviderSettings,
    allowed_redirects: Option<&[String]>,
    keys: ProxyKeys<'_>,
) -> Result<Method, Error> {
    if let ProviderPlace::Issuer(issuer) = &provider.place {
        check_issuer("issuer", issuer)?;
    }
    if provider.client_id.is_empty() {
        return Err(Error::misuse(format!("auth: {} is empty", option_name("client_id"))));
    }
    if allowed_redirects.is_some_and(<[_]>::is_empty) {
        return Err(Error::misuse(format!(
            "auth: {} is empty, so that no client could sign in; leave it out to allow all that are safe",
            option_name("allowed_redirects")
        )));
    }
    for allowed in allowed_redirects.into_iter().flatten() {
        let start = allowed.strip_suffix('*').unwrap_or(allowed);
        let has_path = split(start)
            .is_some_and(|(origin, path)| !origin.contains('@') && path.starts_with('/'));
        if start.contains('*') || (allowed.ends_with('*') && !has_path) {
            return Err(Error::misuse(format!(
                "auth: {}: {allowed:?}: * may stand for the end of a path only, as in \"https://app.example.com/*\"",
                option_name("allowed_redirects")
            )));
        }
    }
    let ProxyKeys { shared, own } = keys;
    let is_lasting = !shared.is_empty() || provider.client_secret.as_ref().is_some_and(is_long);
    // Without a key of its own, the settings are only checked.
    if !is_lasting && !own.is_empty() {
        tracing::warn!(
            "the OAuth proxy seals sign-ins with a key of this process, so that they end with it: set {}",
            option_name("request_state_keys")
        );
    }
    let allowed_redirects = allowed_redirects.map(<[_]>::to_vec);
    Ok(Method::Proxy(Box::new(OAuthProxy::new(provider, allowed_redirects, shared, own))))
}
