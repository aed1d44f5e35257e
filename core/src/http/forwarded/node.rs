//! The address in an entry of a forwarding header.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the address, without its port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`.
/// Returns `None` for everything else, also for `unknown` and `_hidden`, with which a proxy withholds the address.
pub(super) fn address_of(node: &str) -> Option<IpAddr> {
    if let Ok(address) = node.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let (address, port): (IpAddr, _) = if let Some(rest) = node.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        (address.parse::<Ipv6Addr>().ok()?.into(), port)
    } else {
        let (address, port) = node.split_at(node.find(':')?);
        (address.parse::<Ipv4Addr>().ok()?.into(), port)
    };
    is_port(port).then(|| address.to_canonical())
}

/// Returns whether a text is empty, or a colon with a port or an obfuscated one (RFC 7239, section 6).
fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(port) => {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !port.is_empty()
                && port.bytes().all(is_allowed)
                && (port.starts_with('_') || port.parse::<u16>().is_ok())
        }
        None => text.is_empty(),
    }
}
