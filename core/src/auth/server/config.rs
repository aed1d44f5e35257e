//! The methods of a server, as its program configures them.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::HeaderMap;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};

use super::{
    api_keys::{self, ApiKeys},
    authenticator::{Authenticator, Dpop, Jwt, Method, VerifyReply},
    dpop_check::Nonces,
    introspection::Introspection,
    jwk::{Algorithm, Jwks},
    jwt::LEEWAY,
    keys::Keys,
    proxy_config::{ProviderConfig, ProxyConfig, ProxyKeys},
    resource::{Facts, Resource},
};
use crate::{
    auth::{Secret, fetch::check_url, scopes::ScopeHierarchy},
    error::{Error, option_name},
    protocol::{Principal, json},
    replier::Replier,
    store::StoreEngine,
};

/// The time that the answer of an introspection endpoint is kept.
const CACHE: f64 = 60.0;

/// The methods of a server.
pub struct AuthConfig {
    config: Config,
    verifier: OnceLock<Arc<dyn Verifier>>,
    store: OnceLock<Arc<dyn StoreEngine>>,
    /// The files that the keys of methods are from, with the places of these methods.
    files: Vec<(usize, PathBuf)>,
}

/// Functions of the host that verify tokens.
pub trait Verifier: Send + Sync {
    /// Calls the function with this place in the list of methods. Dropping `reply` refuses the request.
    fn verify(
        &self,
        method: usize,
        token: Secret,
        request: Arc<VerifiedRequest>,
        reply: Replier<VerifyReply>,
    );
}

/// The head of a request, for a function of the host.
#[derive(Debug)]
pub struct VerifiedRequest {
    pub method: http::Method,
    pub path: String,
    pub headers: HeaderMap,
    /// The address of the client, if it is known.
    pub remote: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    methods: Vec<MethodConfig>,
    #[serde(default)]
    scope_implies: BTreeMap<String, Vec<String>>,
}

/// A method, which JSON names in `kind`.
pub(super) enum MethodConfig {
    Jwt(JwtConfig),
    Introspection(IntrospectionConfig),
    ApiKeys(ApiKeysConfig),
    Provider(ProviderConfig),
    Proxy(ProxyConfig),
    Verify,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct JwtConfig {
    pub(super) issuer: String,
    pub(super) audience: Option<Vec<String>>,
    pub(super) jwks_url: Option<String>,
    pub(super) keys: Option<Value>,
    pub(super) algorithms: Option<Vec<String>>,
    pub(super) scopes: Vec<String>,
    pub(super) leeway: Option<f64>,
    pub(super) dpop: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct IntrospectionConfig {
    url: String,
    client_id: String,
    client_secret: Secret,
    issuer: Option<String>,
    audience: Option<Vec<String>>,
    #[serde(default)]
    scopes: Vec<String>,
    cache: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ApiKeysConfig {
    /// Pairs, because errors name a key by its place.
    keys: Vec<(String, Principal)>,
    header: Option<String>,
}

/// By hand, because serde's code for tagged enums is compiled for each of their fields.
impl<'de> Deserialize<'de> for MethodConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::<String, Value>::deserialize(deserializer)?;
        let kind = members.remove("kind");
        let members = Value::Object(members);
        let read = match kind.as_ref().and_then(Value::as_str) {
            Some("jwt") => json::from_value(&members).map(Self::Jwt),
            Some("introspection") => json::from_value(&members).map(Self::Introspection),
            Some("apiKeys") => json::from_value(&members).map(Self::ApiKeys),
            Some("provider") => json::from_value(&members).map(Self::Provider),
            Some("proxy") => json::from_value(&members).map(Self::Proxy),
            Some("verify") => Ok(Self::Verify),
            _ => return Err(D::Error::custom("the kind of the method is unknown")),
        };
        read.map_err(D::Error::custom)
    }
}

impl AuthConfig {
    /// Reads the configuration. Errors, with the fix, if a method can't work.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        // The text of serde's error may quote a secret.
        let config: Config = json::from_bytes(json).map_err(|error| {
            Error::misuse(format!(
                "auth can't be read at line {}, column {}",
                error.line(),
                error.column()
            ))
        })?;
        let mut config =
            Self { config, verifier: OnceLock::new(), store: OnceLock::new(), files: Vec::new() };
        if config.config.methods.is_empty() {
            return Err(Error::misuse("auth lists no method; leave it out to serve everybody"));
        }
        config.methods(ProxyKeys { shared: &[], own: &[] })?;
        config.forget_keys();
        Ok(config)
    }

