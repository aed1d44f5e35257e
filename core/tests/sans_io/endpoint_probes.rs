//! `health` and `ready`: answered before every other check, and in each state of the endpoint. Paths and answers in detail are
//! tested with the probes themselves.

use gudgeon::http::{EndpointConfig, EndpointInput};
use serde_json::json;

use crate::support::{fixture, request::Request, visitor::Visitor};

const HEALTH: &str = "/healthz";
const READY: &str = "/readyz";

fn probed(config: EndpointConfig) -> Visitor {
    let (health, ready) = (Some(HEALTH.into()), Some(READY.into()));
    Visitor::new(fixture::components(), EndpointConfig { health, ready, ..config })
}

fn status(visitor: &mut Visitor, method: &'static str, path: &str) -> u16 {
    let id = visitor.request(&Request::new(method, path));
    visitor.reply(id).status
}

#[test]
fn probes_of_any_host_and_page_are_answered() {
    let mut visitor = probed(EndpointConfig::default());
    for path in [HEALTH, READY] {
        for method in ["GET", "HEAD"] {
            for (name, value) in [
                ("host", "10.0.0.7:8000"),
                ("host", "a b"),
                ("origin", "http://evil.example.com"),
                ("accept", "image/png"),
                ("mcp-protocol-version", "no version"),
            ] {
                let id = visitor.request(&Request::new(method, path).header(name, value));
                let reply = visitor.reply(id);
                assert_eq!((reply.status, &*reply.body), (200, "ok\n"), "{name}: {value}");
                assert_eq!(reply.header("content-type"), "text/plain");
            }
        }
        let id = visitor.request(&Request::new("POST", path).header("host", "10.0.0.7"));
        assert_eq!(
            (visitor.reply(id).status, visitor.reply(id).header("allow")),
            (405, "GET, HEAD")
        );
    }
    let mut without = Visitor::new(fixture::components(), EndpointConfig::default());
    assert_eq!(status(&mut without, "GET", HEALTH), 404);
}

#[test]
fn a_full_server_is_healthy_and_ready() {
    let mut visitor = probed(EndpointConfig {
        max_in_flight: 1,
        max_sessions: 1,
        metrics: Some("/metrics".into()),
        ..EndpointConfig::default()
    });
    let session = visitor.open("2025-11-25", json!({}));
    visitor.call(&session, 1, "wait");
    assert!(visitor.endpoint.is_full());
    // The share of a client that holds nothing is used as well.
    visitor.remote = Some(std::net::Ipv4Addr::LOCALHOST.into());
    visitor.call(&session, 2, "wait");
    for path in [HEALTH, READY, "/metrics"] {
        assert_eq!(status(&mut visitor, "GET", path), 200, "{path}");
    }
}

#[test]
fn a_server_that_shuts_down_is_healthy_and_not_ready() {
    for input in [EndpointInput::ShutDown, EndpointInput::Closed] {
        let mut visitor = probed(EndpointConfig::default());
        visitor.handle(EndpointInput::EndStreams);
        assert_eq!(status(&mut visitor, "GET", READY), 200);
        visitor.handle(input);
        assert_eq!(status(&mut visitor, "HEAD", HEALTH), 200);
        let id = visitor.request(&Request::new("GET", READY));
        let reply = visitor.reply(id);
        assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
        assert_eq!(reply.body, "the server is shutting down\n");
    }
}
