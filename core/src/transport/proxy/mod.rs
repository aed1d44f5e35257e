//! HTTP proxies, which environment variables name.

mod environment;
mod exceptions;

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, StatusCode};
use percent_encoding::percent_decode_str;

pub(crate) use self::environment::ProxyEnvironment;
use super::{Scheme, Url};
use crate::error::{Error, ErrorKind};

/// A proxy that speaks HTTP/1.1, over TLS if its scheme is `https`.
///
/// `Display` shows its address and the variable, but not the user name and the password.
#[derive(Clone)]
pub(crate) struct Proxy {
    url: Url,
    /// The value of `Proxy-Authorization`.
    authorization: Option<HeaderValue>,
    /// The name of the environment variable that the proxy comes from.
    variable: &'static str,
}

impl Proxy {
    /// Parses `[http[s]://][user[:password]@]host[:port]`. Errors name the variable and never show the value, which may
    /// contain a password.
    pub(super) fn parse(value: &str, variable: &'static str) -> Result<Self, Error> {
        let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
        let Some(scheme @ (Scheme::Http | Scheme::Https)) = Scheme::named(scheme) else {
            return Err(unsupported(scheme, variable));
        };
        // A password may contain a slash or `@` that is not percent-encoded.
        let (credentials, address) = match rest.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, rest),
        };
        let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
        let url = Url::parse(&format!("{}://{authority}", scheme.name()));
        let url = url.map_err(|_| invalid(variable))?;
        let authorization =
            credentials.filter(|credentials| !credentials.is_empty()).map(basic).transpose();
        let authorization = authorization.map_err(|_| invalid(variable))?;
        Ok(Self { url, authorization, variable })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the value of `Proxy-Authorization`, if the proxy's URL contains credentials.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Returns whether the proxy reads and forwards the requests for `url`. Otherwise it relays bytes through a tunnel.
    pub(crate) fn forwards(url: &Url) -> bool {
        url.scheme() == Scheme::Http
    }

    /// Returns the error of a request to `target` that the proxy refused with this status.
    pub(super) fn refused(&self, target: &str, status: StatusCode) -> Error {
        let variable = self.variable;
        let hint = match status.as_u16() {
            407 if self.authorization.is_some() => {
                format!("check the user and the password in the URL in {variable}")
            }
            407 => format!(
                "put the user and the password in the URL in {variable}: http://user:password@host:port"
            ),
            500.. => {
                "check the address; the proxy may be unable to resolve or to reach the host".into()
            }
            _ => format!(
                "the proxy may not allow this host or port; to connect without it, list the host in {}",
                exceptions::VARIABLE
            ),
        };
        self.failed(&format!("refused to connect to {target}: HTTP {status}")).with_hint(hint)
    }

    /// Returns the error of a proxy that can't be reached.
    pub(super) fn unreachable(&self, problem: impl fmt::Display) -> Error {
        self.failed(&format!("can't be reached: {problem}")).with_hint(self.check())
    }

    /// Returns the error of a proxy through which no connection was opened within the limit, in seconds.
    pub(super) fn silent(&self, limit: u64) -> Error {
        self.failed(&format!("opened no connection within {limit} s")).with_hint(self.check())
    }

    fn check(&self) -> String {
        format!(
            "check that the proxy runs and that {} is its URL; to connect without it, list the host in {}",
            self.variable,
            exceptions::VARIABLE
        )
    }

    /// Returns the error of a proxy whose response to `CONNECT` is invalid.
    pub(super) fn incomprehensible(&self, problem: impl fmt::Display) -> Error {
        self.failed(&format!("did not answer CONNECT as an HTTP proxy: {problem}"))
            .with_hint(format!("check that {} is the URL of an HTTP proxy", self.variable))
    }

    fn failed(&self, problem: &str) -> Error {
        Error::new(ErrorKind::Connect, format!("the proxy {self} {problem}")).in_phase("connect")
    }

    /// Adds the proxy to an error of the connection through it, unless the error names the proxy.
    pub(crate) fn explain(&self, mut error: Error) -> Error {
        let name = self.to_string();
        let is_named = |text: &str| text.contains(&name);
        if is_named(&error.message) || error.hint.as_deref().is_some_and(is_named) {
            return error;
        }
        let route = format!("the connection goes through the proxy {name}");
        error.hint = Some(match error.hint.take() {
            Some(hint) => format!("{hint}; {route}"),
            None => route,
        });
        error
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, authority) = (self.url.scheme().name(), self.url.authority());
        write!(f, "{scheme}://{authority} ({})", self.variable)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Returns the value of `Proxy-Authorization` for percent-encoded credentials.
