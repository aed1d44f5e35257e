//! The header of the PROXY protocol, versions 1 and 2, with which a proxy begins a connection that it passes on ("The PROXY
//! protocol", haproxy.org).

use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// The maximum length of a header of version 1, its line break included.
const MAX_V1: usize = 107;
/// The maximum length of a header of version 2: 16 bytes, and 520 of addresses and further fields.
const MAX_V2: usize = 536;
/// Every header is at least as long as the beginning that tells both versions apart.
const PREFIX: usize = V2_SIGNATURE.len();
const V1_SIGNATURE: &[u8] = b"PROXY ";
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The length of a header of version 2 without addresses.
const V2_FIXED: usize = 16;
const IPV4_ADDRESSES: usize = 12;
const IPV6_ADDRESSES: usize = 36;
const UNIX_ADDRESSES: usize = 216;

/// The beginning of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProxyHeader {
    /// At least this number of bytes of the header is missing, so that reading as many takes nothing of what follows it.
    Incomplete(usize),
    /// The header is complete. It names the client; `None` if the proxy itself is the client, or does not know it.
    Complete(Option<IpAddr>),
}

/// The reason why bytes are not a header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotAHeader {
    OtherProtocol,
    TooLong,
    Malformed,
}

impl ProxyHeader {
    /// Reads a header, or its beginning, after which bytes of the connection must not follow.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NotAHeader> {
        if begins(bytes, V2_SIGNATURE) {
            return parse_v2(bytes);
        }
        match begins(bytes, V1_SIGNATURE) {
            true => parse_v1(bytes),
            false => Err(NotAHeader::OtherProtocol),
        }
    }
}

/// Returns whether bytes begin with a signature, as far as they go.
fn begins(bytes: &[u8], signature: &[u8]) -> bool {
    let length = bytes.len().min(signature.len());
    bytes[..length] == signature[..length]
}

fn parse_v1(bytes: &[u8]) -> Result<ProxyHeader, NotAHeader> {
    if let Some(missing) = PREFIX.checked_sub(bytes.len()).filter(|missing| *missing > 0) {
        return Ok(ProxyHeader::Incomplete(missing));
    }
    let Some(line) = bytes.strip_suffix(b"\r\n") else {
        // A carriage return stands at the end of the line only.
        let (before, missing) = match bytes.strip_suffix(b"\r") {
            Some(before) => (before, 1),
            None => (bytes, 2),
        };
        return match (before.contains(&b'\r'), bytes.len() + missing <= MAX_V1) {
            (true, _) => Err(NotAHeader::Malformed),
            (false, true) => Ok(ProxyHeader::Incomplete(missing)),
            (false, false) => Err(NotAHeader::TooLong),
        };
    };
    let line = str::from_utf8(line).map_err(|_| NotAHeader::Malformed)?;
    let mut words = line.split(' ').skip(1);
    let client = match words.next() {
        // Whatever follows does not count.
        Some("UNKNOWN") => return Ok(ProxyHeader::Complete(None)),
        Some("TCP4") => addresses::<Ipv4Addr>(&mut words).map(IpAddr::V4),
        Some("TCP6") => addresses::<Ipv6Addr>(&mut words).map(IpAddr::V6),
        _ => None,
    };
    let client = client.filter(|_| words.next().is_none()).ok_or(NotAHeader::Malformed)?;
    Ok(ProxyHeader::Complete(Some(client)))
}

/// Reads the addresses of client and server, and their ports. Returns the client's address.
fn addresses<'a, A: FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Option<A> {
    let client = words.next()?.parse().ok()?;
    let _server: A = words.next()?.parse().ok()?;
    for _ in 0..2 {
        let port = words.next()?;
        port.parse::<u16>().ok().filter(|_| !port.starts_with('+'))?;
    }
    Some(client)
}

