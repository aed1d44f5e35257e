//! The era of an HTTP request, the order in which a stateless one is checked, and the versions of sessions.

use std::sync::Arc;

use gudgeon::{http::EndpointConfig, protocol::Revision};
use serde_json::{Value, json};

use crate::support::{
    fixture,
    request::{Request, initialize, message, notification},
    visitor::Visitor,
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const LATEST_LEGACY: &str = "2025-11-25";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn visitor() -> Visitor {
    Visitor::new(fixture::components(), EndpointConfig::default())
}

fn ping() -> Value {
    message("ping", json!({}))
}

/// A stateless request with these members of `_meta`, whose header names the version that is supported.
fn with_meta(method: &str, meta: &Value) -> Request {
    Request::modern(method, json!({ "_meta": meta }))
}

fn claiming(request: Request, version: &str) -> Request {
    request.header("mcp-protocol-version", version)
}

#[test]
fn both_eras_are_served_side_by_side() {
    let mut visitor = visitor();
    let (older, newer) =
        (visitor.open("2025-03-26", json!({})), visitor.open(LATEST_LEGACY, json!({})));
    for session in ["nobody", &older, &newer] {
        // A session is not a reason to take a request for a legacy one that says it is modern.
        let request = Request::modern("tools/list", json!({}))
            .header("mcp-session-id", session)
            .header("last-event-id", "5");
        assert_eq!(visitor.serves(&request)["resultType"], "complete");
        assert_eq!(visitor.ask(&request).header("mcp-session-id"), "");
    }
    let batch = json!([ping(), message("ping", json!({}))]);
    assert_eq!(visitor.ask(&Request::of_session(&older, &batch)).status, 200);
    visitor.refuses(&Request::of_session(&newer, &batch), 400, -32600);
    visitor.serves(&Request::of_session(&newer, &ping()));
}

#[test]
fn headers_alone_make_neither_a_call_of_a_session_nor_initialize_modern() {
    let mut visitor = visitor();
    let session = visitor.open(LATEST_LEGACY, json!({}));
    visitor.serves(&Request::of_session(&session, &ping()).header("mcp-method", "ping"));
    let request = Request::post(initialize(LATEST_LEGACY)).header("mcp-method", "initialize");
    let claims =
        [LATEST_LEGACY, "2026-07-28", "v999.0.0"].map(|version| claiming(request.clone(), version));
    for request in [&[request], &claims[..]].concat() {
        assert_eq!(visitor.serves(&request)["protocolVersion"], LATEST_LEGACY);
        assert_ne!(visitor.ask(&request).header("mcp-session-id"), "");
    }
}

#[test]
fn checks_come_in_the_order_of_the_specification() {
    let mut visitor = visitor();
    let named = |method: &str, name: &str| Request::modern(method, json!({"name": name}));
    let list = Request::modern("tools/list", json!({}));
    let discover = |version: &str| with_meta("server/discover", &json!({VERSION: version}));
    for (request, status, code) in [
        // A body that can't be parsed has no version.
        (claiming(list.clone(), "v999.0.0").body("{"), 400, -32700),
        // Missing keys come before anything that headers say.
        (with_meta("tools/list", &json!({VERSION: 7})).header("mcp-method", "x"), 400, -32602),
        (with_meta("tools/list", &json!({CAPABILITIES: 7})).header("mcp-method", "x"), 400, -32602),
        // A mismatch comes before the version's support.
        (discover("v999.0.0"), 400, -32020),
        (claiming(discover("2026-07-28"), "v999.0.0"), 400, -32020),
        (claiming(discover("v999.0.0"), "v999.0.0"), 400, -32022),
        (list.clone().without("mcp-protocol-version"), 400, -32020),
        // The version comes before the method, and the method before the name.
        (claiming(with_meta("unknown/method", &json!({VERSION: "v9"})), "v9"), 400, -32022),
        (list.header("mcp-method", "prompts/list"), 400, -32020),
        (named("unknown/method", "a").header("mcp-name", "b"), 404, -32601),
        (named("tools/call", "nobody").header("mcp-name", "b"), 400, -32020),
        (named("tools/call", "nobody").without("mcp-name"), 400, -32020),
        (named("tools/call", "nobody"), 400, -32602),
    ] {
        visitor.refuses(&request, status, code);
    }
}

#[test]
fn the_keys_of_meta_must_be_there() {
    let mut visitor = visitor();
    let mut body = json!({"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {}});
    let discover = Request::modern("server/discover", json!({}));
    for meta in [json!({}), json!({VERSION: "2026-07-28"}), json!({CAPABILITIES: {}})] {
        body["params"]["_meta"] = meta;
        visitor.refuses(&discover.clone().body(body.to_string()), 400, -32602);
    }
    visitor.serves(&discover);
}

#[test]
fn methods_that_only_sessions_have_are_unknown_to_the_modern_era() {
    let mut visitor = visitor();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "unknown/method",
    ] {
        let params =
            json!({"level": "info", "uri": "fixture://about", "protocolVersion": LATEST_LEGACY});
        let request = Request::modern(method, params).without("mcp-name");
        visitor.refuses(&request, 404, -32601);
    }
}

#[test]
fn an_unsupported_version_is_answered_with_the_supported_ones() {
    let mut visitor = visitor();
    let known =
        visitor.serves(&Request::modern("server/discover", json!({})))["supportedVersions"].clone();
    assert!(known.as_array().unwrap().contains(&json!("2026-07-28")));
    for version in ["v999.0.0", "2027-01-01", "1900-01-01"] {
        let request = with_meta("server/discover", &json!({VERSION: version}));
        let error = visitor.refuses(&claiming(request, version), 400, -32022);
        assert_eq!(error["data"], json!({"requested": version, "supported": known}));
    }
    let empty = claiming(with_meta("server/discover", &json!({VERSION: ""})), "");
    visitor.refuses(&empty, 400, -32022);
}

/// Headers and envelope of a notification are optional; where present they must agree and name a supported version.
#[test]
fn a_notification_with_conflicting_headers_is_refused_without_an_id() {
    let mut visitor = visitor();
    let request = |headers: &[(&str, &str)], params: &Value| {
        let mut body = notification("notifications/example", json!({}));
        body["params"] = params.clone();
        headers
            .iter()
            .fold(Request::post(body), |request, (name, value)| request.header(name, value))
    };
    let ours = ("mcp-protocol-version", "2026-07-28");
    let unknown = ("mcp-protocol-version", "v9");
    let method = |name| ("mcp-method", name);
    let modern = json!({"_meta": {VERSION: "2026-07-28"}});
    for (headers, params) in [
        (&[ours][..], json!({})),
        (&[ours, method("notifications/example")], modern.clone()),
        (&[], modern.clone()),
    ] {
        visitor.accepts(&request(headers, &params));
    }
    for (headers, params, code) in [
        (&[ours, method("notifications/other")][..], json!({}), -32020),
        (&[unknown], modern, -32020),
        (&[unknown], json!({}), -32022),
        (&[], json!({"_meta": {VERSION: "v9"}}), -32022),
        (&[ours], json!({"_meta": {VERSION: 9}}), -32602),
        (&[ours], json!(9), -32602),
    ] {
        let request = request(headers, &params);
        visitor.refuses(&request, 400, code);
        assert!(visitor.ask(&request).json().get("id").is_none(), "{request:?}");
    }
}

#[test]
fn every_legacy_version_is_negotiated_and_another_one_countered() {
    let mut visitor = visitor();
    for version in LEGACY {
        let result = visitor.serves(&Request::post(initialize(version)));
        assert_eq!(result["protocolVersion"], version);
    }
    for version in ["1.0", "2030-01-01", "", "2026-07-28"] {
        let result = visitor.serves(&Request::post(initialize(version)));
        assert_eq!(result["protocolVersion"], LATEST_LEGACY, "{version}");
    }
}

#[test]
fn a_session_needs_no_version_header_and_refuses_an_unsupported_one() {
    let mut visitor = visitor();
    for version in LEGACY {
        let session = visitor.open(version, json!({}));
        let request = Request::of_session(&session, &ping());
        visitor.serves(&request);
        visitor.serves(&claiming(request.clone(), version));
        for other in ["bogus", "2025-11-26", "v999.0.0", "1999-01-01", "2025-11-25, 2025-11-25"] {
            visitor.refuses(&claiming(request.clone(), other), 400, -32600);
            let delete = claiming(Request::bare("DELETE", &session), other);
            visitor.rejects(&delete, 400, "MCP-Protocol-Version");
        }
        visitor.serves(&request);
    }
}

#[test]
fn a_version_that_this_server_does_not_support_is_refused() {
    let mut components = fixture::components();
    Arc::make_mut(&mut components.server).revisions = vec![Revision::V2025_11_25];
    let mut visitor = Visitor::new(components, EndpointConfig::default());
    let session = visitor.open(LATEST_LEGACY, json!({}));
    let request = Request::of_session(&session, &ping());
    visitor.serves(&claiming(request.clone(), LATEST_LEGACY));
    visitor.refuses(&claiming(request, "2025-06-18"), 400, -32600);
    let delete = claiming(Request::bare("DELETE", &session), "2025-06-18");
    visitor.rejects(&delete, 400, "MCP-Protocol-Version");
    visitor.refuses(&Request::modern("tools/list", json!({})), 400, -32022);
}

#[test]
fn a_session_shows_nothing_modern() {
    let mut visitor = visitor();
    let session = visitor.open(LATEST_LEGACY, json!({}));
    for method in ["tools/list", "resources/list", "prompts/list"] {
        let result = visitor.serves(&Request::of_session(&session, &message(method, json!({}))));
        for key in ["resultType", "ttlMs", "cacheScope"] {
            assert!(result.get(key).is_none(), "{method} {result}");
        }
    }
    // They are modern by name, and miss what `_meta` must have.
    for method in ["server/discover", "subscriptions/listen"] {
        let body = message(method, json!({"notifications": {}}));
        visitor.refuses(&Request::of_session(&session, &body), 400, -32602);
    }
}