    /// Sets the files that keys are from.
    #[must_use]
    pub(crate) fn with_files(self, files: Vec<(usize, PathBuf)>) -> Self {
        Self { files, ..self }
    }

    pub(crate) fn files(&self) -> &[(usize, PathBuf)] {
        &self.files
    }

    /// Replaces keys by their digests, which suffice from here on.
    fn forget_keys(&mut self) {
        for method in &mut self.config.methods {
            let MethodConfig::ApiKeys(ApiKeysConfig { keys, .. }) = method else { continue };
            for (key, _) in keys {
                *key = api_keys::digested(key);
            }
        }
    }

    /// Sets the functions of the host. A method `Verify` without them refuses everybody.
    pub fn set_verifier(&self, verifier: Arc<dyn Verifier>) {
        // A second one is of the same server.
        let _ = self.verifier.set(verifier);
    }

    pub fn verifier(&self) -> Option<&Arc<dyn Verifier>> {
        self.verifier.get()
    }

    /// Sets the store in which servers remember used proofs of possession together. Without it, each process remembers its own.
    pub fn set_store(&self, store: Arc<dyn StoreEngine>) {
        // A second one is of the same server.
        let _ = self.store.set(store);
    }

    pub fn store(&self) -> Option<&Arc<dyn StoreEngine>> {
        self.store.get()
    }

    /// Returns the machine. `keys` are those that the servers of one address share; without any, `seed` is the key of this
    /// process.
    pub fn authenticator(&self, keys: &[Vec<u8>], seed: &[u8]) -> Result<Authenticator, Error> {
        let hierarchy = ScopeHierarchy::new(self.config.scope_implies.clone());
        let nonces = match keys {
            [] => Nonces::new([seed]),
            keys => Nonces::new(keys),
        };
        let methods = self.methods(ProxyKeys { shared: keys, own: seed })?;
        let authenticator = Authenticator::new(methods, hierarchy).with_nonces(nonces);
        Ok(match self.store() {
            Some(_) => authenticator.with_store(),
            None => authenticator,
        })
    }

    /// Returns the rules by which the server finds its own identifier: its public URL, or else the first audience that is a URL.
    pub fn resource(&self, public_url: Option<&str>, path: Option<&str>) -> Resource {
        let audiences = self.config.methods.iter().filter_map(|method| match method {
            MethodConfig::Jwt(JwtConfig { audience, .. })
            | MethodConfig::Introspection(IntrospectionConfig { audience, .. }) => {
                audience.as_ref()
            }
            _ => None,
        });
        let url = audiences.flatten().find(|audience| check_url(audience).is_ok());
        Resource::new(public_url.or(url.map(String::as_str)), path)
    }

    /// Returns the facts of the document and of challenges, and whether challenges ask for bound tokens.
    pub fn facts(&self) -> Result<Facts, Error> {
        Ok(Authenticator::new(
            self.methods(ProxyKeys { shared: &[], own: &[] })?,
            ScopeHierarchy::default(),
        )
        .facts())
    }

    fn methods(&self, keys: ProxyKeys<'_>) -> Result<Vec<Method>, Error> {
        let methods: Vec<_> = self
            .config
            .methods
            .iter()
            .map(|config| config.method(keys))
            .collect::<Result<_, _>>()?;
        if methods.iter().filter(|method| matches!(method, Method::Proxy(_))).count() > 1 {
            return Err(Error::misuse("auth: a server has one OAuth proxy at most"));
        }
        Ok(methods)
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthConfig of {} methods", self.config.methods.len())
    }
}

