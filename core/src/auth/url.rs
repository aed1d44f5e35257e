//! URLs that were parsed. The URLs of authorization servers, clients and resources are compared in this form only: compared as
//! texts, `http://127.0.0.1:1@evil.example/` would be on this machine.

use core::net::{IpAddr, Ipv6Addr};

use super::fetch::{FetchError, without_query};

/// The schemes and their default ports.
const SCHEMES: [(&str, u16); 4] = [("https", 443), ("http", 80), ("wss", 443), ("ws", 80)];

/// An absolute URL with a host, without user name and fragment (RFC 3986).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebUrl {
    scheme: &'static str,
    /// In lower case; an IPv6 address is in brackets.
    host: String,
    port: u16,
    /// The path and the query, as they are written.
    path: String,
}

impl WebUrl {
    /// Parses a URL. Errors with what is wrong; the text contains no secret.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(FetchError::Url("a URL with a user name is not allowed".to_owned()));
        }
        let invalid = |reason: &str| {
            // It may contain a password, in the wrong place.
            let shown = Some(without_query(text)).filter(|url| !url.contains('@'));
            FetchError::Url(format!("{:?}: {reason}", shown.unwrap_or("…@…")))
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(invalid("it is not a URL; percent-encode its spaces and other characters"));
        }
        if authority.is_empty() {
            return Err(invalid("it is not an absolute URL"));
        }
        if path.contains('#') {
            return Err(invalid("a fragment is not allowed"));
        }
        let known = SCHEMES.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme));
        let (scheme, default_port) = known.ok_or_else(|| invalid("the scheme must be https"))?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if !is_host(host) {
            return Err(invalid("the host is invalid"));
        }
        let port = match port {
            None => default_port,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| invalid("the port is invalid"))?,
            Some(_) => return Err(invalid("the port is invalid")),
        };
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port, path: path.to_owned() })
    }

    pub fn scheme(&self) -> &str {
        self.scheme
    }

    /// Returns the host in lower case. An IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path and the query, as they are written. The path may be empty.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the host and the port, which is left out if it is the scheme's default.
    pub fn authority(&self) -> String {
        match SCHEMES.contains(&(self.scheme, self.port)) {
            true => self.host.clone(),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Returns the scheme, the host and the port, which is left out if it is the scheme's default.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }

    pub fn has_origin_of(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Returns whether the host names this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

/// Returns whether a host names this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns whether a text is a host name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !text.is_empty() && text.bytes().all(is_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> WebUrl {
        WebUrl::parse(text).expect("a URL")
    }

    #[test]
    fn its_parts_are_those_of_a_browser() {
        let it = url("HTTPS://Example.com:443/A/b?c=D");
        assert_eq!(
            (it.scheme(), it.host(), it.port(), it.path()),
            ("https", "example.com", 443, "/A/b?c=D")
        );
        assert_eq!(it.origin(), "https://example.com");
        let it = url("http://[::1]:8080");
        assert_eq!((it.host(), it.port(), it.path(), it.is_loopback()), ("[::1]", 8080, "", true));
        assert_eq!(it.origin(), "http://[::1]:8080");
        assert_eq!(url("wss://a.example?b=/c@d").path(), "?b=/c@d");
        assert!(url("http://a.example").has_origin_of(&url("http://A.example:80/x")));
        for other in ["https://a.example", "http://a.example:81", "http://b.example"] {
            assert!(!url("http://a.example").has_origin_of(&url(other)), "{other}");
        }
    }

    #[test]
    fn what_programs_read_differently_is_refused() {
        for text in [
            "http://127.0.0.1:1@evil.example/callback",
            "http://127.0.0.1@evil.example/",
            "http://@127.0.0.1/",
            "http://127.0.0.1\\@evil.example/",
            "http://127.0.0.1:x/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:+80/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:/",
            "http://127.0.0.1:1:2/",
            "http://127.0.0.1:1\t/",
            "http://127.0.0.1:1\r\n/",
            "http://127.0.0.1:1/\u{0}",
            "http://127.0.0.1:1/ ",
            "http://127.0.0.1%2eevil.example/",
            "http://h\u{f6}st/",
            "http://[::1/",
            "http://[::1].evil.example/",
            "http://[::1]evil:1/",
            "http://::1/",
            "http:///a",
            "http:/127.0.0.1/",
            "//127.0.0.1/",
            "127.0.0.1",
            "https://a.example/#b",
            "ftp://a.example/",
            "",
        ] {
            assert!(WebUrl::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_error_contains_no_secret() {
        for text in [
            "https://me:s3cret@a.example/",
            "https://a.example:x/?key=s3cret",
            "https://a b/?s3cret",
            "me:s3cret@a.example",
        ] {
            let error = WebUrl::parse(text).expect_err("no URL").to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
