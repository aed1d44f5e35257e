//! Negotiation of the revision: every row of "Compatibility Matrix", and misbehaving servers.

use std::time::Duration;

use gudgeon::{
    error::{Error, ErrorKind},
    protocol::{Method, Revision},
    session::client::{ClientConfig, Input, Output},
};
use serde_json::json;

use crate::support::{
    logs::logged,
    wire::{Scripted, config, discover_result, error, initialize_result, seconds},
};

pub(crate) const MODERN: Revision = Revision::V2026_07_28;
pub(crate) const NEWEST_LEGACY: Revision = Revision::V2025_11_25;

pub(crate) fn expect_probe(client: &mut Scripted) {
    let probe = client.sent();
    assert_eq!(probe["method"], "server/discover");
    let meta = &probe["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "probe");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"roots": {}}));
}

pub(crate) fn expect_initialize(client: &mut Scripted, version: &str) -> u64 {
    let sent = client.sent();
    assert_eq!(sent["method"], "initialize");
    assert_eq!(sent["params"]["protocolVersion"], version);
    assert_eq!(sent["params"]["capabilities"], json!({"roots": {"listChanged": true}}));
    assert!(sent["params"].get("_meta").is_none());
    sent["id"].as_u64().expect("ids count")
}

pub(crate) fn expect_legacy(client: &mut Scripted, version: &str) {
    let id = expect_initialize(client, version);
    client.receive(&initialize_result(id, version));
    assert_eq!(client.sent(), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let server = client.ready();
    assert_eq!((server.revision.as_ref(), server.info.name.as_str()), (version, "old"));
    assert_eq!(server.instructions.as_deref(), Some("be kind"));
    client.silent();
}

#[test]
fn modern_client_modern_server() {
    let mut client = Scripted::start(&[MODERN]);
    expect_probe(&mut client);
    client.receive(&discover_result(1, &["2026-07-28"]));
    let server = client.ready();
    assert_eq!((server.revision, server.info.name.as_str()), (MODERN, "new"));
    assert_eq!(client.session.deadline(), None);
}

/// A user may take minutes to sign in; the server has answered long ago.
#[test]
fn the_time_of_a_user_who_signs_in_is_not_counted() {
    let mut client = Scripted::start(&[MODERN, NEWEST_LEGACY]);
    expect_probe(&mut client);
    client.advance(Duration::from_secs(1));
    client.feed(Input::Hold(true));
    assert_eq!(client.session.deadline(), None);
    client.advance(Duration::from_secs(600));
    client.feed(Input::Tick);
    client.silent();
    client.feed(Input::Hold(false));
    let rest = client.session.deadline().expect("the probe has a limit") - client.now;
    assert_eq!(rest, Duration::from_secs(4));
    client.receive(&discover_result(1, &["2026-07-28"]));
    client.ready();

    client.request(1, Method::ListTools, "{}", seconds(5, 5_000));
    client.sent();
    client.feed(Input::Hold(true));
    client.advance(Duration::from_secs(600));
    client.feed(Input::Tick);
    client.silent();
    client.feed(Input::Hold(false));
    assert!(client.advance(Duration::from_secs(5)));
    client.sent();
    assert_eq!(client.done().1.unwrap_err().kind, ErrorKind::Timeout);
}

#[test]
fn probe_and_handshake_share_one_time_limit() {
    let mut client = Scripted::new(ClientConfig {
        connect_timeout: Some(Duration::from_secs(1)),
        ..config(&[MODERN, NEWEST_LEGACY])
    });
    client.feed(Input::Start);
    expect_probe(&mut client);
    assert!(!client.advance(Duration::from_millis(499)));
    assert!(client.advance(Duration::from_millis(1)), "half of the time is left for initialize");
    expect_initialize(&mut client, "2025-11-25");
    assert!(!client.advance(Duration::from_millis(499)));
    assert!(client.advance(Duration::from_millis(1)));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert_eq!(failure.message, "no answer to server/discover or initialize in 1 s");
    client.silent();
}

#[test]
fn where_every_server_answers_the_probe_has_all_of_the_time() {
    let mut client =
        Scripted::new(ClientConfig { probe_timeout: None, ..config(&[MODERN, NEWEST_LEGACY]) });
    client.feed(Input::Start);
    expect_probe(&mut client);
    assert!(!client.advance(Duration::from_secs(59)));
    client.receive(&discover_result(1, &["2026-07-28"]));
    client.ready();

    let mut client =
        Scripted::new(ClientConfig { probe_timeout: None, ..config(&[MODERN, NEWEST_LEGACY]) });
    client.feed(Input::Start);
    expect_probe(&mut client);
    assert!(client.advance(Duration::from_secs(60)));
    assert_eq!(client.failed().message, "no answer to server/discover in 60 s");
    client.silent();
}

#[test]
fn the_time_to_reach_the_server_counts_too() {
    let mut client = Scripted::new(ClientConfig {
        connect_timeout: Some(Duration::from_secs(1)),
        ..config(&[NEWEST_LEGACY])
    });
    client.session.connecting_since(client.now);
    client.now += Duration::from_millis(900);
    client.feed(Input::Start);
    expect_initialize(&mut client, "2025-11-25");
    assert!(client.advance(Duration::from_millis(100)));
    assert_eq!(client.failed().message, "no answer to initialize in 1 s");
}

#[test]
fn modern_client_legacy_server_fails_with_the_mend() {
    for code in [-32601, -32602, -32600, -32000, 7] {
        let mut client = Scripted::start(&[MODERN]);
        client.sent();
        client.receive(&error(1, code, None));
        let failure = client.failed();
        assert_eq!(failure.kind, ErrorKind::Unsupported);
        assert!(failure.message.contains("2026-07-28"), "{failure}");
        assert!(failure.into_details().hint.expect("a mend").contains("older revision"));
        client.silent();
    }
}

#[test]
fn a_modern_client_is_told_what_an_http_server_said() {
    let said = |status, hint: Option<&str>| {
        let error = Error::new(ErrorKind::Connect, format!("HTTP {status}"));
        let hint = hint.map(ToOwned::to_owned);
        error.with(|details| (details.http_status, details.hint) = (Some(status), hint))
    };
    for (status, hint, expected) in [
        (500, None, None),
        (429, Some("later"), Some("later")),
        (400, None, Some("it may be a legacy server: allow an older revision too")),
        (404, Some("a?"), Some("a?; or it may be a legacy server: allow an older revision too")),
    ] {
        let mut client = Scripted::start(&[MODERN]);
        client.sent();
        client.feed(Input::Failed { id: 1, error: said(status, hint) });
        let failure = client.failed();
        assert_eq!(failure.kind, ErrorKind::Connect);
        assert_eq!(
            (&*failure.message, failure.hint.as_deref()),
            (&*format!("HTTP {status}"), expected)
        );
    }
    let mut client = Scripted::start(&[MODERN, Revision::V2025_11_25]);
    client.sent();
    client.feed(Input::Failed { id: 1, error: said(500, None) });
    expect_initialize(&mut client, "2025-11-25");
}

#[test]
fn modern_client_silent_server_times_out() {
    let mut client = Scripted::start(&[MODERN]);
    client.sent();
    assert!(!client.advance(Duration::from_millis(4_999)));
    assert!(client.advance(Duration::from_millis(1)));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert!(failure.message.contains("5 s"), "{failure}");
}

#[test]
fn dual_client_modern_server() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    client.receive(&discover_result(1, &["2025-11-25", "2026-07-28", "2099-01-01"]));
    assert_eq!(client.ready().revision, MODERN);
    client.silent();
}

#[test]
fn dual_client_legacy_server_whatever_its_error() {
    for code in [-32601, -32602, -32600, -32000, -32002, 0] {
        let mut client = Scripted::start(&Revision::ALL);
        expect_probe(&mut client);
        client.receive(&error(1, code, None));
        expect_legacy(&mut client, "2025-11-25");
    }
}

#[test]
fn dual_client_legacy_server_that_answers_without_an_id() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    client
        .receive(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "?"}}));
    expect_legacy(&mut client, "2025-11-25");
}

