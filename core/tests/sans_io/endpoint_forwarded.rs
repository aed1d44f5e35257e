//! Requests that a proxy passes on. How the headers are read is tested with the module itself.

use std::net::IpAddr;

use gudgeon::http::{EndpointConfig, GuardConfig, Peer};
use serde_json::json;

use crate::support::{fixture, request::Request, visitor::Visitor};

const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 9));

/// Behind trusted proxies in 10.0.0.0/8, for clients that call `mcp.example`.
fn visitor() -> Visitor {
    let guard = GuardConfig {
        allowed_hosts: vec!["mcp.example".into()],
        trusted_proxies: vec!["10.0.0.0/8".into()],
        ..GuardConfig::default()
    };
    Visitor::new(fixture::components(), EndpointConfig { guard, ..EndpointConfig::default() })
}

#[test]
fn handlers_see_the_client_that_a_trusted_proxy_names() {
    let call = json!({"name": "count", "arguments": {"steps": 1}});
    for (peer, header, value, client) in [
        (PROXY, "forwarded", "for=192.0.2.1, for=10.0.0.2", "192.0.2.1"),
        (PROXY, "x-forwarded-for", "192.0.2.1, 10.0.0.2", "192.0.2.1"),
        (PROXY, "forwarded", "for=_hidden", "10.0.0.1"),
        (PROXY, "forwarded", "nonsense", "10.0.0.1"),
        (STRANGER, "forwarded", "for=192.0.2.1", "192.0.2.9"),
        (STRANGER, "forwarded", "nonsense", "192.0.2.9"),
        (STRANGER, "x-forwarded-for", "10.0.0.2", "192.0.2.9"),
    ] {
        let mut visitor = visitor();
        visitor.remote = Some(peer);
        visitor.request(&Request::modern("tools/call", call.clone()).header(header, value));
        let context = &visitor.runs[0].context;
        let expected = Some(client.parse().unwrap());
        assert_eq!(context.remote, expected, "{peer} {header}: {value}");
        assert_eq!(context.http.as_ref().unwrap().remote, expected);
    }
}

#[test]
fn the_host_that_a_trusted_proxy_names_is_checked() {
    let mut visitor = visitor();
    let ping = Request::modern("server/discover", json!({})).header("host", "127.0.0.1:8000");
    for (header, prefix) in [("forwarded", "for=192.0.2.1;host="), ("x-forwarded-host", "")] {
        for host in ["mcp.example", "MCP.example:443", "localhost"] {
            visitor.remote = Some(PROXY);
            visitor.serves(&ping.clone().header(header, &format!("{prefix}{host}")));
        }
        for host in ["evil.example", "\"a b\""] {
            let forged = ping.clone().header(header, &format!("{prefix}{host}"));
            visitor.remote = Some(PROXY);
            visitor.rejects(&forged, 421, "allowed_hosts");
            // Of others the headers say nothing.
            visitor.remote = Some(STRANGER);
            visitor.serves(&forged);
            visitor.remote = None;
            visitor.serves(&forged);
        }
        visitor.remote = Some(STRANGER);
        let foreign = ping.clone().header("host", "evil.example");
        let forged = foreign.header(header, &format!("{prefix}mcp.example"));
        visitor.rejects(&forged, 421, "allowed_hosts");
    }
}

#[test]
fn a_message_connection_comes_from_the_client_that_a_trusted_proxy_names() {
    let visitor = visitor();
    for (host, is_served) in [("mcp.example", true), ("evil.example", false)] {
        let request = http::Request::get("/mcp")
            .header("host", "localhost")
            .header("forwarded", format!("for=192.0.2.1;host={host}"));
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let client =
            visitor.endpoint.admission().client_address(&mut head, Some(Peer::Address(PROXY)));
        assert_eq!(client, Some(IpAddr::from([192, 0, 2, 1])));
        assert_eq!(visitor.endpoint.admit_upgrade(&head).is_ok(), is_served, "{host}");
    }
}

#[test]
fn a_program_on_a_unix_socket_is_trusted_by_name() {
    for (trusted, expected) in [("unix", Some(IpAddr::from([192, 0, 2, 1]))), ("10.0.0.0/8", None)]
    {
        let guard = GuardConfig { trusted_proxies: vec![trusted.into()], ..GuardConfig::default() };
        let config = EndpointConfig { guard, ..EndpointConfig::default() };
        let visitor = Visitor::new(fixture::components(), config);
        let request = http::Request::get("/mcp").header("forwarded", "for=192.0.2.1");
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let client = visitor.endpoint.admission().client_address(&mut head, Some(Peer::UnixSocket));
        assert_eq!(client, expected, "{trusted}");
    }
}

#[test]
fn clients_behind_a_proxy_have_shares_of_their_own() {
    let guard = GuardConfig { trusted_proxies: vec!["10.0.0.1".into()], ..GuardConfig::default() };
    let config = EndpointConfig { guard, max_in_flight: 2, ..EndpointConfig::default() };
    for (peer, status) in [(PROXY, None), (STRANGER, Some(503))] {
        let mut visitor = Visitor::new(fixture::components(), config.clone());
        visitor.remote = Some(peer);
        let mut call = |client: &str| {
            let wait = json!({"name": "wait", "arguments": {}});
            let request = Request::modern("tools/call", wait);
            let id = visitor.request(&request.header("forwarded", &format!("for={client}")));
            visitor.replies.get(&id).map(|reply| reply.status)
        };
        assert_eq!([call("192.0.2.1"), call("192.0.2.1")], [None, None]);
        // Another client still has a share, if it is known to be another one.
        assert_eq!(call("192.0.2.2"), status, "{peer}");
    }
}
