use http::Request;
use proptest::prelude::*;

use super::*;

fn head(lines: &[(&str, &str)]) -> Parts {
    request("POST", "/mcp", lines)
}

fn request(method: &str, uri: &str, lines: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().method(method).uri(uri);
    for (name, value) in lines {
        builder = builder.header(*name, value.as_bytes());
    }
    builder.body(()).expect("a request").into_parts().0
}

fn local() -> GuardConfig {
    GuardConfig::default()
}

fn public() -> GuardConfig {
    GuardConfig { bind_is_loopback: false, ..GuardConfig::default() }
}

/// The status of what is refused.
fn refused(config: &GuardConfig, lines: &[(&str, &str)]) -> Option<u16> {
    let refusal = Guard::new(config).check(&head(lines)).err()?;
    let text = &refusal.reason.text;
    let settings = match refusal.status.as_u16() {
        421 => ["allowed_hosts", "public_url"],
        403 => ["allowed_origins", "public_url"],
        other => panic!("{other}"),
    };
    for setting in settings {
        assert!(text.contains(setting), "{text}");
    }
    Some(refusal.status.as_u16())
}

#[test]
fn a_loopback_server_answers_to_loopback_names_at_any_port() {
    for host in [
        "localhost",
        "LocalHost:8000",
        "127.0.0.1:1",
        "[::1]:9",
        "[::1]",
        "localhost.",
        "localhost:",
    ] {
        assert_eq!(refused(&local(), &[("host", host)]), None, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8000",
        "user@localhost",
        "localhost/x",
        "localhost:port",
        "127.0.0.1:99999",
        "[::1]x",
        "0.0.0.0",
        "",
        " ",
    ] {
        assert_eq!(refused(&local(), &[("host", host)]), Some(421), "{host:?}");
    }
    assert_eq!(refused(&local(), &[]), Some(421), "no host at all");
    assert_eq!(refused(&local(), &[("host", "localhost"), ("host", "evil.example")]), Some(421));
}

#[test]
fn the_target_of_the_request_counts_as_its_host() {
    let guard = Guard::new(&local());
    assert!(guard.check(&request("POST", "http://localhost:8000/mcp", &[])).is_ok());
    assert!(guard.check(&request("POST", "http://evil.example/mcp", &[])).is_err());
    let both = request("POST", "http://localhost/mcp", &[("host", "evil.example")]);
    assert!(guard.check(&both).is_err());
}

#[test]
fn configured_hosts_are_served_whatever_their_case_and_default_port() {
    let listed = GuardConfig { allowed_hosts: vec!["Tools.Example:8443".into()], ..local() };
    assert_eq!(refused(&listed, &[("host", "tools.example:8443")]), None);
    assert_eq!(refused(&listed, &[("host", "tools.example")]), Some(421), "another port");
    assert_eq!(refused(&listed, &[("host", "localhost")]), None);
    let url = GuardConfig { public_url: Some("https://Example.org:443/mcp".into()), ..local() };
    for host in ["example.org", "EXAMPLE.ORG:443", "localhost:3000"] {
        assert_eq!(refused(&url, &[("host", host)]), None, "{host}");
    }
    assert_eq!(refused(&url, &[("host", "example.com")]), Some(421));
}

#[test]
fn hosts_may_be_given_as_patterns() {
    let config = |hosts: &[&str]| GuardConfig {
        allowed_hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..public()
    };
    let any = config(&["*"]);
    assert_eq!(refused(&any, &[("host", "whatever.example:81")]), None);
    assert_eq!(refused(&any, &[]), Some(421));
    let below = config(&["*.Example.com", "*.example.org:8443"]);
    for host in ["a.example.com", "A.B.EXAMPLE.COM:443", "a.example.org:8443"] {
        assert_eq!(refused(&below, &[("host", host)]), None, "{host}");
    }
    for host in ["example.com", "aexample.com", ".example.com", "a.example.com:81", "a.example.org"]
    {
        assert_eq!(refused(&below, &[("host", host)]), Some(421), "{host}");
    }
}

#[test]
fn origins_may_be_given_as_patterns() {
    let config = |origins: &[&str]| GuardConfig {
        allowed_origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
        ..local()
    };
    let any = config(&["*"]);
    assert_eq!(from(&any, "localhost", "https://any.example"), None);
    assert_eq!(from(&any, "localhost", "null"), Some(403));
    let below = config(&["https://*.example.com/"]);
    assert_eq!(from(&below, "localhost", "https://a.example.com:443"), None);
    for origin in ["https://example.com", "http://a.example.com", "https://a.example.com:81"] {
        assert_eq!(from(&below, "localhost", origin), Some(403), "{origin}");
    }
}

#[test]
fn entries_that_match_nothing_are_refused_with_the_fix() {
    let problem =
        |config: &GuardConfig| config.check().expect_err("it matches nothing").to_string();
    for (host, said) in [
        (
            "http://a.example",
            r#"allowed_hosts: "http://a.example" is more than a host; write "a.example""#,
        ),
        (
            "a.example/mcp",
            r#"allowed_hosts: "a.example/mcp" is more than a host; write "a.example""#,
        ),
        (
            "https://*.a.example/",
            r#"allowed_hosts: "https://*.a.example/" is more than a host; write "*.a.example""#,
        ),
        ("::1", r#"allowed_hosts: "::1" is an IPv6 address without brackets; write "[::1]""#),
        ("", r#"allowed_hosts: "" matches no host; "#),
        ("a*.example", r#"allowed_hosts: "a*.example" matches no host; "#),
        ("a b", r#"allowed_hosts: "a b" matches no host; "#),
        ("a.example:http", r#"allowed_hosts: "a.example:http" matches no host; "#),
    ] {
        let config =
            GuardConfig { allowed_hosts: vec!["ok.example".into(), host.into()], ..public() };
        assert!(problem(&config).starts_with(said), "{}", problem(&config));
    }
    for (origin, said) in [
        ("a.example", r#"allowed_origins: "a.example" has no scheme; write "https://a.example""#),
        ("", r#"allowed_origins: "" matches no origin; "#),
        ("https://", r#"allowed_origins: "https://" matches no origin; "#),
        ("https://a*.example", r#"allowed_origins: "https://a*.example" matches no origin; "#),
    ] {
        let config = GuardConfig { allowed_origins: vec![origin.into()], ..public() };
        assert!(problem(&config).starts_with(said), "{}", problem(&config));
    }
    let cors = GuardConfig { cors: Cors::Origins(vec!["a.example".into()]), ..local() };
    assert!(problem(&cors).starts_with(r#"cors: "a.example" has no scheme"#));
    let url = GuardConfig { public_url: Some("a.example/mcp".into()), ..local() };
    let said = url.check().expect_err("it is not a URL").to_string();
    assert!(said.starts_with(r#"public_url: "a.example/mcp" is not a URL; "#), "{said}");
}

#[test]
fn another_bind_takes_any_host_until_one_is_configured() {
    assert_eq!(refused(&public(), &[("host", "whatever.example")]), None);
    assert_eq!(refused(&public(), &[]), None);
    for config in [
        GuardConfig { public_url: Some("https://example.org/mcp".into()), ..public() },
        GuardConfig { allowed_hosts: vec!["example.org".into()], ..public() },
    ] {
        assert_eq!(refused(&config, &[("host", "example.org")]), None);
        assert_eq!(refused(&config, &[("host", "localhost")]), Some(421));
        assert_eq!(refused(&config, &[]), Some(421));
    }
}

fn from(config: &GuardConfig, host: &str, origin: &str) -> Option<u16> {
    refused(config, &[("host", host), ("origin", origin)])
}

#[test]
fn a_loopback_server_takes_pages_of_this_machine_only() {
    for origin in
        ["http://localhost:5173", "https://127.0.0.1", "HTTP://LOCALHOST", "http://[::1]:1"]
    {
        assert_eq!(from(&local(), "localhost:8000", origin), None, "{origin}");
    }
    for origin in [
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example#localhost",
        "http://localhost/",
        "http://localhost:99999",
        "ftp://localhost",
        "chrome-extension://localhost",
        "localhost",
        "null",
        "",
        "\u{e9}",
    ] {
        assert_eq!(from(&local(), "localhost:8000", origin), Some(403), "{origin}");
    }
    let twice =
        [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")];
    assert_eq!(refused(&local(), &twice), Some(403));
}

#[test]
fn configured_origins_are_compared_as_origins() {
    let config = GuardConfig {
        allowed_origins: vec![
            "https://App.Example/".into(),
            "null".into(),
            "vscode-webview://Abc".into(),
        ],
        public_url: Some("https://example.org/mcp".into()),
        cors: Cors::Origins(vec!["http://cors.example:80".into()]),
        ..local()
    };
    for origin in [
        "https://app.example",
        "https://app.example:443",
        "HTTPS://APP.EXAMPLE",
        "null",
        "vscode-webview://abc",
        "https://example.org",
        "http://cors.example",
        "http://localhost:1",
    ] {
        assert_eq!(from(&config, "localhost", origin), None, "{origin}");
    }
    for origin in [
        "http://app.example",
        "https://app.example:80",
        "https://sub.app.example",
        "https://example.com",
    ] {
        assert_eq!(from(&config, "localhost", origin), Some(403), "{origin}");
    }
}

#[test]
fn another_bind_takes_its_own_pages_by_address_until_origins_are_configured() {
    for own in ["192.168.1.7:8000", "[fd00::1]:8000", "localhost:8000", "127.0.0.1"] {
        assert_eq!(from(&public(), own, &format!("http://{own}")), None, "{own}");
    }
    assert_eq!(from(&public(), "192.168.1.7", "http://192.168.1.8"), Some(403));
    // A name may be anybody's, and mean this machine for now.
    assert_eq!(from(&public(), "tools.example:8000", "http://tools.example:8000"), Some(403));
    let named = GuardConfig { public_url: Some("https://tools.example/mcp".into()), ..public() };
    assert_eq!(from(&named, "tools.example", "https://Tools.Example:443"), None);
    assert_eq!(from(&public(), "tools.example", "https://evil.example"), Some(403));
    assert_eq!(from(&public(), "tools.example", "http://localhost"), Some(403));
    assert_eq!(from(&public(), "tools.example", "null"), Some(403));
    assert_eq!(refused(&public(), &[("origin", "http://tools.example")]), Some(403), "no host");
    let config = GuardConfig { allowed_origins: vec!["https://app.example".into()], ..public() };
    assert_eq!(from(&config, "tools.example", "https://app.example"), None);
    assert_eq!(from(&config, "tools.example", "https://tools.example"), Some(403));
}

#[test]
fn with_cors_for_anybody_every_page_may_call_but_not_one_without_an_origin() {
    let config = GuardConfig { cors: Cors::Any, ..public() };
    assert_eq!(from(&config, "tools.example", "https://any.example"), None);
    assert_eq!(from(&config, "tools.example", "null"), Some(403));
    let config = GuardConfig { cors: Cors::Any, ..local() };
    assert_eq!(from(&config, "evil.example", "https://any.example"), Some(421), "rebound");
}

#[test]
fn a_preflight_is_answered_where_cors_is_on() {
    let lines = [
        ("host", "localhost"),
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type, mcp-param-region,Mcp-Method, x-other"),
    ];
    let ask = request("OPTIONS", "/mcp", &lines);
    assert!(Guard::new(&local()).preflight(&ask).is_none());
    let config = GuardConfig { cors: Cors::Origins(vec!["https://app.example".into()]), ..local() };
    let guard = Guard::new(&config);
    let headers = guard.preflight(&ask).expect("an answer");
    let value = |name: &str| headers[name].to_str().expect("text").to_owned();
    assert_eq!(value("access-control-allow-origin"), "https://app.example");
    assert_eq!(value("access-control-allow-methods"), "GET, POST, DELETE");
    assert_eq!(value("access-control-max-age"), "7200");
    assert!(value("vary").contains("Origin"));
    let allowed = value("access-control-allow-headers").to_ascii_lowercase();
    for name in [
        "authorization",
        "content-type",
        "dpop",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-param-region",
    ] {
        assert!(allowed.split(", ").any(|header| header == name), "{name} in {allowed}");
    }
    assert!(!allowed.contains("x-other"));
    let other = request("OPTIONS", "/mcp", &[("origin", "https://b.example"), lines[2]]);
    assert!(guard.preflight(&other).is_none());
    assert!(guard.preflight(&request("OPTIONS", "/mcp", &lines[..2])).is_none(), "a plain OPTIONS");
    assert!(guard.preflight(&head(&lines)).is_none(), "a POST");
}

#[test]
fn answers_say_which_page_may_read_them() {
    let decorated = |cors: Cors, origin: Option<&str>| {
        let lines: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
        let mut headers = HeaderMap::new();
        Guard::new(&GuardConfig { cors, ..local() }).decorate(&head(&lines), &mut headers);
        let text =
            |name: &str| headers.get(name).map(|value| value.to_str().expect("text").to_owned());
        (
            text("access-control-allow-origin"),
            text("vary"),
            text("access-control-expose-headers")
                .is_some_and(|names| names.contains("Mcp-Session-Id")),
        )
    };
    let listed = || Cors::Origins(vec!["https://app.example".into()]);
    let vary = || Some("Origin".to_owned());
    assert_eq!(decorated(Cors::Off, Some("https://app.example")), (None, None, false));
    assert_eq!(decorated(Cors::Any, Some("https://app.example")), (Some("*".into()), None, true));
    assert_eq!(decorated(Cors::Any, None), (None, None, false));
    let own = Some("https://app.example".to_owned());
    assert_eq!(decorated(listed(), own.as_deref()), (own.clone(), vary(), true));
    assert_eq!(decorated(listed(), Some("https://b.example")), (None, vary(), false));
    assert_eq!(decorated(listed(), None), (None, vary(), false), "caches must not mix them up");
}

#[test]
fn what_a_refusal_repeats_is_short() {
    let long = format!("{}.example", "x".repeat(5000));
    let refusal = Guard::new(&local()).check(&head(&[("host", &long)])).expect_err("refused");
    let text = refusal.reason.text;
    assert!(text.len() < 600, "{}", text.len());
}

proptest! {
    #[test]
    fn no_header_breaks_the_guard_or_gets_past_it(host in "[ -~]{0,30}", origin in "([a-z]{1,5}://)?[ -~]{0,30}") {
        for config in [local(), public()] {
            let guard = Guard::new(&GuardConfig { allowed_hosts: vec!["own.example".into()], ..config });
            let head = head(&[("host", &host), ("origin", &origin)]);
            if guard.check(&head).is_ok() {
                let name = host.to_ascii_lowercase();
                prop_assert!(name.starts_with("own.example") || LOOPBACK.iter().any(|host| name.starts_with(host)), "{}", host);
            }
        }
    }

    #[test]
    fn no_configuration_breaks_the_guard(text in any::<String>()) {
        let texts = vec![text.clone()];
        Guard::new(&GuardConfig {
            public_url: Some(text),
            allowed_origins: texts.clone(),
            allowed_hosts: texts.clone(),
            cors: Cors::Origins(texts.clone()),
            trusted_proxies: texts,
            bind_is_loopback: false,
        });
    }
}
