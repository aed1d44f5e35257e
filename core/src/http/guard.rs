//! The checks of `Host` and `Origin`, which reject foreign web pages (DNS rebinding), and CORS, which admits chosen ones
//! (spec: Streamable HTTP, "Security & Endpoint").

mod allowed;

use core::net::IpAddr;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts, uri::Authority};

use self::allowed::{HostPattern, OriginPattern};
use super::{
    forwarded::{ForwardedTarget, TrustedProxies},
    logging::Reason,
};
use crate::error::option_name;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

const ALLOW_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const ALLOW_HEADERS: &str = "Authorization, Content-Type, DPoP, Last-Event-ID, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name";
const EXPOSE_HEADERS: HeaderValue =
    HeaderValue::from_static("DPoP-Nonce, Mcp-Session-Id, WWW-Authenticate");
/// The time for which a browser may cache the answer to a preflight: two hours, the maximum of Chromium.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// The hosts and origins that may call an endpoint. The default suits a server on the loopback interface.
#[derive(Clone, Debug)]
pub struct GuardConfig {
    /// The server's URL as clients know it, if it is not the address that it listens on, as behind a proxy.
    pub public_url: Option<String>,
    /// `true` if only programs on this machine reach the server. A request's own [`Arrival`] takes precedence.
    pub bind_is_loopback: bool,
    /// Origins of pages that may call: `https://example.com`, `https://*.example.com`, `null`, or `*` for all but `null`.
    pub allowed_origins: Vec<String>,
    /// Hosts by which the server may be called: `example.com`, `example.com:8443`, `*.example.com`, or `*`.
    pub allowed_hosts: Vec<String>,
    pub cors: Cors,
    /// Peers whose forwarding headers count: addresses, networks such as `10.0.0.0/8`, and `unix`.
    pub trusted_proxies: Vec<String>,
}

/// The address at which a request arrived: an extension of its head, if the host knows it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// True if it arrived over the loopback interface.
    pub via_loopback: bool,
    /// The port, if it is known.
    pub port: Option<u16>,
}

/// The web pages that may read responses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Cors {
    #[default]
    Off,
    Any,
    Origins(Vec<String>),
}

/// The answer to a caller that is not allowed.
#[derive(Debug)]
pub(super) struct GuardRefusal {
    pub(super) status: StatusCode,
    /// The text names the setting that would let the request in.
    pub(super) reason: Reason,
}

/// The compiled configuration.
#[derive(Debug)]
pub(super) struct Guard {
    is_loopback: bool,
    /// Configured hosts.
    hosts: Vec<HostPattern>,
    /// Configured origins, those of CORS among them.
    origins: Vec<OriginPattern>,
    cors: CompiledCors,
    pub(super) proxies: TrustedProxies,
}

#[derive(Debug)]
enum CompiledCors {
    Off,
    Any,
    Origins(Vec<OriginPattern>),
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            public_url: None,
            bind_is_loopback: true,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            cors: Cors::Off,
            trusted_proxies: Vec::new(),
        }
    }
}

impl Guard {
    /// Entries that [`GuardConfig::check`] refuses match nothing.
    pub(super) fn new(config: &GuardConfig) -> Self {
        let read = |origins: &[String]| -> Vec<OriginPattern> {
            origins.iter().filter_map(|origin| OriginPattern::parse(origin).ok()).collect()
        };
        let mut origins = read(&config.allowed_origins);
        let cors = match &config.cors {
            Cors::Off => CompiledCors::Off,
            Cors::Any => CompiledCors::Any,
            Cors::Origins(listed) => {
                origins.extend(read(listed));
                CompiledCors::Origins(read(listed))
            }
        };
        let hosts = config.allowed_hosts.iter().filter_map(|host| HostPattern::parse(host).ok());
        let mut hosts: Vec<_> = hosts.collect();
        let own = config.public_url.as_ref().and_then(|url| Origin::parse(cut_path(url)));
        if let Some(origin) = own {
            origins.push(OriginPattern::Exactly(origin.to_string()));
            hosts.push(HostPattern::Exactly(origin.host.without_default_port()));
        }
        let proxies = TrustedProxies::parse(&config.trusted_proxies).unwrap_or_default();
        Self { is_loopback: config.bind_is_loopback, hosts, origins, cors, proxies }
    }

