//! The environment variables that name proxies.

use std::env;

use super::{Proxy, exceptions};
use crate::{
    error::Error,
    transport::{Scheme, Url},
};

/// The settings for proxies in the environment at one point in time. It has no `Debug`, because URLs of proxies contain
/// passwords.
#[derive(Clone, Default)]
pub(crate) struct ProxyEnvironment {
    http: Option<Variable>,
    https: Option<Variable>,
    all: Option<Variable>,
    exceptions: Option<Variable>,
}

/// A variable that is set, possibly to an empty value.
#[derive(Clone)]
struct Variable {
    name: &'static str,
    value: String,
}

impl ProxyEnvironment {
    /// Reads the variables of this process.
    ///
    /// Call it on the thread that called the client: other languages do not synchronize changes to the environment with
    /// other threads.
    pub(crate) fn read() -> Self {
        Self::from(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// The lower-case name of a variable takes precedence, even if its value is empty, as for Python and Node.
    fn from(value: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| value(name).map(|value| Variable { name, value });
        let first = |lower, upper| variable(lower).or_else(|| variable(upper));
        // Under CGI, `HTTP_PROXY` is the header `Proxy` of a request ("httpoxy", CVE-2016-5385). Windows ignores case.
        let is_cgi = value("REQUEST_METHOD").is_some();
        let http = match is_cgi {
            true if cfg!(windows) => None,
            true => variable("http_proxy"),
            false => first("http_proxy", "HTTP_PROXY"),
        };
        Self {
            http,
            https: first("https_proxy", "HTTPS_PROXY"),
            all: first("all_proxy", "ALL_PROXY"),
            exceptions: first("no_proxy", exceptions::VARIABLE),
        }
    }

    /// Returns the proxy for connections to `url`; `None` if they are direct. Errors if the variable is invalid.
    pub(crate) fn proxy_for(&self, url: &Url) -> Result<Option<Proxy>, Error> {
        let own = match url.scheme() {
            Scheme::Http | Scheme::Ws => &self.http,
            Scheme::Https | Scheme::Wss => &self.https,
            Scheme::Tcp | Scheme::Unix | Scheme::HttpUnix => return Ok(None),
        };
        let is_set = |variable: &&Variable| !variable.value.trim().is_empty();
        let Some(variable) = own.iter().chain(&self.all).find(is_set) else { return Ok(None) };
        let list = self.exceptions.as_ref().map_or("", |variable| &*variable.value);
        if url.is_loopback() || exceptions::lists(list, url.host(), url.port()) {
            return Ok(None);
        }
        Proxy::parse(variable.value.trim(), variable.name).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(environment: &[(&str, &str)], url: &str) -> String {
        let value = |name: &str| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let url = Url::parse(url).expect("a URL");
        match ProxyEnvironment::from(value).proxy_for(&url) {
            Ok(Some(proxy)) => proxy.to_string(),
            Ok(None) => "direct".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_scheme_has_its_variables() {
        for (name, http, https) in [
            ("http_proxy", true, false),
            ("HTTP_PROXY", true, false),
            ("https_proxy", false, true),
            ("HTTPS_PROXY", false, true),
            ("all_proxy", true, true),
            ("ALL_PROXY", true, true),
            ("ws_proxy", false, false),
        ] {
            let proxy = format!("http://p:1 ({name})");
            for (scheme, is_used) in
                [("http", http), ("ws", http), ("https", https), ("wss", https)]
            {
                let chosen = choose(&[(name, "p:1")], &format!("{scheme}://shelf.example/mcp"));
                assert_eq!(chosen, if is_used { &*proxy } else { "direct" }, "{name} {scheme}");
            }
            assert_eq!(choose(&[(name, "p:1")], "tcp://shelf.example:1"), "direct");
            assert_eq!(choose(&[(name, "p:1")], "unix:/run/shelf"), "direct");
        }
    }

    #[test]
    fn the_lower_case_name_takes_precedence() {
        for (environment, chosen) in [
            (&[("https_proxy", "a"), ("HTTPS_PROXY", "b")][..], "http://a (https_proxy)"),
            (&[("https_proxy", ""), ("HTTPS_PROXY", "b")], "direct"),
            (&[("https_proxy", " "), ("ALL_PROXY", "b")], "http://b (ALL_PROXY)"),
            (&[("HTTPS_PROXY", " a "), ("ALL_PROXY", "b")], "http://a (HTTPS_PROXY)"),
            (&[("HTTPS_PROXY", "a"), ("NO_PROXY", "shelf.example")], "direct"),
            (
                &[("HTTPS_PROXY", "a"), ("no_proxy", ""), ("NO_PROXY", "*")],
                "http://a (HTTPS_PROXY)",
            ),
        ] {
            assert_eq!(choose(environment, "https://shelf.example"), chosen, "{environment:?}");
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn under_cgi_a_header_of_a_request_names_no_proxy() {
        let environment = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "evil"), ("HTTPS_PROXY", "b")];
        assert_eq!(choose(&environment, "http://shelf.example"), "direct");
        assert_eq!(choose(&environment, "https://shelf.example"), "http://b (HTTPS_PROXY)");
        let environment = [("REQUEST_METHOD", "GET"), ("http_proxy", "a"), ("HTTP_PROXY", "evil")];
        assert_eq!(choose(&environment, "http://shelf.example"), "http://a (http_proxy)");
    }

    #[test]
    fn loopback_addresses_have_no_proxy_even_if_the_variable_is_invalid() {
        for host in ["localhost", "127.0.0.1:8000", "[::1]:8000"] {
            assert_eq!(
                choose(&[("ALL_PROXY", "socks5://p")], &format!("http://{host}/")),
                "direct"
            );
        }
        assert!(choose(&[("ALL_PROXY", "socks5://p")], "http://shelf.example").contains("socks5"));
        assert_eq!(choose(&[("ALL_PROXY", "socks5://p"), ("NO_PROXY", "*")], "http://a"), "direct");
    }
}