fn basic(credentials: &str) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut pair: Vec<u8> = percent_decode_str(user).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(password));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair)))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unsupported(scheme: &str, variable: &str) -> Error {
    // Anything else may be a part of a password.
    let is_scheme =
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let scheme = if is_scheme && scheme.len() <= 16 { scheme } else { "…" };
    let message = format!(
        "{variable}: a proxy with the scheme {scheme:?} is not supported; the schemes are http and https"
    );
    Error::new(ErrorKind::Connect, message).in_phase("connect").with_hint(format!(
        "set {variable} to the URL of an HTTP proxy, or list the host in {}",
        exceptions::VARIABLE
    ))
}

fn invalid(variable: &str) -> Error {
    Error::new(ErrorKind::Connect, format!("{variable}: the value is not the URL of a proxy"))
        .in_phase("connect")
        .with_hint("write http://host:port or http://user:password@host:port")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(value: &str) -> Proxy {
        Proxy::parse(value, "HTTPS_PROXY").expect("a proxy")
    }

    #[test]
    fn a_scheme_and_a_port_have_defaults() {
        for (value, shown) in [
            ("http://proxy:3128", "http://proxy:3128 (HTTPS_PROXY)"),
            ("http://proxy:3128/", "http://proxy:3128 (HTTPS_PROXY)"),
            ("HTTP://proxy", "http://proxy (HTTPS_PROXY)"),
            ("https://proxy", "https://proxy (HTTPS_PROXY)"),
            ("proxy:3128", "http://proxy:3128 (HTTPS_PROXY)"),
            ("me:secret@proxy:3128", "http://proxy:3128 (HTTPS_PROXY)"),
            ("[::1]:3128", "http://[::1]:3128 (HTTPS_PROXY)"),
        ] {
            assert_eq!(proxy(value).to_string(), shown);
        }
        assert_eq!(
            (proxy("http://proxy").url.port(), proxy("https://proxy").url.port()),
            (80, 443)
        );
    }

    #[test]
    fn credentials_are_decoded_and_not_shown() {
        for (value, pair) in [
            ("http://me:secret@proxy", "me:secret"),
            ("me@proxy", "me:"),
            ("http://me%40home:s%3Acre%2Ft@proxy", "me@home:s:cre/t"),
            ("http://me:secret/a@b@proxy:1/", "me:secret/a@b"),
        ] {
            let proxy = proxy(value);
            let header = proxy.authorization().expect("credentials").clone();
            assert_eq!(header, format!("Basic {}", BASE64_STANDARD.encode(pair)));
            assert!(header.is_sensitive());
            let shown = format!("{proxy} {proxy:?} {:?}", proxy.refused("a:1", StatusCode::OK));
            assert!(!shown.contains("me") || !shown.contains("secret"), "{shown}");
        }
        assert!(proxy("http://@proxy").authorization().is_none());
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_the_variable_only() {
        for (value, problem) in [
            ("socks5://me:secret@proxy:1080", "\"socks5\" is not supported"),
            ("ftp://proxy", "http and https"),
            ("secret:1@b://x", "\"…\""),
            ("http://me:secret", "is not the URL"),
            ("http://me:secret@proxy:port", "is not the URL"),
            ("http://", "is not the URL"),
            ("secret proxy", "is not the URL"),
        ] {
            let error = Proxy::parse(value, "ALL_PROXY").expect_err("no proxy");
            assert_eq!(error.kind, ErrorKind::Connect);
            let shown = error.to_string();
            assert!(shown.contains(problem) && shown.starts_with("ALL_PROXY: "), "{shown}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    #[test]
    fn an_error_names_the_proxy_once() {
        let proxy = proxy("proxy:3128");
        let explained = proxy.explain(Error::new(ErrorKind::Lost, "HTTP 502")).to_string();
        let route = "the connection goes through the proxy http://proxy:3128 (HTTPS_PROXY)";
        assert_eq!(explained, format!("HTTP 502 ({route})"));
        let hinted = Error::new(ErrorKind::Lost, "HTTP 502").with_hint("wait");
        let explained = proxy.explain(hinted);
        assert_eq!(explained.to_string(), format!("HTTP 502 (wait; {route})"));
        assert_eq!(proxy.explain(explained).to_string(), format!("HTTP 502 (wait; {route})"));
        let named = proxy.unreachable("refused");
        assert_eq!(proxy.explain(proxy.unreachable("refused")).hint, named.hint);
    }
}
