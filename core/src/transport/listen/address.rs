//! Addresses of listening servers.

use std::{fmt, path::PathBuf, str::FromStr};

use http::Uri;

use crate::{
    error::Error,
    http::{EndpointConfig, GuardConfig},
};

const EXAMPLES: &str = "write http://127.0.0.1:8000/mcp, https://…, http+unix:/path/to/socket, tcp://127.0.0.1:8000 or unix:/path/to/socket";

const UNIX: &str = "unix:";
const HTTP_UNIX: &str = "http+unix:";
/// The port of `http` that URLs leave out.
const HTTP_PORT: u16 = 80;

/// An address to listen at: `http://host:port/path`, `https://…`, `tcp://host:port`, `unix:/path`, or `http+unix:/path` for HTTP
/// on a Unix socket, where the path of the endpoint is `/mcp`. With port 0 the system chooses a free port.
///
/// ```
/// use gudgeon::transport::listen::Address;
///
/// assert!("http://127.0.0.1:0/mcp".parse::<Address>().is_ok());
/// let error = "127.0.0.1:8000".parse::<Address>().unwrap_err();
/// assert!(error.to_string().contains("http://127.0.0.1:8000/mcp"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Address {
    pub(super) place: ListenAddress,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ListenAddress {
    Http {
        is_secure: bool,
        host: String,
        port: u16,
        path: String,
    },
    /// A TCP socket with one message per line.
    Tcp {
        host: String,
        port: u16,
    },
    /// A Unix socket with one message per line.
    Unix(PathBuf),
    /// A Unix socket with HTTP.
    HttpUnix(PathBuf),
}

impl Address {
    /// Returns the default options of an endpoint at this address: its path and, on a loopback address, the allowed
    /// hosts.
    pub fn endpoint_config(&self) -> EndpointConfig {
        let mut config = EndpointConfig {
            guard: GuardConfig { bind_is_loopback: self.is_loopback(), ..GuardConfig::default() },
            ..EndpointConfig::default()
        };
        if let ListenAddress::Http { path, is_secure, .. } = &self.place {
            config.path = Some(path.clone());
            config.is_encrypted = *is_secure;
        }
        config
    }

    /// Returns whether only programs on this machine can connect.
    pub fn is_loopback(&self) -> bool {
        match &self.place {
            ListenAddress::Http { host, .. } | ListenAddress::Tcp { host, .. } => is_loopback(host),
            ListenAddress::Unix(_) | ListenAddress::HttpUnix(_) => true,
        }
    }

    /// Returns the port that clients name although the address has none.
    #[cfg(feature = "auth")]
    pub(super) fn named_port(&self) -> Option<u16> {
        matches!(self.place, ListenAddress::HttpUnix(_)).then_some(HTTP_PORT)
    }

    /// Returns the address with the port that the system chose.
    pub(super) fn url(&self, port: u16, has_tls: bool) -> String {
        match &self.place {
            ListenAddress::Http { is_secure, host, path, .. } => {
                let scheme = if *is_secure || has_tls { "https" } else { "http" };
                format!("{scheme}://{host}:{port}{path}")
            }
            ListenAddress::Tcp { host, .. } => format!("tcp://{host}:{port}"),
            ListenAddress::Unix(path) => format!("unix:{}", path.display()),
            ListenAddress::HttpUnix(path) => format!("{HTTP_UNIX}{}", path.display()),
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let http = text.strip_prefix(HTTP_UNIX);
        if let Some(path) = http.or_else(|| text.strip_prefix(UNIX)) {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.contains('\0') {
                let scheme = if http.is_some() { HTTP_UNIX } else { UNIX };
                let fix = format!("it has no socket path; write {scheme}/path/to/socket");
                return Err(misuse(text, &fix));
            }
            return Ok(Self {
                place: match http {
                    Some(_) => ListenAddress::HttpUnix(path.into()),
                    None => ListenAddress::Unix(path.into()),
                },
            });
        }
        let uri: Uri = text.parse().map_err(|_| misuse(text, EXAMPLES))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(misuse(text, EXAMPLES));
        };
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(misuse(text, EXAMPLES));
        }
        // An invalid port must not be treated as a missing one.
        let is_bare = authority.as_str().len() == authority.host().len();
        let port = authority.port_u16();
        if port.is_none() && !is_bare {
            return Err(misuse(text, "its port is not a number up to 65535"));
        }
        if uri.query().is_some() {
            return Err(misuse(text, "it has a query; leave it out"));
        }
        let host = authority.host().to_owned();
        let path = if uri.path().is_empty() { "/" } else { uri.path() };
        let place = match scheme {
            "http" | "https" => {
                let is_secure = scheme == "https";
                let port = port.unwrap_or(if is_secure { 443 } else { HTTP_PORT });
                ListenAddress::Http { is_secure, host, port, path: path.to_owned() }
            }
            "ws" | "wss" => {
                let fix = "WebSocket is served together with HTTP; write http:// (or https://)";
                return Err(misuse(text, fix));
            }
            "tcp" if path != "/" => {
                return Err(misuse(text, "it has a path; write tcp://host:port"));
            }
            "tcp" => match port {
                Some(port) => ListenAddress::Tcp { host, port },
                None => return Err(misuse(text, "it has no port; write tcp://host:port")),
            },
            _ => return Err(misuse(text, EXAMPLES)),
        };
        Ok(Self { place })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            ListenAddress::Http { port, .. } | ListenAddress::Tcp { port, .. } => {
                f.write_str(&self.url(*port, false))
            }
            ListenAddress::Unix(_) | ListenAddress::HttpUnix(_) => f.write_str(&self.url(0, false)),
        }
    }
}

fn misuse(text: &str, problem: &str) -> Error {
    Error::misuse(format!("{text:?} is not an address to listen at: {problem}"))
}
