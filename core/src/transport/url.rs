//! URLs of servers on a network or on a socket in the file system.

#[cfg(any(unix, test))]
use std::path::PathBuf;
use std::{fmt, net::IpAddr, str::FromStr};

use crate::error::Error;

/// The URL of a server, with the scheme `http`, `https`, `ws`, `wss`, `tcp`, `unix` or `http+unix`.
///
/// `Display` omits the query, which may contain a secret.
#[derive(Clone, Eq, PartialEq)]
pub struct Url {
    scheme: Scheme,
    /// For `http+unix` the path of the socket.
    host: String,
    port: u16,
    /// The path and query; for `unix` the path of the socket.
    path: String,
}

/// The protocol that connects to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Scheme {
    Http,
    Https,
    Ws,
    Wss,
    /// A TCP connection with one message per line.
    Tcp,
    /// A Unix socket with one message per line.
    Unix,
    /// A Unix socket with HTTP, at the path `/mcp`.
    HttpUnix,
}

const SCHEMES: [(&str, Scheme); 7] = [
    ("http", Scheme::Http),
    ("https", Scheme::Https),
    ("ws", Scheme::Ws),
    ("wss", Scheme::Wss),
    ("tcp", Scheme::Tcp),
    ("unix", Scheme::Unix),
    ("http+unix", Scheme::HttpUnix),
];

/// The host of requests on a Unix socket.
const LOCALHOST: &str = "localhost";
/// The path of the endpoint on a Unix socket.
const PATH: &str = "/mcp";

impl Scheme {
    /// Returns the scheme that a URL begins with; `None` if it is missing or unsupported.
    pub(crate) fn from_url(url: &str) -> Option<Self> {
        let (scheme, _) = url.split_once(':')?;
        Self::named(scheme)
    }

    /// Returns the scheme with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        SCHEMES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, scheme)| *scheme)
    }

    /// Returns the names of all schemes, for errors.
    pub(crate) fn names() -> String {
        SCHEMES.map(|(name, _)| name).join(", ")
    }

    pub(super) fn name(self) -> &'static str {
        SCHEMES.iter().find(|(_, scheme)| *scheme == self).map_or("", |(name, _)| name)
    }

    fn default_port(self) -> Option<u16> {
        match self {
            Self::Http | Self::Ws => Some(80),
            Self::Https | Self::Wss => Some(443),
            Self::Tcp | Self::Unix | Self::HttpUnix => None,
        }
    }

    /// Returns whether the connection is one to a Unix socket.
    pub(crate) fn is_unix(self) -> bool {
        matches!(self, Self::Unix | Self::HttpUnix)
    }

    /// Returns whether the protocol is HTTP.
    pub(crate) fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Https | Self::HttpUnix)
    }

    /// Returns whether the connection is encrypted.
    pub(crate) fn is_secure(self) -> bool {
        matches!(self, Self::Https | Self::Wss)
    }
}

impl Url {
    /// Parses a URL. Errors, with the fix, if it is invalid or has an unsupported scheme.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let scheme = Scheme::from_url(text).ok_or_else(|| no_url(text))?;
        let (_, rest) = text.split_once(':').unwrap_or_default();
        if scheme.is_unix() {
            let socket = rest.strip_prefix("//").unwrap_or(rest);
            if socket.is_empty() || socket.contains('\0') {
                let fix = format!("has no socket path; write {}:/path/to/socket", scheme.name());
                return Err(misuse(text, &fix));
            }
            let (host, path) = match scheme {
                Scheme::HttpUnix => (socket, PATH),
                _ => ("", socket),
            };
            return Ok(Self { scheme, host: host.to_owned(), port: 0, path: path.to_owned() });
        }
        let rest = rest.strip_prefix("//").ok_or_else(|| {
            misuse(
                text,
                &format!("must have two slashes after the scheme: {}://host", scheme.name()),
            )
        })?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        if authority.contains('@') {
            // The URL is not shown because it contains a password.
            return Err(Error::misuse(
                "the URL contains a user name, which is not sent as credentials",
            )
            .with_hint(
                "pass credentials as a header: headers = {\"Authorization\": \"Basic …\"}",
            ));
        }
        let (host, port) = host_and_port(text, scheme, authority)?;
        let path = match scheme {
            Scheme::Tcp if !matches!(path, "" | "/") => {
                return Err(misuse(text, "has a path; write tcp://host:port"));
            }
            Scheme::Tcp => String::new(),
            _ if path.starts_with('/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        if let Some(odd) = path.chars().find(|character| !matches!(character, '!'..='~')) {
            return Err(misuse(text, &format!("has {odd:?} in its path; percent-encode it")));
        }
        Ok(Self { scheme, host, port, path })
    }