#[test]
fn dual_client_legacy_server_with_a_malformed_response() {
    for nonsense in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": 3}),
        json!({"jsonrpc": "2.0", "id": 1, "error": "what?"}),
    ] {
        let mut client = Scripted::start(&Revision::ALL);
        expect_probe(&mut client);
        client.receive(&nonsense);
        expect_legacy(&mut client, "2025-11-25");
    }
}

#[test]
fn dual_client_silent_legacy_server_and_the_late_reply_is_ignored() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    assert!(client.advance(Duration::from_secs(5)));
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&error(1, -32601, None));
    client.silent();
    client.receive(&initialize_result(id, "2025-11-25"));
    assert_eq!(client.sent()["method"], "notifications/initialized");
    assert_eq!(client.ready().revision, NEWEST_LEGACY);
    client.receive(&discover_result(1, &["2026-07-28"]));
    client.silent();
}

#[test]
fn a_slow_modern_only_server_is_still_reached() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    assert!(client.advance(Duration::from_secs(5)));
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&discover_result(1, &["2026-07-28"]));
    client.silent();
    client.receive(&error(id, -32601, None));
    assert_eq!(client.ready().revision, MODERN);
}

#[test]
fn legacy_client_modern_server_fails_naming_both_revisions() {
    let mut client = Scripted::start(&[NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    let data = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
    client.receive(&error(id, -32022, Some(data)));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Unsupported);
    assert!(failure.message.contains("2026-07-28") && failure.message.contains("2025-11-25"));

    let mut client = Scripted::start(&[NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&error(id, -32601, None));
    let failure = client.failed();
    assert_eq!((failure.kind, failure.code), (ErrorKind::Protocol, Some(-32601)));
}

#[test]
fn legacy_client_pinned_to_each_revision() {
    for revision in Revision::ALL.into_iter().filter(|revision| *revision != MODERN) {
        let mut client = Scripted::start(&[revision]);
        expect_legacy_counter_offer(&mut client, revision.as_ref(), revision.as_ref());
    }
}

fn expect_legacy_counter_offer(client: &mut Scripted, asked: &str, offered: &str) {
    let sent = client.sent();
    assert_eq!(sent["params"]["protocolVersion"], asked);
    client.receive(&initialize_result(sent["id"].as_u64().expect("ids count"), offered));
    assert_eq!(client.sent()["method"], "notifications/initialized");
    assert_eq!(client.ready().revision.as_ref(), offered);
}

#[test]
fn a_supported_counter_offer_is_accepted() {
    let mut client = Scripted::start(&[NEWEST_LEGACY, Revision::V2024_11_05]);
    expect_legacy_counter_offer(&mut client, "2025-11-25", "2024-11-05");
}

#[test]
fn an_unsupported_counter_offer_fails_naming_both_sides() {
    for offered in ["2025-03-26", "2026-07-28", "1999-01-01", ""] {
        let mut client = Scripted::start(&[NEWEST_LEGACY]);
        let id = expect_initialize(&mut client, "2025-11-25");
        client.receive(&initialize_result(id, offered));
        let failure = client.failed();
        assert_eq!(failure.kind, ErrorKind::Unsupported);
        assert!(failure.message.contains(offered) && failure.message.contains("2025-11-25"));
        assert_eq!(failure.phase, Some("negotiate"));
    }
}

#[test]
fn unsupported_version_leads_to_what_the_server_supports() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    let data = json!({"supported": ["2025-06-18", "2025-03-26"], "requested": "2026-07-28"});
    client.receive(&error(1, -32022, Some(data)));
    expect_legacy(&mut client, "2025-06-18");
}

#[test]
fn unsupported_version_without_a_common_one_fails_and_does_not_fall_back() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    let data = json!({"supported": ["2031-01-01"], "requested": "2026-07-28"});
    client.receive(&error(1, -32022, Some(data)));
    let failure = client.failed();
    assert!(failure.message.contains("2031-01-01") && failure.message.contains("2026-07-28"));
    client.silent();
}

