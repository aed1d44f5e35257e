#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use proptest::{collection::vec, prelude::*};

use super::*;

const PROXY: Peer = Peer::Address(IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1)));

fn trusted(entries: &[&str]) -> TrustedProxies {
    TrustedProxies::parse(&entries.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

fn problem(entry: &str) -> String {
    TrustedProxies::parse(&[entry.to_owned()]).unwrap_err()
}

fn read(headers: &[(HeaderName, &str)]) -> Forwarded {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    Forwarded::read(&map, PROXY, &trusted(&["10.0.0.0/8", "fd00::/8"]))
}

/// Returns the client by `Forwarded` headers.
fn client(values: &[&str]) -> String {
    let headers: Vec<_> = values.iter().map(|value| (header::FORWARDED, *value)).collect();
    read(&headers).client.unwrap().to_string()
}

/// Returns the client by `X-Forwarded-For` headers.
fn x_client(values: &[&str]) -> String {
    let headers: Vec<_> = values.iter().map(|value| (X_FORWARDED_FOR, *value)).collect();
    read(&headers).client.unwrap().to_string()
}

fn target(headers: &[(HeaderName, &str)]) -> (Option<String>, Option<bool>) {
    let ForwardedTarget { host, is_encrypted } = read(headers).target;
    (host.map(String::from), is_encrypted)
}

#[test]
fn networks_contain_their_addresses() {
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("192.0.2.0/31", "::ffff:192.0.2.1", "::ffff:192.0.2.2"),
        ("::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("::1", "::1", "::2"),
        ("::/0", "2001:db8::1", "192.0.2.1"),
    ] {
        let trusted = trusted(&[network]);
        let contains = |text: &str| trusted.contains(Peer::parse(text).unwrap());
        assert!(contains(inside), "{network} {inside}");
        assert!(!contains(outside), "{network} {outside}");
        assert!(!contains("unix"), "{network}");
    }
    assert!(trusted(&["unix"]).contains(Peer::UnixSocket));
    assert!(!trusted(&["unix"]).contains(PROXY));
    assert!(trusted(&[]).is_empty() && !trusted(&["unix"]).is_empty());
}

#[test]
fn entries_that_are_not_networks_are_refused_with_the_fix() {
    for entry in
        ["", "localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "::/129", "10.0.0.0/8/8", "*"]
    {
        assert!(problem(entry).contains("is not an address or a network"), "{entry}");
    }
    assert!(problem("::ffff:0.0.0.0/90").contains("is not an address or a network"));
    let problem = problem("10.0.0.7/8");
    assert!(problem.contains("write \"10.0.0.0/8\" for the network"), "{problem}");
    assert!(problem.contains("\"10.0.0.7\" for the address"), "{problem}");
}

#[test]
fn the_first_address_from_the_right_that_is_not_trusted_is_the_client() {
    assert_eq!(client(&["for=192.0.2.1"]), "192.0.2.1");
    assert_eq!(client(&["for=192.0.2.9, for=192.0.2.1, for=10.0.0.2"]), "192.0.2.1");
    assert_eq!(
        client(&["for=192.0.2.9", "for=192.0.2.1, for=10.0.0.2", "for=10.3.3.3"]),
        "192.0.2.1"
    );
    assert_eq!(
        client(&["for=10.0.0.3, for=10.0.0.2"]),
        "10.0.0.3",
        "the leftmost if all are trusted"
    );
    assert_eq!(x_client(&["192.0.2.9, 192.0.2.1, 10.0.0.2"]), "192.0.2.1");
    assert_eq!(x_client(&["192.0.2.9,192.0.2.1", "10.0.0.2"]), "192.0.2.1");
    assert_eq!(x_client(&["10.0.0.3,10.0.0.2"]), "10.0.0.3");
    assert_eq!(read(&[]).client, PROXY.address());
}

#[test]
fn addresses_have_ports_brackets_and_quotes() {
    for (node, address) in [
        ("192.0.2.1:4711", "192.0.2.1"),
        ("\"192.0.2.1:4711\"", "192.0.2.1"),
        ("\"192.0.2.1:_p-1\"", "192.0.2.1"),
        ("\"[2001:db8::17]:4711\"", "2001:db8::17"),
        ("\"[2001:db8::17]\"", "2001:db8::17"),
        ("\"\\192.0.2.1\"", "192.0.2.1"),
        ("\"[::ffff:192.0.2.1]\"", "192.0.2.1"),
    ] {
        assert_eq!(client(&[&format!("For={node}")]), address, "{node}");
    }
    for (node, address) in [
        ("192.0.2.1:80", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ] {
        assert_eq!(x_client(&[node]), address, "{node}");
    }
}

#[test]
fn entries_without_an_address_end_the_search_at_the_last_one() {
    for entry in [
        "for=unknown",
        "for=_hidden",
        "for=\"_gazonk:80\"",
        "proto=https",
        "for=localhost",
        "for=192.0.2.1:x",
        "for=\"192.0.2.1:80000\"",
        "for=[2001:db8::1",
        "for=192.0.2.1;for=192.0.2.1",
        "for=192.0.2.1 proto=https",
        "for=",
        "for",
        "for=\"192.0.2.1",
        "for=\"192.0.2.1\\\"",
        "",
        "for=192.0.2.\u{e4}",
    ] {
        assert_eq!(client(&["for=192.0.2.9", entry]), "10.0.0.1", "{entry}");
        assert_eq!(client(&["for=192.0.2.9", entry, "for=10.0.0.2"]), "10.0.0.2", "{entry}");
    }
    for entry in ["unknown", "_hidden", "", "192.0.2.1:x", "192.0.2.256", "\"192.0.2.1\""] {
        assert_eq!(x_client(&[&format!("192.0.2.9, {entry}")]), "10.0.0.1", "{entry}");
        assert_eq!(x_client(&[&format!("{entry},10.0.0.2")]), "10.0.0.2", "{entry}");
    }
}

#[test]
fn a_client_does_not_reach_into_the_entries_of_proxies() {
    for forged in
        ["for=\"10.0.0.9", "for=10.0.0.9\\", "\"", "\\\"", "for=\"a, for=\"", ";;;", "for=\"a\\"]
    {
        assert_eq!(client(&[&format!("{forged}, for=192.0.2.1")]), "192.0.2.1", "{forged}");
        let quoted = format!("{forged}, for=\"192.0.2.1:80\";by=\"a, \\\"b\"");
        assert_eq!(client(&[&quoted]), "192.0.2.1", "{forged}");
    }
}

#[test]
fn at_most_32_addresses_are_read() {
    let proxies = |count| vec!["for=10.0.0.2"; count].join(",");
    assert_eq!(client(&[&format!("for=192.0.2.1,{}", proxies(31))]), "192.0.2.1");
    assert_eq!(client(&[&format!("for=192.0.2.1,{}", proxies(32))]), "10.0.0.2");
    let proxies = |count| vec!["10.0.0.2"; count].join(",");
    assert_eq!(x_client(&[&format!("192.0.2.1,{}", proxies(31))]), "192.0.2.1");
    assert_eq!(x_client(&[&format!("192.0.2.1,{}", proxies(32))]), "10.0.0.2");
}

#[test]
fn host_and_scheme_are_those_of_the_nearest_proxy() {
    let forwarded = |value| target(&[(header::FORWARDED, value)]);
    let some = |host: &str, is_encrypted| (Some(host.to_owned()), is_encrypted);
    assert_eq!(
        forwarded("for=192.0.2.1;host=a.example;proto=HTTPS"),
        some("a.example", Some(true))
    );
    assert_eq!(
        forwarded("host=\"a.example:8443\";proto=http"),
        some("a.example:8443", Some(false))
    );
    let two = "for=192.0.2.1;host=a.example;proto=https, for=10.0.0.2;host=b.example";
    assert_eq!(forwarded(two), some("b.example", Some(true)));
    let behind = "for=192.0.2.1;host=evil.example;proto=http, for=192.0.2.2;proto=https";
    assert_eq!(forwarded(behind), (None, Some(true)), "an untrusted client's entry does not count");
    assert_eq!(forwarded("for=192.0.2.1;proto=gopher"), (None, None));
    let x = |host, proto| target(&[(X_FORWARDED_HOST, host), (X_FORWARDED_PROTO, proto)]);
    assert_eq!(x("evil.example, a.example", "http, https"), some("a.example", Some(true)));
    assert_eq!(x("a.example", "wss"), some("a.example", Some(true)));
}

#[test]
fn of_two_kinds_of_headers_only_what_both_say_counts() {
    let proxies_own = [(X_FORWARDED_FOR, "192.0.2.2"), (X_FORWARDED_PROTO, "https")];
    let with = |standard| {
        let mut headers = vec![(header::FORWARDED, standard)];
        headers.extend(proxies_own.clone());
        let client = read(&headers).client.unwrap().to_string();
        (client, target(&headers))
    };
    let proxy = read(&[]).client.unwrap().to_string();
    assert_eq!(with("for=192.0.2.1;host=evil.example"), (proxy.clone(), (None, None)));
    assert_eq!(with("for=192.0.2.2;host=evil.example"), ("192.0.2.2".into(), (None, None)));
    assert_eq!(with("for=192.0.2.2;proto=https"), ("192.0.2.2".into(), (None, Some(true))));
    assert_eq!(with("nonsense"), (proxy, (None, None)));
}

proptest! {
    #[test]
    fn an_address_that_a_proxy_adds_counts_whatever_the_client_sent(
        forged in vec("[ -~]{0,60}|for=\"?1[0-9.]{0,9}\"?", 0..4),
        address in any::<u32>(),
        is_quoted in any::<bool>(),
    ) {
        let address = core::net::Ipv4Addr::from_bits(address);
        prop_assume!(address.octets()[0] != 10);
        let own = if is_quoted { format!("for=\"{address}:80\"") } else { format!("for={address}") };
        let whole = forged.iter().map(String::as_str).chain([&*own]).collect::<Vec<_>>();
        prop_assert_eq!(client(&[&whole.join(", ")]), address.to_string());
        prop_assert_eq!(client(&whole), address.to_string());
        let own = address.to_string();
        let whole = forged.iter().map(String::as_str).chain([&*own]).collect::<Vec<_>>();
        prop_assert_eq!(x_client(&[&whole.join(", ")]), address.to_string());
    }

    #[test]
    fn what_is_not_a_header_is_read_without_panics(value in vec(any::<u8>(), 0..200)) {
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            for name in [header::FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO] {
                let mut one = HeaderMap::new();
                one.insert(&name, value.clone());
                Forwarded::read(&one, PROXY, &trusted(&["0.0.0.0/0", "::/0"]));
                headers.append(name, value.clone());
            }
        }
        Forwarded::read(&headers, PROXY, &trusted(&["0.0.0.0/0", "::/0"]));
    }
}
