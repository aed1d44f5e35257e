use super::*;
use crate::{
    protocol::Implementation,
    router::{Components, ServerFacts},
};

fn routes(path: &str, needs_auth: bool) -> Arc<Routes> {
    let mut components = Components::new(ServerFacts::from(Implementation::new("t", "")));
    components.add_route("POST", path, needs_auth, Arc::new(())).expect("a valid route");
    components.routes
}

fn config() -> EndpointConfig {
    EndpointConfig {
        health: Some("/healthz".into()),
        ready: Some("/readyz".into()),
        ..EndpointConfig::default()
    }
}

#[test]
fn paths_that_are_used_already_are_refused() {
    for (path, used_by) in [
        ("/mcp", "the endpoint"),
        ("/mcp/", "the endpoint"),
        ("/sse", "the transport of 2024-11-05"),
        ("/healthz", "health"),
        ("/readyz/", "ready"),
        ("/.well-known/oauth-protected-resource/mcp", "the documents and pages of OAuth"),
    ] {
        let error = check(&config(), &routes(path, false)).expect_err(path).to_string();
        let expected = format!("route {path:?}: this is a path of {used_by}; choose another one");
        assert!(error.contains(&expected), "{error}");
    }
    for path in ["/", "/hooks", "/mcp/hooks", "/hooks/mcp", "/health", "/sse/x"] {
        check(&config(), &routes(path, false)).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let at_root = EndpointConfig { path: Some("/".into()), ..EndpointConfig::default() };
    assert!(check(&at_root, &routes("/", false)).is_err());
}

#[test]
fn a_route_with_auth_needs_a_server_with_auth() {
    let error = check(&config(), &routes("/hooks", true)).unwrap_err().to_string();
    let expected =
        "route POST \"/hooks\": its callers are to be authenticated, and the server has no auth";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_url_of_a_request_is_the_one_that_the_client_used() {
    for (host, uri, is_encrypted, url) in [
        (
            Some("shelf.example.org:8443"),
            "/hooks?a=1",
            true,
            "https://shelf.example.org:8443/hooks?a=1",
        ),
        (Some("localhost"), "/", false, "http://localhost/"),
        (Some("a b"), "/hooks", false, "http://localhost/hooks"),
        (None, "/hooks", false, "http://localhost/hooks"),
        (Some("other"), "http://shelf.example.org/hooks", false, "http://shelf.example.org/hooks"),
    ] {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().expect("a header"));
        }
        let uri: Uri = uri.parse().expect("a URI");
        assert_eq!(complete_url(&uri, &headers, is_encrypted), url);
    }
}
