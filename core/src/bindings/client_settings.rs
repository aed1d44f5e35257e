//! The settings of a client, from the JSON of a binding.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

#[cfg(feature = "auth")]
use super::client_auth::GivenAuth;
use super::{client_operation::parse, client_roots};
use crate::{
    client::{Client, ClientBuilder, ClientOptions, ConfiguredTarget, Pem, Retry, Target},
    error::{Error, given::Problem},
    protocol::{Dialect, Implementation, Members, Raw, Revision, Root},
};

/// A time limit in milliseconds: absent, no limit (null), or a number.
pub(super) type Limit = Option<Option<f64>>;

/// The revisions that a client speaks; "auto" for all of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Revisions {
    One(String),
    Several(Vec<String>),
}

/// The settings of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientSettings {
    revision: Option<Revisions>,
    #[serde(default, deserialize_with = "limit")]
    timeout_ms: Limit,
    #[serde(default, deserialize_with = "limit")]
    max_timeout_ms: Limit,
    #[serde(default, deserialize_with = "limit")]
    connect_timeout_ms: Limit,
    client_info: Option<Implementation>,
    extensions: Option<Members<Raw>>,
    experimental: Option<Members<Raw>>,
    #[serde(rename = "roots")]
    given_roots: Option<Value>,
    #[serde(skip)]
    roots: Option<Vec<Root>>,
    max_message: Option<usize>,
    max_rounds: Option<usize>,
    allowed_url_schemes: Option<Vec<String>>,
    #[serde(default, deserialize_with = "ca")]
    ca: Option<Pem>,
    #[serde(default, deserialize_with = "certificate")]
    certificate: Option<(Pem, Pem)>,
    #[serde(default)]
    validate: bool,
    cache_results: Option<bool>,
    #[serde(default, deserialize_with = "retry")]
    retry: Retry,
    /// The credentials.
    #[cfg(feature = "auth")]
    pub(super) auth: Option<GivenAuth>,
    /// The registered callbacks: the names of their options.
    #[serde(default)]
    callbacks: Vec<String>,
}

impl ClientSettings {
    /// Reads the settings.
    pub fn parse(json: &[u8]) -> Result<Self, Problem> {
        let mut read: Self = parse("the client's options", json).map_err(Problem::not_allowed)?;
        read.roots = read.given_roots.take().as_ref().map(client_roots::read_all).transpose()?;
        Ok(read)
    }

    /// Returns a builder with these settings for a client of this server, without callbacks.
    pub fn builder_for(&self, place: &ConfiguredTarget) -> Result<ClientBuilder, Error> {
        Ok(place.configure(self.builder(place.target())?))
    }

    /// Returns a builder with these settings, without callbacks.
    pub fn builder(&self, target: Target) -> Result<ClientBuilder, Error> {
        let mut options = ClientOptions { validate: self.validate, ..ClientOptions::default() };
        let names = match &self.revision {
            Some(Revisions::One(name)) if name == "auto" => None,
            Some(Revisions::One(name)) => Some(std::slice::from_ref(name)),
            Some(Revisions::Several(names)) => Some(&names[..]),
            None => None,
        };
        // A dialect is given as the only name.
        match names {
            Some([name]) if name.parse::<Dialect>().is_ok() => {
                options.dialect = Some(name.parse()?);
            }
            Some(names) => options.revisions = Revision::named(names)?,
            None => (),
        }
        if let Some(timeout) = self.timeout_ms {
            options.timeout = time_limit(timeout);
        }
        if let Some(timeout) = self.connect_timeout_ms {
            options.connect_timeout = Some(time_limit(timeout).unwrap_or(Duration::MAX));
        }
        if let Some(timeout) = self.max_timeout_ms {
            options.max_timeout = time_limit(timeout);
        }
        options.info = self.client_info.clone().unwrap_or_default();
        options.capabilities.extensions.clone_from(&self.extensions);
        options.capabilities.experimental.clone_from(&self.experimental);
        options.roots.clone_from(&self.roots);
        options.max_message = self.max_message.unwrap_or(options.max_message);
        options.cache_results = self.cache_results.unwrap_or(options.cache_results);
        options.max_rounds = self.max_rounds.unwrap_or(options.max_rounds);
        if let Some(schemes) = &self.allowed_url_schemes {
            options.allowed_url_schemes.clone_from(schemes);
        }
        options.ca.clone_from(&self.ca);
        options.certificate.clone_from(&self.certificate);
        options.retry = self.retry;
        Ok(Client::builder(target).options(|defaults| *defaults = options))
    }

    /// Returns `true` if the callback is registered.
    pub fn has(&self, callback: &str) -> bool {
        self.callbacks.iter().any(|name| name == callback)
    }
}