    /// Errors if this request must not be served.
    pub(super) fn check(&self, head: &Parts) -> Result<(), GuardRefusal> {
        let hosts = hosts(head);
        let is_loopback = self.is_via_loopback(head);
        self.check_host(&hosts, is_loopback)?;
        for origin in head.headers.get_all(header::ORIGIN) {
            let text = origin.to_str().unwrap_or_default();
            if !self.lets_in(text, &hosts, is_loopback) {
                return Err(GuardRefusal::new(
                    StatusCode::FORBIDDEN,
                    "origin",
                    format!(
                        "requests from the origin {} are refused: if that page may call, add it to {}; if it is the \
                         server's own address, set {}",
                        quoted(origin.as_bytes()),
                        option_name("allowed_origins"),
                        option_name("public_url")
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns the arrival of a request at this port of the configured address.
    #[cfg(all(feature = "auth", feature = "http"))]
    pub(super) fn arrival(&self, port: u16) -> Arrival {
        Arrival { via_loopback: self.is_loopback, port: Some(port) }
    }

    /// Returns whether a request came over the loopback interface.
    pub(super) fn is_via_loopback(&self, head: &Parts) -> bool {
        head.extensions.get::<Arrival>().map_or(self.is_loopback, |arrival| arrival.via_loopback)
    }

    /// Returns whether the configuration names this host, by itself or by the domain that it is in.
    #[cfg(feature = "auth")]
    pub(super) fn names(&self, host: &str) -> bool {
        let Some(host) = Host::parse(host).map(Host::without_default_port) else { return false };
        self.hosts.iter().any(|pattern| !pattern.is_any() && pattern.matches(&host))
    }

    /// Errors if this request is for a host that is not served, whatever page sends it.
    #[cfg(feature = "auth")]
    pub(super) fn check_host_only(&self, head: &Parts) -> Result<(), GuardRefusal> {
        self.check_host(&hosts(head), self.is_via_loopback(head))
    }

    /// The answer to a browser that asks before it calls.
    pub(super) fn preflight(&self, head: &Parts) -> Option<HeaderMap> {
        let asks = head.method == Method::OPTIONS
            && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks {
            return None;
        }
        let origin = self.readable_by(head)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOW_METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(&head.headers));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        headers.insert(
            header::VARY,
            HeaderValue::from_static("Origin, Access-Control-Request-Headers"),
        );
        Some(headers)
    }

    /// Adds the CORS headers that let the page read an answer.
    pub(super) fn decorate(&self, head: &Parts, headers: &mut HeaderMap) {
        if matches!(self.cors, CompiledCors::Origins(_)) {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = self.readable_by(head) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSE_HEADERS);
        }
    }

    fn check_host(&self, hosts: &[Option<Host>], is_loopback: bool) -> Result<(), GuardRefusal> {
        if !is_loopback && self.hosts.is_empty() {
            return Ok(());
        }
        let is_served = |host: &Host| {
            (is_loopback && host.is_loopback())
                || self.hosts.iter().any(|pattern| pattern.matches(host))
        };
        if !hosts.is_empty() && hosts.iter().all(|host| host.as_ref().is_some_and(is_served)) {
            return Ok(());
        }
        let said = match hosts.iter().find(|host| !host.as_ref().is_some_and(is_served)) {
            None => "no host".to_owned(),
            Some(None) => "an unreadable host".to_owned(),
            Some(Some(host)) => format!("the host {}", quoted(host.to_string().as_bytes())),
        };
        Err(GuardRefusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            format!(
                "the request is for {said}, which is not served here: add the host to {}, or set {} to the address that \
                 clients use",
                option_name("allowed_hosts"),
                option_name("public_url")
            ),
        ))
    }

    fn lets_in(&self, text: &str, hosts: &[Option<Host>], is_loopback: bool) -> bool {
        let origin = Origin::parse(text);
        if matches(&self.origins, text, origin.as_ref()) {
            return true;
        }
        // `null` is what pages without an origin of their own send, sandboxed ones among them.
        let Some(origin) = origin else { return false };
        if matches!(self.cors, CompiledCors::Any) {
            return true;
        }
        if !matches!(&*origin.scheme, "http" | "https") {
            return false;
        }
        if is_loopback {
            return origin.host.is_loopback();
        }
        // The owner of a name can point it to this machine from one moment to the next: that is DNS rebinding.
        let is_sure = origin.host.is_loopback() || origin.host.is_address();
        let own = Some(origin.host.without_default_port());
        let is_own = !hosts.is_empty() && hosts.iter().all(|host| *host == own);
        self.origins.is_empty() && is_sure && is_own
    }

    /// The value of `Access-Control-Allow-Origin`.
    fn readable_by(&self, head: &Parts) -> Option<HeaderValue> {
        let origin = || head.headers.get(header::ORIGIN);
        match &self.cors {
            CompiledCors::Off => None,
            CompiledCors::Any => origin().map(|_| ANY),
            CompiledCors::Origins(listed) => {
                let origin = origin()?;
                let text = origin.to_str().ok()?;
                matches(listed, text, Origin::parse(text).as_ref()).then(|| origin.clone())
            }
        }
    }
}

impl GuardRefusal {
    fn new(status: StatusCode, name: &'static str, message: String) -> Self {
        Self { status, reason: Reason::new(name, message) }
    }
}

/// A name or address, and a port; in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Host {
    name: String,
    port: Option<u16>,
}

/// The origin of a web page.
struct Origin {
    scheme: String,
    /// Without the scheme's own port.
    host: Host,
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let _: Authority = text.parse().ok().filter(|_| !text.contains('@'))?;
        // The colons in brackets are those of an address.
        let after_brackets = text.find(']').unwrap_or_default();
        let end = text[after_brackets..].find(':').map_or(text.len(), |at| after_brackets + at);
        let (host, port) = text.split_at(end);
        let mut name = host.to_ascii_lowercase();
        if name.ends_with('.') {
            name.pop();
        }
        let port = match port {
            "" | ":" => None,
            port => {
                let digits = port.strip_prefix(':')?;
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
                Some(digits.parse().ok().filter(|_| is_number)?)
            }
        };
        (!name.is_empty()).then_some(Self { name, port })
    }

    fn is_loopback(&self) -> bool {
        LOOPBACK.contains(&&*self.name)
    }

    /// Returns whether the host is an IP address.
    fn is_address(&self) -> bool {
        let bare = self.name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        bare.unwrap_or(&self.name).parse::<IpAddr>().is_ok()
    }

    /// Removes the default ports of both schemes, because `Host` has no scheme.
    fn without_default_port(mut self) -> Self {
        self.port = self.port.filter(|port| !matches!(port, 80 | 443));
        self
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let mut host = Host::parse(host)?;
        let own = match &*scheme {
            "http" | "ws" => Some(80),
            "https" | "wss" => Some(443),
            _ => None,
        };
        if host.port == own {
            host.port = None;
        }
        Some(Self { scheme, host })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)
    }
}

