//! Forwarding headers: `Forwarded` (RFC 7239) and `X-Forwarded-*`. They count if a trusted proxy sent them.

mod node;
#[cfg(test)]
mod tests;

use core::{fmt, net::IpAddr};
use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use self::node::address_of;

/// The maximum number of addresses that are read of a request.
const MAX_HOPS: usize = 32;
/// The entry of `trusted_proxies` for peers on Unix sockets.
const UNIX_SOCKET: &str = "unix";
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The other side of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    Address(IpAddr),
    /// A program on this machine, which has no address.
    UnixSocket,
}

/// The peers whose forwarding headers count.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies {
    networks: Vec<Network>,
    has_unix_sockets: bool,
}

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug)]
struct Network {
    address: IpAddr,
    /// The number of these bits.
    prefix: u32,
}

/// The facts about a request that forwarding headers change.
#[derive(Debug)]
pub(super) struct Forwarded {
    /// The address of the client.
    pub(super) client: Option<IpAddr>,
    pub(super) target: ForwardedTarget,
}

/// The host and the scheme with which the client called the proxy: an extension of a request's head.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct ForwardedTarget {
    pub(super) host: Option<Box<str>>,
    /// `true` for `https`.
    pub(super) is_encrypted: Option<bool>,
}

impl Peer {
    /// Reads an IP address, or `unix`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            UNIX_SOCKET => Some(Self::UnixSocket),
            address => address.parse().ok().map(Self::Address),
        }
    }

    /// Returns the address, if the peer has one.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address),
            Self::UnixSocket => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::UnixSocket => f.write_str("a Unix socket"),
        }
    }
}

impl TrustedProxies {
    /// Reads the entries of the option. Errors with the problem of the first one that is not valid, and how to fix it.
    pub(crate) fn parse(entries: &[String]) -> Result<Self, String> {
        let mut trusted = Self::default();
        for entry in entries {
            match entry.trim() {
                UNIX_SOCKET => trusted.has_unix_sockets = true,
                network => trusted.networks.push(Network::parse(network)?),
            }
        }
        Ok(trusted)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.has_unix_sockets
    }

    /// Returns whether a peer is a trusted proxy.
    pub(crate) fn contains(&self, peer: Peer) -> bool {
        match peer {
            Peer::Address(address) => {
                let address = address.to_canonical();
                self.networks.iter().any(|network| network.contains(address))
            }
            Peer::UnixSocket => self.has_unix_sockets,
        }
    }
}

impl Network {
    fn parse(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let parsed = address.parse::<IpAddr>().ok().and_then(|address| {
            let width = width(address);
            let prefix = match prefix {
                Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    digits.parse().ok().filter(|prefix| *prefix <= width)?
                }
                Some(_) => return None,
                None => width,
            };
            let canonical = address.to_canonical();
            // An IPv4-mapped IPv6 address is the IPv4 address in its last 32 bits.
            let prefix = prefix.checked_sub(width - self::width(canonical))?;
            Some(Self { address: canonical, prefix })
        });
        let Some(network) = parsed else {
            return Err(format!(
                "{text:?} is not an address or a network; write such as \"10.0.0.7\", \"10.0.0.0/8\", \"fd00::/8\" or \
                 \"{UNIX_SOCKET}\""
            ));
        };
        let first = network.first();
        match first == network.address {
            true => Ok(network),
            false => Err(format!(
                "{text:?} has bits of an address behind its prefix; write \"{first}/{0}\" for the network, or \"{1}\" for \
                 the address",
                network.prefix, network.address
            )),
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        width(address) == width(self.address)
            && self.without_host(address) == self.without_host(self.address)
    }

    /// Returns the first address of the network.
    fn first(&self) -> IpAddr {
        let bits = self.without_host(self.address);
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(u32::try_from(bits).unwrap_or_default().into()),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        }
    }

    /// Returns the bits of an address of the same family, with zeros behind the prefix.
    fn without_host(&self, address: IpAddr) -> u128 {
        let bits = match address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let host = width(self.address) - self.prefix;
        // A shift by all bits overflows.
        bits.checked_shr(host).and_then(|network| network.checked_shl(host)).unwrap_or(0)
    }
}

