//! The check of `Host` and `Origin`, which keeps web pages out (spec: Streamable HTTP, "Security & Endpoint").

use gudgeon::auth::url::WebUrl;
use hyper::{HeaderMap, header};

/// Returns the reason to reject a request: its host or its page's origin is not this machine.
pub(super) fn refusal(headers: &HeaderMap) -> Option<String> {
    let hosts: Vec<_> = headers.get_all(header::HOST).iter().collect();
    let host = match hosts[..] {
        [host] => host.to_str().unwrap_or_default(),
        _ => return Some("a request has one Host".into()),
    };
    if !is_here(&format!("http://{host}")) {
        return Some(format!("the host {host:?} is not this machine"));
    }
    headers.get_all(header::ORIGIN).iter().find_map(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        (!is_here(origin)).then(|| format!("pages of the origin {origin:?} may not call"))
    })
}

/// Returns whether an origin is on this machine.
fn is_here(origin: &str) -> bool {
    WebUrl::parse(origin).is_ok_and(|url| url.is_loopback() && url.path().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let values = [(header::HOST, Some(host)), (header::ORIGIN, origin)];
        let given =
            values.into_iter().filter_map(|(name, value)| Some((name, value?.parse().ok()?)));
        given.collect()
    }

    #[test]
    fn only_this_machine_may_call() {
        for host in ["localhost:8000", "127.0.0.1", "[::1]:80", "[::1]"] {
            assert_eq!(refusal(&headers(host, None)), None, "{host}");
        }
        for host in ["example.org", "127.0.0.1.example.org:80", "localhost:1@example.org", ""] {
            assert!(refusal(&headers(host, None)).is_some(), "{host}");
        }
        assert_eq!(refusal(&headers("localhost", Some("http://localhost:6274"))), None);
        for origin in ["https://example.org", "null", "http://localhost.example.org"] {
            assert!(refusal(&headers("localhost", Some(origin))).is_some(), "{origin}");
        }
    }
}
