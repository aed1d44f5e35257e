//! The check of `Host` and `Origin`, which keeps web pages out (spec: Streamable HTTP, "Security & Endpoint").

use std::net::IpAddr;

use hyper::{HeaderMap, Uri, header};

/// Returns the reason to reject a request: its host or its page's origin is not this machine.
pub(super) fn refusal(headers: &HeaderMap) -> Option<String> {
    let hosts: Vec<_> = headers.get_all(header::HOST).iter().collect();
    let host = match hosts[..] {
        [host] => host.to_str().unwrap_or_default(),
        _ => return Some("a request has one Host".into()),
    };
    if !is_loopback(without_port(host)) {
        return Some(format!("the host {host:?} is not this machine"));
    }
    headers.get_all(header::ORIGIN).iter().find_map(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        let uri: Option<Uri> = origin.parse().ok();
        let is_local = uri.as_ref().and_then(Uri::host).is_some_and(is_loopback);
        (!is_local).then(|| format!("pages of the origin {origin:?} may not call"))
    })
}

/// Returns whether a host is this machine: `localhost` or a loopback address.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|it: IpAddr| it.is_loopback())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let values = [(header::HOST, Some(host)), (header::ORIGIN, origin)];
        let given = values.into_iter().filter_map(|(name, it)| Some((name, it?.parse().ok()?)));
        given.collect()
    }

    #[test]
    fn only_this_machine_may_call() {
        for host in ["localhost:8000", "127.0.0.1", "[::1]:80", "[::1]"] {
            assert_eq!(refusal(&headers(host, None)), None, "{host}");
        }
        for host in ["example.org", "127.0.0.1.example.org:80", ""] {
            assert!(refusal(&headers(host, None)).is_some(), "{host}");
        }
        assert_eq!(refusal(&headers("localhost", Some("http://localhost:6274"))), None);
        for origin in ["https://example.org", "null", "http://localhost.example.org"] {
            assert!(refusal(&headers("localhost", Some(origin))).is_some(), "{origin}");
        }
    }
}