/// Returns the number of bits of an address.
fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl Forwarded {
    /// Reads the headers of a request that a trusted proxy sent. Of a request with `Forwarded` and
    /// `X-Forwarded-*` only what both say counts: a proxy may write one of them and pass on what a client wrote into the other.
    ///
    /// Addresses are read from the right, because each proxy adds one there: the first that is not a trusted proxy is the
    /// client. An entry that has no address ends the search, and the client is then the last address that was read.
    pub(super) fn read(headers: &HeaderMap, peer: Peer, trusted: &TrustedProxies) -> Self {
        let unread = || Self { client: None, target: ForwardedTarget::default() };
        let others = [X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO];
        let has_others = others.iter().any(|name| headers.contains_key(name));
        let read = match headers.contains_key(header::FORWARDED) {
            true if has_others => {
                let standard = unread().read_standard(headers, trusted);
                standard.confirmed_by(&unread().read_x_headers(headers, trusted))
            }
            true => unread().read_standard(headers, trusted),
            false => unread().read_x_headers(headers, trusted),
        };
        Self { client: read.client.or_else(|| peer.address()), ..read }
    }

    /// Returns what both say.
    fn confirmed_by(self, other: &Self) -> Self {
        let target = ForwardedTarget {
            host: self.target.host.filter(|host| other.target.host.as_ref() == Some(host)),
            is_encrypted: self
                .target
                .is_encrypted
                .filter(|is_encrypted| other.target.is_encrypted == Some(*is_encrypted)),
        };
        Self { client: self.client.filter(|client| other.client == Some(*client)), target }
    }

    fn read_standard(mut self, headers: &HeaderMap, trusted: &TrustedProxies) -> Self {
        let values = headers.get_all(header::FORWARDED).iter().rev();
        // A value that is not ASCII is an entry that can't be read.
        let entries = values.flat_map(|value| EntriesFromRight(Some(text(value))));
        for entry in entries.take(MAX_HOPS) {
            let Some(Entry { node, host, proto }) = Entry::parse(entry) else { break };
            let ForwardedTarget { host: known_host, is_encrypted } = &mut self.target;
            // The nearest proxy is read first.
            *known_host = known_host.take().or_else(|| host.map(Into::into));
            *is_encrypted = is_encrypted.or_else(|| is_https(&proto?));
            if !self.passes(node.as_deref(), trusted) {
                break;
            }
        }
        self
    }

    fn read_x_headers(mut self, headers: &HeaderMap, trusted: &TrustedProxies) -> Self {
        let last = |name| {
            let value = headers.get_all(name).iter().next_back().map(text)?;
            value.rsplit(',').next().map(str::trim)
        };
        self.target.host = last(X_FORWARDED_HOST).map(Into::into);
        self.target.is_encrypted = last(X_FORWARDED_PROTO).and_then(is_https);
        let values = headers.get_all(X_FORWARDED_FOR).iter().rev();
        for entry in values.flat_map(|value| text(value).rsplit(',')).take(MAX_HOPS) {
            if !self.passes(Some(entry.trim()), trusted) {
                break;
            }
        }
        self
    }

    /// Notes the address in an entry. Returns whether it is a trusted proxy, whose own entry comes next.
    fn passes(&mut self, node: Option<&str>, trusted: &TrustedProxies) -> bool {
        let Some(address) = node.and_then(address_of) else { return false };
        self.client = Some(address);
        trusted.contains(Peer::Address(address))
    }
}

/// Returns the text of a header; an empty one, which has no address, if it is not ASCII.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

/// Returns `None` for a scheme that is not one of HTTP or of WebSocket.
fn is_https(scheme: &str) -> Option<bool> {
    let is_one_of = |names: [&str; 2]| names.iter().any(|name| name.eq_ignore_ascii_case(scheme));
    match (is_one_of(["https", "wss"]), is_one_of(["http", "ws"])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        (false, false) => None,
    }
}

/// The entries of one `Forwarded` header, the last one first.
///
/// They are found from the right, so that a quote that a client leaves open does not reach into the entry of a proxy.
#[derive(Debug)]
struct EntriesFromRight<'a>(Option<&'a str>);

impl<'a> Iterator for EntriesFromRight<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.take()?;
        let bytes = rest.as_bytes();
        let mut is_quoted = false;
        for (at, byte) in bytes.iter().enumerate().rev() {
            match byte {
                b'"' => {
                    let escapes =
                        bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                    // Within quotes, an escaped one is a character.
                    is_quoted ^= !is_quoted || escapes % 2 == 0;
                }
                b',' if !is_quoted => {
                    self.0 = Some(&rest[..at]);
                    return Some(rest[at + 1..].trim());
                }
                _ => (),
            }
        }
        Some(rest.trim())
    }
}

/// The parameters of one proxy's entry in `Forwarded` that count here.
#[derive(Debug, Default)]
struct Entry<'a> {
    node: Option<Cow<'a, str>>,
    host: Option<Cow<'a, str>>,
    proto: Option<Cow<'a, str>>,
}

impl<'a> Entry<'a> {
    /// Returns `None` for an entry that is not valid. Values with a colon need no quotes, because many proxies write none.
    fn parse(text: &'a str) -> Option<Self> {
        let mut entry = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=')?;
            let (value, after) = parameter(after)?;
            let known =
                [("for", &mut entry.node), ("host", &mut entry.host), ("proto", &mut entry.proto)];
            let place = known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            // A parameter may occur once.
            if place.is_some_and(|(_, place)| place.replace(value).is_some()) {
                return None;
            }
            let after = after.trim_start();
            rest = match after.strip_prefix(';') {
                Some(more) => more.trim_start(),
                None if after.is_empty() => "",
                None => return None,
            };
        }
        Some(entry)
    }
}

/// Reads a value from the beginning of a text. Returns it without its quotes, and the rest of the text.
fn parameter(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ' ', '\t', '"']).unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].into(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value.into(), &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}