/// Reads a limit that is given, null included.
pub(super) fn limit<'de, D: Deserializer<'de>>(it: D) -> Result<Limit, D::Error> {
    Option::<f64>::deserialize(it).map(Some)
}

/// A PEM file: a string is its path or its text, and the member `text` of an object always its text.
#[derive(Deserialize)]
#[serde(untagged)]
enum GivenPem {
    Any(String),
    Text { text: String },
}

impl From<GivenPem> for Pem {
    fn from(given: GivenPem) -> Self {
        match given {
            GivenPem::Any(text) => text.into(),
            GivenPem::Text { text } => text.into_bytes().into(),
        }
    }
}

fn ca<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Pem>, D::Error> {
    Ok(Option::<GivenPem>::deserialize(given)?.map(Into::into))
}

/// Reads `{"cert", "key"}`.
fn certificate<'de, D: Deserializer<'de>>(given: D) -> Result<Option<(Pem, Pem)>, D::Error> {
    #[derive(Deserialize)]
    struct Pair {
        cert: GivenPem,
        key: GivenPem,
    }
    Ok(Option::<Pair>::deserialize(given)?.map(|pair| (pair.cert.into(), pair.key.into())))
}

/// Reads limits for repeating requests: `"safe"` (the default), `"never"`, or `{"attempts"?, "deadlineMs"?, "onlySafe"?}`.
fn retry<'de, D: Deserializer<'de>>(it: D) -> Result<Retry, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Named(String),
        Limits(Limits),
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Limits {
        attempts: Option<u32>,
        #[serde(default, deserialize_with = "limit")]
        deadline_ms: Limit,
        only_safe: Option<bool>,
    }
    let default = Retry::default();
    match Given::deserialize(it)? {
        Given::Named(name) if name == "safe" => Ok(default),
        Given::Named(name) if name == "never" => Ok(Retry { attempts: 1, ..default }),
        Given::Named(name) => Err(D::Error::custom(format!("unknown retry {name:?}"))),
        Given::Limits(Limits { attempts, deadline_ms, only_safe }) => Ok(Retry {
            attempts: attempts.unwrap_or(default.attempts),
            deadline: deadline_ms.map_or(default.deadline, time_limit),
            only_safe: only_safe.unwrap_or(default.only_safe),
        }),
    }
}

/// A duration that exceeds the clock's range means no limit.
pub(super) fn time_limit(milliseconds: Option<f64>) -> Option<Duration> {
    milliseconds.and_then(|number| Duration::try_from_secs_f64(number.max(0.0) / 1000.0).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_beyond_the_clock_is_no_limit() {
        assert_eq!(time_limit(None), None);
        assert_eq!(time_limit(Some(1e300)), None);
        assert_eq!(time_limit(Some(1500.0)), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn retry_is_a_name_or_limits() {
        let default = Retry::default();
        for (given, expected) in [
            (r#""safe""#, default),
            (r#""never""#, Retry { attempts: 1, ..default }),
            (r#"{"attempts":3}"#, Retry { attempts: 3, ..default }),
            (
                r#"{"attempts":2,"deadlineMs":null,"onlySafe":false}"#,
                Retry { attempts: 2, deadline: None, only_safe: false },
            ),
            (
                r#"{"deadlineMs":1500}"#,
                Retry { deadline: Some(Duration::from_millis(1500)), ..default },
            ),
        ] {
            let settings = ClientSettings::parse(format!(r#"{{"retry":{given}}}"#).as_bytes());
            assert_eq!(settings.unwrap().retry, expected, "{given}");
        }
        for given in [r#""always""#, "3", r#"{"attempts":-1}"#, r#"{"tries":1}"#] {
            let settings = ClientSettings::parse(format!(r#"{{"retry":{given}}}"#).as_bytes());
            assert!(settings.is_err(), "{given}");
        }
    }

    #[test]
    fn certificates_are_paths_or_texts() {
        let json = br#"{"ca":{"text":"x"},"certificate":{"cert":"a.pem","key":"-----BEGIN A"}}"#;
        let settings = ClientSettings::parse(json).unwrap();
        assert_eq!(settings.ca, Some(Pem::Text(b"x".to_vec())));
        let pair = (Pem::File("a.pem".into()), Pem::Text(b"-----BEGIN A".to_vec()));
        assert_eq!(settings.certificate, Some(pair));
        assert!(!format!("{settings:?}").contains("BEGIN"));
    }

    #[test]
    fn unknown_revisions_and_members_are_refused() {
        assert!(ClientSettings::parse(br#"{"fly":1}"#).is_err());
        let settings =
            ClientSettings::parse(br#"{"revision":["2020-01-01"],"callbacks":["on_log"]}"#);
        let settings = settings.unwrap();
        assert!(settings.has("on_log") && !settings.has("on_elicit"));
        let target = Target::url("http://a/mcp").unwrap();
        assert!(settings.builder(target).is_err());
    }
}