#[test]
fn a_server_that_rejects_its_own_revisions_is_given_up() {
    let mut client = Scripted::start(&[MODERN]);
    expect_probe(&mut client);
    let data = json!({"supported": ["2026-07-28"], "requested": "2026-07-28"});
    client.receive(&error(1, -32022, Some(data.clone())));
    assert_eq!(client.sent()["method"], "server/discover", "once more, as it was told");
    client.receive(&error(2, -32022, Some(data)));
    client.failed();
    client.silent();
}

#[test]
fn other_modern_errors_are_no_reason_to_fall_back() {
    for code in [-32020, -32021] {
        let mut client = Scripted::start(&Revision::ALL);
        expect_probe(&mut client);
        client.receive(&error(1, code, Some(json!({"requiredCapabilities": {}}))));
        let failure = client.failed();
        assert_eq!((failure.kind, failure.code), (ErrorKind::Protocol, Some(code)));
    }
}

#[test]
fn a_discovery_with_legacy_revisions_only_leads_to_initialize() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    client.receive(&discover_result(1, &["2025-03-26", "2024-11-05"]));
    expect_legacy(&mut client, "2025-03-26");
}

#[test]
fn a_discovery_of_an_unknown_type_is_an_error() {
    for kind in [json!("perhaps"), json!("input_required"), json!(7)] {
        let mut answer = discover_result(1, &["2026-07-28"]);
        answer["result"]["resultType"] = kind.clone();
        let mut client = Scripted::start(&Revision::ALL);
        expect_probe(&mut client);
        client.receive(&answer);
        let failure = client.failed();
        assert_eq!(failure.kind, ErrorKind::Protocol, "{kind}");
        assert!(failure.message.contains("server/discover"), "{}", failure.message);
        client.silent();

        let mut client = Scripted::start(&Revision::ALL);
        expect_probe(&mut client);
        assert!(client.advance(Duration::from_secs(5)));
        let id = expect_initialize(&mut client, "2025-11-25");
        client.receive(&answer);
        client.receive(&error(id, -32601, None));
        assert_eq!(client.failed().code, Some(-32601), "a late one counts no more");
    }
}