fn parse_v2(bytes: &[u8]) -> Result<ProxyHeader, NotAHeader> {
    let Some((fixed, rest)) = bytes.split_first_chunk::<V2_FIXED>() else {
        // The signature comes first by itself: version 1 may be shorter.
        let end = if bytes.len() < PREFIX { PREFIX } else { V2_FIXED };
        return Ok(ProxyHeader::Incomplete(end - bytes.len()));
    };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if V2_FIXED + length > MAX_V2 {
        return Err(NotAHeader::TooLong);
    }
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(NotAHeader::Malformed),
    };
    // The second half of the byte is the transport: any, a stream or datagrams.
    let needed = match (family >> 4, family & 0xf) {
        (_, 3..) | (4.., _) => return Err(NotAHeader::Malformed),
        _ if is_local => 0,
        (0, _) => 0,
        (1, _) => IPV4_ADDRESSES,
        (2, _) => IPV6_ADDRESSES,
        _ => UNIX_ADDRESSES,
    };
    if length < needed {
        return Err(NotAHeader::Malformed);
    }
    match length.checked_sub(rest.len()) {
        None => Err(NotAHeader::Malformed),
        Some(missing @ 1..) => Ok(ProxyHeader::Incomplete(missing)),
        Some(0) => Ok(ProxyHeader::Complete(match needed {
            IPV4_ADDRESSES => rest.first_chunk::<4>().map(|address| IpAddr::from(*address)),
            IPV6_ADDRESSES => rest.first_chunk::<16>().map(|address| IpAddr::from(*address)),
            _ => None,
        })),
    }
}

