//! The methods with a provider, as a program configures them: a known provider, or an OAuth proxy in front of one.

use serde::Deserialize;

use super::{
    authenticator::Method,
    config::{MethodConfig, check_issuer},
    providers::{self, Chosen, ClientOptions, Options},
};
use crate::{
    auth::{
        Secret,
        authorization_server::proxy::{OAuthProxy, ProviderPlace, ProviderSettings},
        metadata::split,
    },
    error::{Error, option_name},
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
    provider: ProviderOption,
    client_id: Option<String>,
    client_secret: Option<Secret>,
    scopes: Option<Vec<String>>,
    allowed_redirects: Option<Vec<String>>,
}

/// The URL of an issuer, or another method that names one.
#[derive(Deserialize)]
#[serde(untagged)]
enum ProviderOption {
    Issuer(String),
    Method(Box<MethodConfig>),
}

/// The keys by which a proxy seals what it issues.
#[derive(Clone, Copy)]
pub(super) struct ProxyKeys<'a> {
    /// Those that the servers of one address share.
    pub(super) shared: &'a [Vec<u8>],
    /// The key of this process, if there is no other.
    pub(super) own: &'a [u8],
}

impl ProviderConfig {
    pub(super) fn method(&self, keys: ProxyKeys<'_>) -> Result<Method, Error> {
        let client = ClientOptions {
            id: self.client_id.clone(),
            secret: self.client_secret.clone(),
            scopes: self.scopes.clone(),
        };
        match providers::choose(&self.name, &self.options, client)? {
            Chosen::Direct { issuer, audiences } => {
                let scopes = self.scopes.clone().unwrap_or_default();
                MethodConfig::jwt(issuer, audiences, scopes).method(keys)
            }
            Chosen::Proxy(provider) => proxy(*provider, self.allowed_redirects.as_deref(), keys),
        }
    }
}

impl ProxyConfig {
    pub(super) fn method(&self, keys: ProxyKeys<'_>) -> Result<Method, Error> {
        let client = ClientOptions {
            id: self.client_id.clone(),
            secret: self.client_secret.clone(),
            scopes: self.scopes.clone(),
        };
        let provider = match &self.provider {
            ProviderOption::Issuer(issuer) => providers::issuer(issuer, client),
            ProviderOption::Method(method) => match &**method {
                MethodConfig::Jwt { issuer, .. } => providers::issuer(issuer, client),
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
    for allowed in allowed_redirects.into_iter().flatten() {
        let start = allowed.strip_suffix('*').unwrap_or(allowed);
        let has_path = split(start).is_some_and(|(_, path)| path.starts_with('/'));
        if start.contains('*') || (allowed.ends_with('*') && !has_path) {
            return Err(Error::misuse(format!(
                "auth: {}: {allowed:?}: * may stand for the end of a path only, as in \"https://app.example.com/*\"",
                option_name("allowed_redirects")
            )));
        }
    }
    let ProxyKeys { shared, own } = keys;
    let allowed_redirects = allowed_redirects.map(<[_]>::to_vec);
    Ok(Method::Proxy(Box::new(OAuthProxy::new(provider, allowed_redirects, shared, own))))
}