#[test]
fn a_server_that_exited_at_the_probe_is_restarted_once() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    client.feed(Input::Closed("gone"));
    assert!(matches!(client.session.poll(), Some(Output::Restart)));
    client.silent();
    assert_eq!(client.session.deadline(), None);
    client.feed(Input::Start);
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&initialize_result(id, "2025-11-25"));
    client.sent();
    client.ready();

    let mut client = Scripted::start(&Revision::ALL);
    client.sent();
    client.feed(Input::Closed("gone"));
    client.drain();
    client.feed(Input::Start);
    client.sent();
    client.feed(Input::Closed("gone again"));
    let failure = client.failed();
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Connect, "gone again"));
}

#[test]
fn a_server_that_ended_without_reading_the_probe_is_not_restarted() {
    let mut client = Scripted::start(&Revision::ALL);
    expect_probe(&mut client);
    client.feed(Input::Unread);
    client.feed(Input::Closed("the server exited with status 2"));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Connect);
    assert_eq!(failure.message, "the server exited with status 2");
}

/// stdio: "The server MUST NOT write anything to its stdout that is not a valid MCP message."
#[test]
fn what_a_server_prints_instead_of_messages_is_quoted() {
    for revisions in [&[MODERN][..], &[NEWEST_LEGACY], &Revision::ALL] {
        let mut client = Scripted::start(revisions);
        client.sent();
        client.feed(Input::Frame(b"Listening on port 8000"));
        client.feed(Input::Frame(b"{\"level\": \"info\"}"));
        client.feed(Input::Unread);
        client.feed(Input::Closed("the server exited with status 1"));
        let failure = client.failed();
        let quoted =
            r#"it sent is not a message: "Listening on port 8000", "{\"level\": \"info\"}""#;
        assert!(failure.message.contains(quoted), "{}", failure.message);
        let hint = failure.into_details().hint.expect("how to fix it");
        assert!(hint.contains("log to standard error"), "{hint}");
    }
    let mut client = Scripted::start(&[NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    client.feed(Input::Frame(b"Welcome!"));
    client.advance(Duration::from_secs(60));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert!(failure.message.contains("Welcome!"), "{} {id}", failure.message);
}

#[test]
fn what_a_server_prints_beside_its_messages_is_logged() {
    let lines = logged(|| {
        let mut client = Scripted::start(&[NEWEST_LEGACY]);
        client.feed(Input::Frame(b"Starting \x1b[31mup"));
        expect_legacy(&mut client, "2025-11-25");
        for line in ["one", "two", "three"] {
            client.feed(Input::Frame(line.as_bytes()));
        }
    });
    let reason = "which is not a message; over stdio a server must print to standard error";
    let expected = [r#""Starting \u{1b}[31mup""#, r#""one""#, r#""two""#];
    assert_eq!(lines, expected.map(|text| format!("the server printed {text}, {reason}")));
}

#[test]
fn a_server_that_exits_late_after_the_probe_is_restarted_too() {
    let mut client = Scripted::start(&Revision::ALL);
    client.sent();
    client.receive(&error(1, -32601, None));
    client.sent();
    client.feed(Input::Closed("gone"));
    assert!(matches!(client.session.poll(), Some(Output::Restart)));
}

#[test]
fn a_pinned_server_is_never_restarted() {
    for revision in [MODERN, NEWEST_LEGACY] {
        let mut client = Scripted::start(&[revision]);
        client.sent();
        client.feed(Input::Closed("gone"));
        assert_eq!(client.failed().kind, ErrorKind::Connect);
    }
}

#[test]
fn initialize_times_out_and_is_never_cancelled() {
    let mut client = Scripted::start(&[NEWEST_LEGACY]);
    expect_initialize(&mut client, "2025-11-25");
    assert!(client.advance(Duration::from_secs(60)));
    let failure = client.failed();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert!(failure.message.contains("initialize") && failure.message.contains("60 s"));
    client.silent();
}

#[test]
fn pings_and_logs_during_the_handshake_are_served() {
    let mut client = Scripted::start(&[NEWEST_LEGACY]);
    let id = expect_initialize(&mut client, "2025-11-25");
    client.receive(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(client.sent(), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    client.receive(&json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}));
    assert_eq!(client.sent()["error"]["code"], -32600);
    client.receive(&initialize_result(id, "2025-11-25"));
    assert_eq!(client.sent()["method"], "notifications/initialized");
    client.ready();
}

#[test]
fn a_server_without_a_name_or_with_odd_members_is_accepted() {
    let mut client = Scripted::start(&[NEWEST_LEGACY]);
    client.sent();
    client.receive(&json!({"jsonrpc": "2.0", "id": 1, "result": {
        "protocolVersion": "2025-11-25", "capabilities": null, "serverInfo": "me", "instructions": 4,
    }}));
    client.sent();
    let server = client.ready();
    assert_eq!((server.info.name.as_str(), server.capabilities.get()), ("", "{}"));
}

#[test]
fn an_empty_list_of_revisions_is_a_misuse() {
    let mut client = Scripted::start(&[]);
    assert_eq!(client.failed().kind, ErrorKind::Misuse);
}
