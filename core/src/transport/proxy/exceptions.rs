//! The hosts that are reached without a proxy.

use std::net::IpAddr;

/// The variable that lists the hosts. Its lower-case name is read as well.
pub(super) const VARIABLE: &str = "NO_PROXY";

/// Returns whether the value of `NO_PROXY` lists a host and port.
///
/// Entries are separated by commas or spaces: `*` for every host; a domain for its subdomains, too, with or without a
/// leading dot; an IP address; or a range such as `10.0.0.0/8`. Each may have a port.
pub(super) fn lists(list: &str, host: &str, port: u16) -> bool {
    let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    list.split(|character: char| character == ',' || character.is_whitespace())
        .filter(|entry| !entry.is_empty())
        .any(|entry| {
            let (name, only) = split_port(entry);
            let is_name = match address {
                _ if name == "*" => true,
                Some(address) => is_in_range(address, name),
                None => is_within(host, name),
            };
            is_name && only.is_none_or(|only| only == port)
        })
}

/// Splits an entry into its host and its port. An IPv6 address with a port is in brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some(rest) = entry.strip_prefix('[')
        && let Some((address, rest)) = rest.split_once(']')
    {
        return match rest.strip_prefix(':').map(str::parse) {
            Some(Ok(port)) => (address, Some(port)),
            None if rest.is_empty() => (address, None),
            _ => (entry, None),
        };
    }
    match entry.split_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, Some(port)),
        _ => (entry, None),
    }
}

/// Returns whether a host is this domain or below it.
fn is_within(host: &str, domain: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let domain = domain.strip_prefix('*').unwrap_or(domain);
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let Some(start) = host.len().checked_sub(domain.len()) else { return false };
    let (Some(above), Some(end)) = (host.get(..start), host.get(start..)) else { return false };
    !domain.is_empty()
        && end.eq_ignore_ascii_case(domain)
        && (above.is_empty() || above.ends_with('.'))
}

/// Returns whether an address is this one or in this range.
fn is_in_range(address: IpAddr, range: &str) -> bool {
    let (network, length) = match range.split_once('/') {
        Some((network, length)) => (network, length.parse::<u32>().ok()),
        None => (range, Some(u128::BITS)),
    };
    let (Ok(network), Some(length)) = (network.parse::<IpAddr>(), length) else { return false };
    let (network, address, width) = match (network.to_canonical(), address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()), u128::from(address.to_bits()), u32::BITS)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits(), address.to_bits(), u128::BITS)
        }
        _ => return false,
    };
    let is_range = range.contains('/');
    if is_range && length > width {
        return false;
    }
    let ignored = width - length.min(width);
    // Shifting by all bits overflows: a range of length 0 contains every address.
    (network ^ address).checked_shr(ignored).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_matches_hosts_and_ports() {
        for (list, host, port, is_listed) in [
            ("", "shelf.example", 80, false),
            (",, ,", "shelf.example", 80, false),
            ("*", "shelf.example", 80, true),
            ("other, *", "10.0.0.1", 80, true),
            ("*:8080", "shelf.example", 80, false),
            ("*:8080", "shelf.example", 8080, true),
            // Names.
            ("shelf.example", "shelf.example", 443, true),
            ("SHELF.example", "Shelf.Example", 443, true),
            ("shelf.example", "a.shelf.example", 443, true),
            ("shelf.example", "bookshelf.example", 443, false),
            ("shelf.example", "example", 443, false),
            (".shelf.example", "a.b.shelf.example", 443, true),
            (".shelf.example", "shelf.example", 443, true),
            (".shelf.example", "bookshelf.example", 443, false),
            ("*.shelf.example", "a.shelf.example", 443, true),
            ("*shelf.example", "bookshelf.example", 443, false),
            ("shelf.example.", "shelf.example", 443, true),
            ("shelf.example", "shelf.example.", 443, true),
            ("other.example,shelf.example", "shelf.example", 443, true),
            ("other.example shelf.example", "shelf.example", 443, true),
            ("example", "shelf.example", 443, true),
            (".", "shelf.example", 443, false),
            ("h\u{f6}st", "st", 443, false),
            // Ports.
            ("shelf.example:443", "shelf.example", 443, true),
            ("shelf.example:443", "a.shelf.example", 443, true),
            ("shelf.example:443", "shelf.example", 8443, false),
            ("shelf.example:https", "shelf.example", 443, false),
            // Addresses.
            ("10.1.2.3", "10.1.2.3", 80, true),
            ("10.1.2.3:80", "10.1.2.3", 80, true),
            ("10.1.2.3:81", "10.1.2.3", 80, false),
            ("10.1.2.3", "10.1.2.30", 80, false),
            ("2.3", "10.1.2.3", 80, false),
            ("10.1.2.3", "::ffff:10.1.2.3", 80, true),
            ("2001:db8::1", "2001:db8:0::1", 80, true),
            ("[2001:db8::1]", "2001:db8::1", 80, true),
            ("[2001:db8::1]:80", "2001:db8::1", 80, true),
            ("[2001:db8::1]:81", "2001:db8::1", 80, false),
            ("[2001:db8::1]x", "2001:db8::1", 80, false),
            ("[2001:db8::1", "2001:db8::1", 80, false),
            // Ranges.
            ("10.0.0.0/8", "10.255.0.1", 80, true),
            ("10.0.0.0/8", "11.0.0.1", 80, false),
            ("10.1.2.3/24", "10.1.2.77", 80, true),
            ("10.1.2.3/32", "10.1.2.4", 80, false),
            ("0.0.0.0/0", "192.0.2.1", 80, true),
            ("0.0.0.0/0", "2001:db8::1", 80, false),
            ("10.0.0.0/33", "10.0.0.0", 80, false),
            ("10.0.0.0/x", "10.0.0.0", 80, false),
            ("10.0.0.0/-1", "10.0.0.0", 80, false),
            ("2001:db8::/32", "2001:db8:ffff::1", 80, true),
            ("2001:db8::/32", "2001:db9::1", 80, false),
            ("2001:db8::/128", "2001:db8::1", 80, false),
            ("::/0", "2001:db8::1", 80, true),
            ("10.0.0.0/8", "shelf.example", 80, false),
        ] {
            assert_eq!(lists(list, host, port), is_listed, "{list:?} and {host}:{port}");
        }
    }
}