/// Returns the hosts that a request names in `Host` or `:authority`, or the one that a trusted proxy names; `None` for an
/// invalid one.
fn hosts(head: &Parts) -> Vec<Option<Host>> {
    if let Some(ForwardedTarget { host: Some(host), .. }) = head.extensions.get() {
        return vec![Host::parse(host).map(Host::without_default_port)];
    }
    let target = head.uri.authority().map(Authority::as_str);
    let said =
        head.headers.get_all(header::HOST).iter().map(|value| value.to_str().unwrap_or_default());
    target
        .into_iter()
        .chain(said)
        .map(|text| Host::parse(text).map(Host::without_default_port))
        .collect()
}

/// Returns whether one of these patterns matches a request's `Origin`, given as text and parsed.
fn matches(patterns: &[OriginPattern], text: &str, origin: Option<&Origin>) -> bool {
    // An origin that can't be read, such as `null`, stays as it is.
    let normal = origin.map_or_else(|| text.to_ascii_lowercase(), ToString::to_string);
    patterns.iter().any(|pattern| pattern.matches(&normal, origin))
}

fn cut_path(url: &str) -> &str {
    let start = url.find("://").map_or(0, |index| index + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |offset| start + offset);
    &url[..end]
}

/// Returns the headers that calls need, and those of MCP that the page asks for: `Mcp-Param-*` may have any name.
fn allowed_headers(headers: &HeaderMap) -> HeaderValue {
    let mut allowed = ALLOW_HEADERS.to_owned();
    let asked = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).iter();
    for name in asked.filter_map(|value| value.to_str().ok()).flat_map(|names| names.split(',')) {
        let name = name.trim();
        let is_ours = name.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("mcp-"));
        if is_ours && http::HeaderName::from_bytes(name.as_bytes()).is_ok() {
            allowed.push_str(", ");
            allowed.push_str(name);
        }
    }
    HeaderValue::from_str(&allowed).unwrap_or(HeaderValue::from_static(ALLOW_HEADERS))
}

/// A piece of what the request said.
fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let clipped: String = text.chars().take(100).collect();
    format!("{clipped:?}")
}

#[cfg(test)]
mod tests;
