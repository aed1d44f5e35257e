use super::*;

#[test]
fn metrics_are_read_at_a_path_of_their_own() {
    let metrics = |path: &str| EndpointConfig {
        metrics: Some(path.to_owned()),
        ..config(Some("/mcp"), "/healthz", "/readyz")
    };
    let probes = Probes::new(&metrics("/metrics"));
    for (method, path, reads) in [
        (Method::GET, "/metrics", true),
        (Method::HEAD, "/metrics/", true),
        (Method::POST, "/metrics", false),
        (Method::GET, "/mcp/metrics", false),
        (Method::GET, "/healthz", false),
    ] {
        assert_eq!(probes.reads_metrics(&method, path), reads, "{method} {path}");
    }
    assert!(probes.answer(&Method::GET, "/metrics", || Readiness::Ready).is_none());
    let refused = probes.answer(&Method::POST, "/metrics", || Readiness::Ready).expect("a probe");
    assert_eq!(shown(refused, &["allow"]).0, 405);
    let mounted = Probes::new(&EndpointConfig { path: None, ..metrics("/metrics") });
    assert!(mounted.reads_metrics(&Method::GET, "/mcp/metrics"));
    for path in ["metrics", "/", "/mcp", "/sse", "/healthz", "/readyz/"] {
        let error = check(&metrics(path)).expect_err(path).to_string();
        assert!(error.starts_with("metrics: ") && error.contains("\"/metrics\""), "{error}");
    }
}

fn config(path: Option<&str>, health: &str, ready: &str) -> EndpointConfig {
    EndpointConfig {
        path: path.map(str::to_owned),
        health: Some(health.to_owned()),
        ready: Some(ready.to_owned()),
        ..EndpointConfig::default()
    }
}

/// Returns the status, the body, and the named headers of an answer.
fn shown(part: Part, names: &[&str]) -> (u16, String, Vec<String>) {
    let Part::Head { status, headers, body, more: false } = part else { panic!("{part:?}") };
    let value = |name: &&str| {
        headers.get(*name).map_or(String::new(), |value| value.to_str().unwrap().to_owned())
    };
    (status.as_u16(), String::from_utf8(body).unwrap(), names.iter().map(value).collect())
}

#[test]
fn health_is_ok_in_every_state_and_ready_in_one() {
    let probes = Probes::new(&config(Some("/mcp"), "/healthz", "/readyz"));
    let names = ["content-type", "cache-control", "retry-after"];
    for (path, readiness, status, body, wait) in [
        ("/healthz", Readiness::Starting, 200, "ok\n", ""),
        ("/healthz", Readiness::Ready, 200, "ok\n", ""),
        ("/healthz/", Readiness::Draining, 200, "ok\n", ""),
        ("/readyz", Readiness::Starting, 503, "the server has not started\n", "1"),
        ("/readyz/", Readiness::Ready, 200, "ok\n", ""),
        ("/readyz", Readiness::Draining, 503, "the server is shutting down\n", "1"),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answered = probes.answer(&method, path, || readiness).expect("a probe");
            let expected = ["text/plain", "no-store", wait].map(str::to_owned).to_vec();
            assert_eq!(shown(answered, &names), (status, body.into(), expected), "{path}");
        }
    }
}

#[test]
fn other_methods_are_not_allowed() {
    let probes = Probes::new(&config(None, "/healthz", "/readyz"));
    for method in [Method::POST, Method::DELETE, Method::OPTIONS, Method::PUT] {
        for readiness in [Readiness::Starting, Readiness::Ready, Readiness::Draining] {
            let answered = probes.answer(&method, "/readyz", || readiness).expect("a probe");
            let (status, _, headers) = shown(answered, &["allow", "cache-control"]);
            assert_eq!((status, headers), (405, vec!["GET, HEAD".into(), "no-store".into()]));
        }
    }
}

#[test]
fn a_path_is_exact_or_below_a_mount() {
    let listening = config(Some("/mcp"), "/healthz", "/ready/healthz");
    let mounted = EndpointConfig { path: None, ..listening.clone() };
    let ready = |config: &EndpointConfig, path: &str| {
        let answered = Probes::new(config).answer(&Method::GET, path, || Readiness::Draining);
        answered.map(|part| shown(part, &[]).0 == 503)
    };
    for (path, alone, below) in [
        ("/healthz", Some(false), Some(false)),
        ("/ready/healthz", Some(true), Some(true)),
        ("/mcp/healthz", None, Some(false)),
        ("/mcp/ready/healthz/", None, Some(true)),
        ("/mcp", None, None),
        ("/xhealthz", None, None),
        ("/healthz/x", None, None),
        ("/healthz//", None, None),
        ("", None, None),
        ("/", None, None),
    ] {
        assert_eq!((ready(&listening, path), ready(&mounted, path)), (alone, below), "{path}");
    }
    let none = Probes::new(&EndpointConfig::default());
    assert!(none.answer(&Method::GET, "/healthz", || Readiness::Ready).is_none());
}

#[test]
fn a_path_that_can_not_be_asked_for_or_has_another_use_is_refused() {
    for (path, problem) in [
        ("", "is not a path"),
        ("/", "is not a path"),
        ("healthz", "is not a path"),
        ("http://a/healthz", "is not a path"),
        ("/a?b", "is not a path"),
        ("/a#b", "is not a path"),
        ("/a b", "is not a path"),
        ("/a\n", "is not a path"),
        ("/\u{e4}", "is not a path"),
        ("*", "is not a path"),
        ("/mcp", "a path of the endpoint"),
        ("/mcp/", "a path of the endpoint"),
        ("/sse", "the transport of 2024-11-05"),
        ("/a/sse/", "the transport of 2024-11-05"),
        ("/.well-known/oauth-protected-resource", "OAuth"),
        ("/.well-known/openid-configuration/mcp", "OAuth"),
    ] {
        for (option, config) in [
            ("health", config(Some("/mcp"), path, "/readyz")),
            ("ready", config(Some("/mcp"), "/healthz", path)),
        ] {
            let refused = check(&config).expect_err(path).to_string();
            assert!(refused.starts_with(&format!("{option}: ")), "{refused}");
            assert!(refused.contains(problem), "{refused}");
        }
    }
    let refused = check(&config(Some("/mcp"), "/up", "/up/")).expect_err("equal").to_string();
    assert!(refused.contains("the path of health"), "{refused}");
    let legacy_sse = EndpointConfig { legacy_sse: true, ..config(Some("/a/mcp"), "/sses", "/sse") };
    assert!(check(&legacy_sse).is_err());
    // A mounted endpoint has no path of its own.
    check(&config(None, "/mcp", "/%C3%A4/ready;v=1")).expect("paths");
    check(&config(Some("/mcp"), "/mcp/healthz", "/readyz/")).expect("paths");
    check(&EndpointConfig::default()).expect("none");
}

#[cfg(feature = "auth")]
#[test]
fn paths_of_the_oauth_proxy_are_refused() {
    for path in OAuthEndpoint::paths("/mcp") {
        assert!(check(&config(None, &path, "/readyz")).is_err(), "{path}");
    }
}