impl MethodConfig {
    pub(super) fn method(&self, keys: ProxyKeys<'_>) -> Result<Method, Error> {
        Ok(match self {
            Self::Jwt(JwtConfig {
                issuer,
                audience,
                jwks_url,
                keys,
                algorithms,
                scopes,
                leeway,
                dpop,
            }) => {
                check_issuer("issuer", issuer)?;
                let keys = match (keys, jwks_url) {
                    (Some(_), Some(_)) => {
                        return Err(Error::misuse("auth: give keys or a URL of keys, not both"));
                    }
                    (Some(keys), None) => Keys::fixed(read_keys(keys)?),
                    (None, Some(url)) => {
                        check(&option_name("jwks_url"), url)?;
                        Keys::at(url)
                    }
                    (None, None) => Keys::of_issuer(issuer),
                };
                Method::Jwt(Box::new(Jwt {
                    issuer: issuer.clone(),
                    audiences: audiences(audience.as_ref())?,
                    keys,
                    algorithms: match algorithms {
                        None => Algorithm::all(),
                        Some(names) => read_algorithms(names)?,
                    },
                    leeway: leeway.map_or(LEEWAY, |leeway| seconds(leeway).as_secs()),
                    scopes: scopes.clone(),
                    dpop: dpop.as_ref().map_or(Ok(Dpop::Supported), read_dpop)?,
                }))
            }
            Self::Introspection(IntrospectionConfig {
                url,
                client_id,
                client_secret,
                issuer,
                audience,
                scopes,
                cache,
            }) => {
                check("url", url)?;
                if let Some(issuer) = issuer {
                    check_issuer("issuer", issuer)?;
                }
                let introspection = Introspection {
                    url: url.clone(),
                    client_id: client_id.clone(),
                    client_secret: client_secret.clone(),
                    audiences: audiences(audience.as_ref())?,
                    scopes: scopes.clone(),
                    cache: seconds(cache.unwrap_or(CACHE)),
                    leeway: LEEWAY,
                };
                Method::Introspection(Box::new(introspection), issuer.clone())
            }
            Self::ApiKeys(ApiKeysConfig { keys, header }) => {
                let header = header.as_deref().unwrap_or("Authorization");
                let keys = ApiKeys::new(header, keys.iter().cloned());
                Method::ApiKeys(keys.map_err(|error| Error::misuse(format!("auth: {error}")))?)
            }
            Self::Provider(provider) => provider.method(keys)?,
            Self::Proxy(proxy) => proxy.method(keys)?,
            Self::Verify => Method::Verify,
        })
    }
}

fn read_dpop(dpop: &Value) -> Result<Dpop, Error> {
    match dpop {
        Value::Bool(true) => Ok(Dpop::Supported),
        Value::Bool(false) => Ok(Dpop::Off),
        Value::String(name) if name == "required" => Ok(Dpop::Required),
        Value::String(name) if name == "nonce" => Ok(Dpop::WithNonce),
        other => Err(Error::misuse(format!(
            "auth: dpop must be true, false, \"required\" or \"nonce\", not {other}"
        ))),
    }
}

fn check(name: &str, url: &str) -> Result<(), Error> {
    check_url(url).map(drop).map_err(|error| Error::misuse(format!("auth: {name}: {error}")))
}

pub(super) fn check_issuer(name: &str, issuer: &str) -> Result<(), Error> {
    check(name, issuer)?;
    match issuer.contains('?') {
        true => Err(Error::misuse(format!("auth: {name}: an issuer has no query (RFC 8414)"))),
        false => Ok(()),
    }
}

fn audiences(audience: Option<&Vec<String>>) -> Result<Option<Vec<String>>, Error> {
    match audience {
        Some(all) if all.is_empty() || all.iter().any(String::is_empty) => {
            Err(Error::misuse("auth: audience is empty; leave it out for the URL of this server"))
        }
        audience => Ok(audience.cloned()),
    }
}

/// Reads a key set that the program gives: the set itself, or one key. Here every key has to be of use.
fn read_keys(keys: &Value) -> Result<Jwks, Error> {
    let set = match keys.get("keys") {
        Some(_) => keys.clone(),
        None => serde_json::json!({ "keys": [keys] }),
    };
    let count = set["keys"].as_array().map_or(0, Vec::len);
    let keys = Jwks::read(set.to_string().as_bytes())
        .map_err(|error| Error::misuse(format!("auth: keys: {error}")))?;
    match count > 0 && keys.len() == count {
        true => Ok(keys),
        false => Err(Error::misuse(
            "auth: keys must be a set of public keys (RFC 7517): RSA from 2048 bits, P-256, P-384 or Ed25519",
        )),
    }
}