impl fmt::Display for NotAHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherProtocol => "it does not begin with a header of the PROXY protocol",
            Self::TooLong => "its header of the PROXY protocol is too long",
            Self::Malformed => "its header of the PROXY protocol is malformed",
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// A header of version 2.
    fn v2(command: u8, family: u8, fields: &[u8]) -> Vec<u8> {
        let length = u16::try_from(fields.len()).unwrap().to_be_bytes();
        [&V2_SIGNATURE[..], &[command, family], &length, fields].concat()
    }

    /// Reads a connection as a server does. Returns the client, and the number of bytes that the header has.
    fn read(bytes: &[u8]) -> Result<(Option<IpAddr>, usize), NotAHeader> {
        let mut end = 0;
        loop {
            match ProxyHeader::parse(&bytes[..end])? {
                ProxyHeader::Complete(client) => return Ok((client, end)),
                ProxyHeader::Incomplete(missing) => {
                    assert!(missing > 0);
                    end += missing;
                    assert!(end <= MAX_V2);
                    // The client closed the connection.
                    if end > bytes.len() {
                        return Err(NotAHeader::Malformed);
                    }
                }
            }
        }
    }

    /// Returns the client that a header names, or "none".
    fn client(header: &[u8]) -> Result<String, NotAHeader> {
        let whole = [header, b"GET / HTTP/1.1\r\n\r\n"].concat();
        let (client, length) = read(&whole)?;
        assert_eq!(length, header.len(), "nothing of the connection is taken");
        Ok(client.map_or("none".to_owned(), |client| client.to_string()))
    }

    const MALFORMED: Result<&str, &NotAHeader> = Err(&NotAHeader::Malformed);

    #[test]
    fn version_1_names_the_client() {
        for (line, expected) in [
            ("PROXY TCP4 192.0.2.1 10.0.0.1 56324 443\r\n", Ok("192.0.2.1")),
            ("PROXY TCP6 2001:db8::1 fd00::1 0 65535\r\n", Ok("2001:db8::1")),
            ("PROXY UNKNOWN\r\n", Ok("none")),
            ("PROXY UNKNOWN ffff:f 1 2 3\r\n", Ok("none")),
            ("PROXY TCP4 192.0.2.1 10.0.0.1 56324\r\n", MALFORMED),
            ("PROXY TCP4 192.0.2.1 10.0.0.1 56324 443 1\r\n", MALFORMED),
            ("PROXY TCP4 192.0.2.1 10.0.0.1 56324 65536\r\n", MALFORMED),
            ("PROXY TCP4 192.0.2.1 10.0.0.1 56324 +443\r\n", MALFORMED),
            ("PROXY TCP4 192.0.2.1  10.0.0.1 56324 443\r\n", MALFORMED),
            ("PROXY TCP4 2001:db8::1 fd00::1 1 2\r\n", MALFORMED),
            ("PROXY TCP6 192.0.2.1 10.0.0.1 1 2\r\n", MALFORMED),
            ("PROXY TCP5 192.0.2.1 10.0.0.1 1 2\r\n", MALFORMED),
            ("PROXY  TCP4 192.0.2.1 10.0.0.1 1 2\r\n", MALFORMED),
            ("PROXY TCP4 192.0.2.1\r10.0.0.1 1 2\r\n", MALFORMED),
            ("PROXY TCP4 192.0.2.1 10.0.0.1 1 2\n", MALFORMED),
            ("PROXY TCP4 \u{e4} 10.0.0.1 1 2\r\n", MALFORMED),
        ] {
            assert_eq!(client(line.as_bytes()).as_deref(), expected, "{line}");
        }
        let longest = |filler| format!("PROXY UNKNOWN {}\r\n", "x".repeat(filler));
        assert_eq!(longest(91).len(), MAX_V1);
        assert_eq!(client(longest(91).as_bytes()).as_deref(), Ok("none"));
        assert_eq!(client(longest(92).as_bytes()), Err(NotAHeader::TooLong));
    }

    #[test]
    fn version_2_names_the_client() {
        let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0, 80, 1, 187];
        let mut v6 = [0; IPV6_ADDRESSES];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        v6[15] = 1;
        let with_more = [&v4[..], &[3, 0, 4, 1, 2, 3, 4]].concat();
        for (header, expected) in [
            (v2(0x21, 0x11, &v4), Ok("192.0.2.1")),
            (v2(0x21, 0x11, &with_more), Ok("192.0.2.1")),
            (v2(0x21, 0x21, &v6), Ok("2001:db8::1")),
            (v2(0x20, 0x11, &v4), Ok("none")),
            (v2(0x20, 0x00, &[]), Ok("none")),
            (v2(0x20, 0x11, &[]), Ok("none")),
            (v2(0x21, 0x00, &[1, 2, 3]), Ok("none")),
            (v2(0x21, 0x31, &[1; UNIX_ADDRESSES]), Ok("none")),
            (v2(0x21, 0x31, &[1; 8]), MALFORMED),
            (v2(0x21, 0x11, &v4[..11]), MALFORMED),
            (v2(0x21, 0x21, &v4), MALFORMED),
            (v2(0x21, 0x13, &v4), MALFORMED),
            (v2(0x21, 0x41, &v4), MALFORMED),
            (v2(0x22, 0x11, &v4), MALFORMED),
            (v2(0x11, 0x11, &v4), MALFORMED),
        ] {
            assert_eq!(client(&header).as_deref(), expected, "{header:?}");
        }
        let of_length = |length| v2(0x20, 0x00, &vec![0; length]);
        assert_eq!(client(&of_length(MAX_V2 - V2_FIXED)).as_deref(), Ok("none"));
        assert_eq!(client(&of_length(MAX_V2 - V2_FIXED + 1)), Err(NotAHeader::TooLong));
    }

    #[test]
    fn other_protocols_are_recognized_by_their_first_bytes() {
        for bytes in
            [&b"G"[..], b"POST /mcp HTTP/1.1\r\n", b"\x16\x03\x01", b"PROXX", b"\r\n\r\n\0\r\nQUIX"]
        {
            assert_eq!(ProxyHeader::parse(bytes), Err(NotAHeader::OtherProtocol), "{bytes:?}");
        }
        for bytes in [&b""[..], b"P", b"PROXY ", b"\r", b"\r\n\r\n\0\r\nQUIT"] {
            assert!(
                matches!(ProxyHeader::parse(bytes), Ok(ProxyHeader::Incomplete(_))),
                "{bytes:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_header_of_an_address_is_read_as_it_was_written(address in any::<[u8; 16]>(), is_v4 in any::<bool>()) {
            let (server, ports) = ([7; 16], [1, 2, 3, 4]);
            let short = Ipv4Addr::from(*address.first_chunk::<4>().unwrap());
            let long = Ipv6Addr::from(address);
            let (line, binary, expected) = match is_v4 {
                true => (
                    format!("PROXY TCP4 {short} 7.7.7.7 1 2\r\n"),
                    v2(0x21, 0x11, &[&address[..4], &server[..4], &ports].concat()),
                    IpAddr::V4(short),
                ),
                false => (
                    format!("PROXY TCP6 {long} ::7 1 2\r\n"),
                    v2(0x21, 0x21, &[&address[..], &server, &ports].concat()),
                    IpAddr::V6(long),
                ),
            };
            prop_assert_eq!(client(line.as_bytes()), Ok(expected.to_string()));
            prop_assert_eq!(client(&binary), Ok(expected.to_string()));
        }

        #[test]
        fn arbitrary_bytes_are_read_within_the_limit_and_without_panics(
            bytes in vec(any::<u8>(), 0..700),
            beginning in prop_oneof![Just(&b""[..]), Just(&V2_SIGNATURE[..]), Just(&b"PROXY TCP4 "[..])],
        ) {
            let bytes = [beginning, &bytes].concat();
            let _ = read(&bytes);
            let _ = ProxyHeader::parse(&bytes);
        }
    }
}