    /// Returns the URL that a string without a scheme stands for: `http://127.0.0.1:8000/mcp` for `127.0.0.1:8000/mcp`,
    /// `https://example.com/mcp` for `example.com/mcp`. `None` if it does not look like a host with a port or a path.
    pub fn with_scheme(text: &str) -> Option<String> {
        let (authority, rest) = text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if port.is_none() && rest.is_empty()
            || port.is_some_and(|port| port.parse::<u16>().is_err())
        {
            return None;
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_address = bare.parse::<IpAddr>().is_ok() || is_loopback(bare);
        let top = host.rsplit_once('.').map_or("", |(_, top)| top);
        let is_domain = top.len() > 1 && top.bytes().all(|byte| byte.is_ascii_alphabetic());
        let scheme = if is_address { Scheme::Http } else { Scheme::Https };
        let url = format!("{}://{text}", scheme.name());
        ((is_address || is_domain) && Self::parse(&url).is_ok()).then_some(url)
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host, without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// Returns whether the host is this machine by its name.
    pub(crate) fn is_loopback(&self) -> bool {
        self.scheme.is_unix() || is_loopback(self.host())
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path and query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    #[cfg(any(unix, test))]
    pub(crate) fn socket(&self) -> PathBuf {
        PathBuf::from(match self.scheme {
            Scheme::HttpUnix => &self.host,
            _ => &self.path,
        })
    }

    /// Returns the value of the `Host` header.
    pub(crate) fn authority(&self) -> String {
        match self.scheme.default_port() {
            Some(port) if port == self.port => self.host.clone(),
            _ if self.scheme == Scheme::HttpUnix => LOCALHOST.to_owned(),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    /// Returns the URL with its query, which may contain a secret.
    #[cfg(feature = "bindings")]
    #[doc(hidden)] // For the command line.
    pub fn with_query(&self) -> String {
        match self.scheme {
            Scheme::Unix | Scheme::HttpUnix => self.to_string(),
            Scheme::Tcp => self.without_query(),
            scheme => format!("{}://{}{}", scheme.name(), self.authority(), self.path),
        }
    }

    /// Returns the URL without its query, which may contain a secret.
    pub(crate) fn without_query(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{}://{}{path}", self.scheme.name(), self.authority())
    }

    /// Returns the host, with the brackets of an IPv6 address, and the port.
    pub(crate) fn host_and_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub fn has_origin_of(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.port == other.port
            && match self.scheme {
                Scheme::HttpUnix => self.host == other.host,
                _ => self.host.eq_ignore_ascii_case(&other.host),
            }
    }

    /// Returns the scheme, the host and the port, as in `https://host:8443`.
    #[cfg(feature = "bindings")]
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.authority())
    }

    /// Resolves a reference, such as the value of `Location`, against this URL.
    pub fn join(&self, reference: &str) -> Result<Self, Error> {
        if self.scheme == Scheme::HttpUnix {
            // Requests on a socket are for `http://localhost`.
            let (scheme, path) = (Scheme::Http, self.path.clone());
            let here = Self { scheme, host: LOCALHOST.to_owned(), port: 80, path };
            let joined = here.join(reference)?;
            return Ok(match joined.has_origin_of(&here) {
                true => Self { path: joined.path, ..self.clone() },
                false => joined,
            });
        }
        let scheme_end = reference.find([':', '/', '?', '#']);
        if scheme_end.is_some_and(|end| reference[end..].starts_with(':')) {
            return Self::parse(reference);
        }
        let root = format!("{}://{}", self.scheme.name(), self.authority());
        let path = self.path.split('?').next().unwrap_or_default();
        Self::parse(&if reference.starts_with("//") {
            format!("{}:{reference}", self.scheme.name())
        } else if reference.starts_with('/') {
            format!("{root}{reference}")
        } else if reference.starts_with('?') {
            format!("{root}{path}{reference}")
        } else {
            let folder = path.rfind('/').map_or("/", |slash| &path[..=slash]);
            format!("{root}{folder}{reference}")
        })
    }
}

fn host_and_port(text: &str, scheme: Scheme, authority: &str) -> Result<(String, u16), Error> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let is_address = host.bytes().all(|byte| byte.is_ascii_hexdigit() || b"[]:.".contains(&byte));
    if host.is_empty() {
        return Err(misuse(text, "has no host"));
    }
    if !(is_bracketed && is_address || !is_bracketed && is_plain) {
        let fix = "has an invalid host; use letters, digits, dots and hyphens, or an IPv6 address in \
                    brackets (non-ASCII names in their xn-- form)";
        return Err(misuse(text, fix));
    }
    let port = match port {
        Some(port) => {
            let digits = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
            let parsed = digits.and_then(|digits| digits.parse().ok());
            Some(parsed.ok_or_else(|| misuse(text, &format!("has an invalid port {port:?}")))?)
        }
        None => scheme.default_port(),
    };
    let port = port.filter(|port| *port != 0);
    let port = port.ok_or_else(|| misuse(text, "has no port; write tcp://host:port"))?;
    Ok((host.to_owned(), port))
}

/// Returns the part of a URL that errors may show: without user name, password, query and fragment.
pub(crate) fn without_secrets(text: &str) -> String {
    let shown = text.split(['?', '#']).next().unwrap_or_default();
    let start = shown.find(':').map_or(0, |colon| colon + 1);
    let start = start + shown[start..].bytes().take_while(|byte| *byte == b'/').count();
    let end = shown[start..].find('/').map_or(shown.len(), |slash| start + slash);
    match shown[start..end].rfind('@') {
        Some(at) if start > 0 => format!("{}…{}", &shown[..start], &shown[start + at..]),
        _ => shown.to_owned(),
    }
}

fn no_url(given: &str) -> Error {
    let (text, schemes) = (without_secrets(given), Scheme::names());
    let hint = match Url::with_scheme(given) {
        Some(url) => format!("write {}", without_secrets(&url)),
        None => {
            "write a URL such as http://127.0.0.1:8000/mcp, or pass a command to start a program"
                .to_owned()
        }
    };
    Error::misuse(format!("{text:?} is not a URL that a client can connect to ({schemes})"))
        .with_hint(hint)
}

fn misuse(text: &str, problem: &str) -> Error {
    Error::misuse(format!("{:?} {problem}", without_secrets(text)))
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Scheme::Unix => write!(f, "unix:{}", self.path),
            Scheme::HttpUnix => write!(f, "http+unix:{}", self.host),
            scheme => {
                let path = self.path.split_once('?').map_or(&*self.path, |(path, _)| path);
                write!(f, "{}://{}{path}", scheme.name(), self.authority())?;
                if path.len() < self.path.len() { f.write_str("?…") } else { Ok(()) }
            }
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

/// Returns whether a host, without brackets, is this machine by its name.
fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    // RFC 6761 reserves the names below it as well.
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn problem(text: &str) -> String {
        Url::parse(text).expect_err("no URL").to_string()
    }

    #[test]
    fn what_is_read_is_what_is_meant() {
        let it = url("HTTP://Example.com/a/mcp?key=1#here");
        assert_eq!((it.host(), it.port(), it.path()), ("Example.com", 80, "/a/mcp?key=1"));
        assert_eq!(it.authority(), "Example.com");
        let it = url("wss://[::1]:8443");
        assert_eq!((it.host(), it.port(), it.path()), ("::1", 8443, "/"));
        assert_eq!(it.authority(), "[::1]:8443");
        assert_eq!(url("https://h?a=1").path(), "/?a=1");
        assert_eq!(url("unix:/run/a.sock").socket(), PathBuf::from("/run/a.sock"));
        assert_eq!(url("unix:///run/a.sock").socket(), PathBuf::from("/run/a.sock"));
        assert_eq!(url("tcp://127.0.0.1:9").to_string(), "tcp://127.0.0.1:9");
        for text in ["http+unix:/run/a.sock", "http+unix:///run/a.sock"] {
            assert_eq!(url(text).socket(), PathBuf::from("/run/a.sock"));
            assert_eq!((url(text).authority(), url(text).path()), ("localhost".into(), "/mcp"));
            assert_eq!(url(text).to_string(), "http+unix:/run/a.sock");
        }
    }

    #[test]
    fn a_query_is_not_shown() {
        let it = url("https://host/mcp?api_key=secret");
        assert_eq!(it.to_string(), "https://host/mcp?…");
        assert!(!format!("{it:?}").contains("secret"));
        assert!(!problem("https://host /mcp?api_key=secret").contains("secret"));
        for text in [
            "https://me:secret@host/mcp",
            "ftp://me:secret@host/mcp?token=secret",
            "http:/me:secret@host/mcp",
            "https:me:secret@host",
            "tcp://host?token=secret",
            "http://host:port#secret",
        ] {
            assert!(!problem(text).contains("secret"), "{}", problem(text));
        }
        assert_eq!(without_secrets("ftp://me:secret@host/a@b?c"), "ftp://…@host/a@b");
        assert_eq!(without_secrets("npx -y @scope/server"), "npx -y @scope/server");
    }

    #[test]
    fn what_is_no_url_is_told_with_the_mend() {
        assert!(problem("ftp://host").contains("http, https, ws, wss, tcp, unix"));
        assert!(problem("python server.py").contains("command"));
        assert!(problem("http:/host").contains("two slashes"));
        assert!(problem("http://").contains("has no host"));
        assert!(problem("http://host:port/").contains("\"port\""));
        assert!(problem("http://host:70000/").contains("port"));
        assert!(problem("http://host:+80/").contains("port"));
        assert!(problem("tcp://host").contains("tcp://host:port"));
        assert!(problem("tcp://host:1/mcp").contains("path"));
        assert!(problem("unix:").contains("write unix:/path"));
        assert!(problem("http+unix:").contains("write http+unix:/path"));
        assert!(problem("http://h\u{f6}st/").contains("xn--"));
        assert!(problem("http://host/\u{f6}").contains("percent-encode"));
    }

    #[test]
    fn an_address_without_a_scheme_gets_one() {
        for (text, url) in [
            ("127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
            ("localhost:8000", "http://localhost:8000"),
            ("localhost/mcp", "http://localhost/mcp"),
            ("[::1]:8000/mcp", "http://[::1]:8000/mcp"),
            ("10.0.0.7/mcp", "http://10.0.0.7/mcp"),
            ("mcp.example.com/mcp", "https://mcp.example.com/mcp"),
            ("mcp.example.com:8443", "https://mcp.example.com:8443"),
        ] {
            assert_eq!(Url::with_scheme(text).as_deref(), Some(url), "{text}");
            let problem = problem(text);
            assert!(problem.contains(&format!("write {url}")), "{problem}");
        }
        for text in [
            "docs",
            "server.py",
            "server.py:app",
            "cursor:docs",
            "localhost",
            "a b.com/mcp",
            "./a.py",
            "../x/y",
            "a/b",
            "shop.server:app",
            "localhost:port/mcp",
            "/mcp",
            "127.0.0.1:70000/mcp",
            "C:\\a",
        ] {
            assert_eq!(Url::with_scheme(text), None, "{text}");
        }
    }

    #[test]
    fn references_are_read_against_the_url_they_came_from() {
        let base = url("http://host:8000/a/sse?x=1");
        for (reference, meant) in [
            ("/messages?id=1", "/messages?id=1"),
            ("messages?id=1", "/a/messages?id=1"),
            ("?id=1", "/a/sse?id=1"),
            ("http://host:8000/b", "/b"),
            ("//host:8000/c", "/c"),
        ] {
            let joined = base.join(reference).expect("a reference");
            assert_eq!(joined.path(), meant);
            assert!(joined.has_origin_of(&base));
        }
        assert!(!base.join("http://other:8000/b").expect("a URL").has_origin_of(&base));
        assert!(!base.join("https://host:8000/b").expect("a URL").has_origin_of(&base));
        assert!(!base.join("//host/c").expect("a URL").has_origin_of(&base));
        let base = url("http+unix:/run/a.sock");
        for reference in ["/messages?id=1", "messages?id=1", "http://localhost/messages?id=1"] {
            let joined = base.join(reference).expect("a reference");
            assert_eq!(joined.path(), "/messages?id=1");
            assert!(joined.has_origin_of(&base));
        }
        assert!(!base.join("http://other/b").expect("a URL").has_origin_of(&base));
        assert!(!url("http+unix:/run/A.sock").has_origin_of(&base));
    }

    #[test]
    fn this_machine_is_found_by_its_names() {
        for host in ["localhost", "LocalHost.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        assert!(is_loopback("::ffff:127.0.0.1"));
        for host in ["localhost.example", "mylocalhost", "128.0.0.1", "0.0.0.0", "::2", "10.0.0.1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