fn read_algorithms(names: &[String]) -> Result<Vec<Algorithm>, Error> {
    let known = || Algorithm::all().into_iter().map(Algorithm::name).collect::<Vec<_>>().join(", ");
    let read = |name: &String| {
        Algorithm::named(name).ok_or_else(|| {
            Error::misuse(format!(
                "auth: algorithms: {name:?} is not accepted; choose one of {}",
                known()
            ))
        })
    };
    names.iter().map(read).collect()
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::from_secs(u32::MAX.into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use serde_json::json;

    use super::*;

    fn parse(method: &Value) -> Result<AuthConfig, Error> {
        AuthConfig::parse(json!({ "methods": [method] }).to_string().as_bytes())
    }

    #[test]
    fn an_issuer_is_enough() {
        let config = parse(&json!({ "kind": "jwt", "issuer": "https://as.example.com" })).unwrap();
        assert_eq!(config.facts().unwrap().issuers, ["https://as.example.com"]);
        config.authenticator(&[], b"key").unwrap();
        let all = json!({ "kind": "jwt", "issuer": "https://as.example.com/t", "audience": ["https://mcp.example.com"],
            "jwksUrl": "https://as.example.com/keys", "algorithms": ["ES256"], "scopes": ["a"], "leeway": 1.5,
            "dpop": "required" });
        let facts = parse(&all).unwrap().facts().unwrap();
        assert!(facts.needs_dpop && facts.scopes == ["a"]);
    }

    #[test]
    fn methods_that_can_not_work_are_refused_with_the_fix() {
        let jwt = |changes: Value| {
            let mut method = json!({ "kind": "jwt", "issuer": "https://as.example.com" });
            for (name, value) in changes.as_object().unwrap() {
                method[name] = value.clone();
            }
            method
        };
        for (method, reason) in [
            (jwt(json!({ "issuer": "http://as.example.com" })), "use https"),
            (jwt(json!({ "issuer": "as.example.com" })), "absolute"),
            (jwt(json!({ "issuer": "https://as.example.com?a" })), "no query"),
            (jwt(json!({ "jwksUrl": "http://as.example.com/keys" })), "use https"),
            (jwt(json!({ "algorithms": ["HS256"] })), "choose one of RS256"),
            (jwt(json!({ "algorithms": ["none"] })), "not accepted"),
            (jwt(json!({ "audience": [] })), "audience is empty"),
            (jwt(json!({ "audience": [""] })), "audience is empty"),
            (jwt(json!({ "dpop": "always" })), "\"required\""),
            (jwt(json!({ "keys": { "kty": "oct", "k": "s3cret" } })), "public keys"),
            (jwt(json!({ "keys": { "keys": [] } })), "public keys"),
            (jwt(json!({ "keys": {}, "jwksUrl": "https://as.example.com/k" })), "not both"),
            (jwt(json!({ "more": "s3cret" })), "can't be read"),
            (json!({ "kind": "apiKeys", "keys": [["", { "subject": "a" }]] }), "key 1 is empty"),
            (
                json!({ "kind": "introspection", "url": "http://a.example", "clientId": "a", "clientSecret": "s3cret" }),
                "use https",
            ),
        ] {
            let error = parse(&method).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}, not {reason}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(AuthConfig::parse(br#"{"methods":[]}"#).is_err());
        let keys = json!({ "kind": "apiKeys", "keys": [["s3cret", { "subject": "a" }]] });
        assert!(!format!("{:?}", parse(&keys).unwrap()).contains("s3cret"));
    }

    #[test]
    fn keys_are_kept_as_digests_only() {
        let keys = json!({ "kind": "apiKeys", "keys": [["s3cret", { "subject": "a" }]] });
        let config = parse(&keys).unwrap();
        let MethodConfig::ApiKeys(ApiKeysConfig { keys, .. }) = &config.config.methods[0] else {
            panic!()
        };
        assert!(keys[0].0.starts_with("sha256:") && !keys[0].0.contains("s3cret"));
        let [Method::ApiKeys(keys)] =
            &config.methods(ProxyKeys { shared: &[], own: &[] }).unwrap()[..]
        else {
            panic!()
        };
        assert_eq!(keys.owner("s3cret").unwrap().subject, "a");
        assert!(keys.owner(&config_key(&config)).is_none());
    }

    fn config_key(config: &AuthConfig) -> String {
        match &config.config.methods[0] {
            MethodConfig::ApiKeys(ApiKeysConfig { keys, .. }) => keys[0].0.clone(),
            _ => panic!("another method"),
        }
    }
}
