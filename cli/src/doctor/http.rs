//! HTTP: statuses, media types, sessions, `Origin` and `Host`, and the headers that repeat the body in 2026-07-28.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::Revision;
use serde_json::{Value, json};

use super::{
    check::{Check, Section, Severity, sections},
    components::Listed,
    report::{Report, shown},
    session::{RpcReply, Session},
    wire::{End, Exchange, Server, http::Headers},
};

pub const CHECKS: &[&Check] = &[
    &MEDIA_TYPE,
    &STREAM_ENDS,
    &NOTIFICATION,
    &GET,
    &VERSION,
    &ORIGIN,
    &ORIGIN_STATUS,
    &HOST,
    &SESSION_ID,
    &SESSION_SECURE,
    &SESSION_MISSING,
    &SESSION_UNKNOWN,
    &SESSION_ENDED,
    &MINTED,
    &MODERN_GET,
    &VERSION_MISMATCH,
    &VERSION_MISSING,
    &METHOD,
    &NAME,
    &ENCODED,
];

static MEDIA_TYPE: Check = Check {
    id: "http.media-type",
    title: "answers requests with application/json or text/event-stream",
    section: sections::HTTP_SENDING,
    fix: "set the Content-Type of the response",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static STREAM_ENDS: Check = Check {
    id: "http.stream-ends",
    title: "ends a stream after the response",
    severity: Severity::Warning,
    section: Section::moved(
        "basic/transports/streamable-http#receiving-messages",
        "basic/transports#sending-messages-to-the-server",
    ),
    fix: "close the stream once the response was sent",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static NOTIFICATION: Check = Check {
    id: "http.notification",
    title: "answers a notification with status 202 without a body, or with an error status",
    section: sections::HTTP_SENDING,
    fix: "return 202 Accepted and an empty body",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static GET: Check = Check {
    id: "http.get",
    title: "answers GET with a stream or with status 405",
    section: Section::new("basic/transports#listening-for-messages-from-the-server"),
    fix: "return text/event-stream, or 405 Method Not Allowed",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static VERSION: Check = Check {
    id: "http.unknown-version",
    title: "rejects an unknown MCP-Protocol-Version with status 400",
    section: Section::new("basic/transports#protocol-version-header"),
    fix: "return 400 Bad Request for a version that the server does not know",
    since: Revision::V2025_06_18,
    ..Check::LEGACY
};
pub static ORIGIN: Check = Check {
    id: "http.origin",
    title: "rejects requests of foreign web pages",
    section: sections::HTTP_SECURITY,
    fix: "compare the Origin header with the origins that you expect, to prevent DNS rebinding",
    ..Check::ANY
};
static ORIGIN_STATUS: Check = Check {
    id: "http.origin-status",
    title: "rejects requests of foreign web pages with status 403",
    section: sections::HTTP_SECURITY,
    fix: "return 403 Forbidden for an Origin that is not expected",
    since: Revision::V2025_11_25,
    ..Check::ANY
};
pub static HOST: Check = Check {
    id: "http.host",
    title: "rejects requests with the name of another host",
    severity: Severity::Warning,
    section: sections::HTTP_SECURITY,
    fix: "compare the Host header with localhost, 127.0.0.1 and [::1]: a page that uses DNS rebinding sends its own name",
    ..Check::ANY
};
static SESSION_ID: Check = Check {
    id: "http.session-id",
    title: "assigns session ids of visible ASCII characters",
    section: Section::new("basic/transports#session-management"),
    fix: "use a UUID or random bytes in hexadecimal",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static SESSION_SECURE: Check = Check {
    id: "http.session-id-secure",
    title: "assigns session ids that can't be guessed",
    severity: Severity::Warning,
    section: Section::new("basic/transports#session-management"),
    fix: "use at least 128 random bits",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static SESSION_MISSING: Check = Check {
    id: "http.session-missing",
    title: "rejects requests without the session id with status 400",
    severity: Severity::Warning,
    section: Section::new("basic/transports#session-management"),
    fix: "return 400 Bad Request if the header Mcp-Session-Id is missing",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static SESSION_UNKNOWN: Check = Check {
    id: "http.session-unknown",
    title: "rejects an unknown session id with status 404",
    severity: Severity::Warning,
    section: Section::new("basic/transports#session-management"),
    fix: "return 404 Not Found, so that clients open a new session after a restart of the server",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static SESSION_ENDED: Check = Check {
    id: "http.session-ended",
    title: "rejects requests of an ended session with status 404",
    section: Section::new("basic/transports#session-management"),
    fix: "return 404 Not Found for a session that DELETE has ended",
    since: Revision::V2025_03_26,
    ..Check::LEGACY
};
static MINTED: Check = Check {
    id: "http.no-session",
    title: "assigns no session ids",
    severity: Severity::Warning,
    section: Section::new("basic/transports/streamable-http#earlier-streamable-http-revisions"),
    fix: "leave out Mcp-Session-Id in responses to requests of 2026-07-28",
    ..Check::MODERN
};
static MODERN_GET: Check = Check {
    id: "http.method-not-allowed",
    title: "answers GET with status 405, as it speaks no earlier revision",
    severity: Severity::Warning,
    section: Section::new("basic/transports/streamable-http#earlier-streamable-http-revisions"),
    fix: "return 405 Method Not Allowed for GET and DELETE",
    ..Check::MODERN
};
static VERSION_MISMATCH: Check = Check {
    id: "headers.version",
    title: "rejects a MCP-Protocol-Version that differs from `_meta` with error -32020",
    section: Section::new("basic/transports/streamable-http#protocol-version-header"),
    fix: "return status 400 and error -32020 (HeaderMismatch)",
    ..Check::MODERN
};
static VERSION_MISSING: Check = Check {
    id: "headers.version-missing",
    title: "rejects a request without MCP-Protocol-Version with error -32020",
    section: Section::new("basic/transports/streamable-http#server-validation"),
    fix: "return status 400 and error -32020 (HeaderMismatch)",
    ..Check::MODERN
};
static METHOD: Check = Check {
    id: "headers.method",
    title: "rejects a missing or different Mcp-Method with error -32020",
    section: Section::new("basic/transports/streamable-http#server-validation"),
    fix: "compare the header with the method of the body; return status 400 and error -32020",
    ..Check::MODERN
};
static NAME: Check = Check {
    id: "headers.name",
    title: "rejects a missing or different Mcp-Name with error -32020",
    section: Section::new("basic/transports/streamable-http#server-validation"),
    fix: "compare the header with `params.name` or `params.uri`; return status 400 and error -32020",
    ..Check::MODERN
};
static ENCODED: Check = Check {
    id: "headers.encoded",
    title: "decodes a Mcp-Name in Base64 before it is compared",
    section: Section::new("basic/transports/streamable-http#value-encoding"),
    fix: "decode values of the form =?base64?…?=",
    ..Check::MODERN
};

/// The origin of a foreign web page.
pub const EVIL: &str = "http://evil.example";

pub async fn run(session: &mut Session, listed: &Listed, report: &mut Report) {
    let revision = session.revision;
    let method = if session.is_modern() { "server/discover" } else { "ping" };
    let id = session.new_id();
    let text = session.request_text(&id, method, json!({}));
    let (exchange, _) = session.exchange_with(&text, &id, &[]).await;
    if let Some(head) = &exchange.http {
        let kind = head.media_type();
        let is_known = matches!(kind.as_str(), "application/json" | "text/event-stream");
        let observed = format!("HTTP {}, Content-Type: {}", head.status, shown(&kind));
        report.record(&MEDIA_TYPE, revision, if is_known { Ok(()) } else { Err(observed) });
        if head.is_stream() && exchange.end == End::Answered {
            let outcome = if head.has_ended {
                Ok(())
            } else {
                Err("the stream is open a second after the response".into())
            };
            report.record(&STREAM_ENDS, revision, outcome);
        }
        if session.is_modern() {
            let minted = head.header("mcp-session-id");
            report.record(
                &MINTED,
                revision,
                minted.map_or(Ok(()), |session_id| {
                    Err(format!("Mcp-Session-Id: {}", shown(session_id)))
                }),
            );
        }
    }
    security(session, method, report).await;
    if session.is_modern() {
        modern(session, listed, report).await;
    } else {
        legacy(session, report).await;
    }
}

async fn security(session: &mut Session, method: &str, report: &mut Report) {
    let revision = session.revision;
    let is_local = matches!(&session.server, Server::Address(it) if it.is_local);
    let id = session.new_id();
    let text = session.request_text(&id, method, json!({}));
    let (exchange, _) = session.exchange_with(&text, &id, &[("origin", Some(EVIL))]).await;
    let status = status(&exchange);
    let observed = format!("Origin: {EVIL}: {}", exchange.observed());
    // A public server may expect every origin. One on this machine can be reached from web pages by DNS rebinding only.
    let severity = if is_local { Severity::Failure } else { Severity::Note };
    let is_rejected = status >= 400;
    report.record_as(
        &ORIGIN,
        severity,
        revision,
        if is_rejected { Ok(()) } else { Err(observed.clone()) },
    );
    if is_rejected {
        report.record(&ORIGIN_STATUS, revision, if status == 403 { Ok(()) } else { Err(observed) });
    }
    if is_local {
        let id = session.new_id();
        let text = session.request_text(&id, method, json!({}));
        let (exchange, _) =
            session.exchange_with(&text, &id, &[("host", Some("evil.example"))]).await;
        let outcome = if self::status(&exchange) >= 400 {
            Ok(())
        } else {
            Err(format!("Host: evil.example: {}", exchange.observed()))
        };
        report.record(&HOST, revision, outcome);
    }
}

async fn legacy(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    let text = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never-sent"}});
    let exchange = session.send(&text.to_string()).await;
    let is_right = exchange.http.as_ref().is_some_and(|head| {
        head.status >= 400
            || (head.status == 202 && head.body.is_empty() && exchange.messages.is_empty())
    });
    report.record(
        &NOTIFICATION,
        revision,
        if is_right { Ok(()) } else { Err(exchange.observed()) },
    );

    let outcome = match session.get().await {
        Ok(stream)
            if stream.head.status == 405
                || (stream.head.status == 200 && stream.head.is_stream()) =>
        {
            Ok(())
        }
        Ok(stream) => Err(format!(
            "HTTP {}, Content-Type: {}",
            stream.head.status,
            shown(&stream.head.media_type())
        )),
        Err(End::Failed(reason)) => Err(shown(&reason)),
        Err(_) => Err("no response".to_owned()),
    };
    report.record(&GET, revision, outcome);

    let (exchange, _) = ping_with(session, &[("mcp-protocol-version", Some("1999-01-01"))]).await;
    report.record(&VERSION, revision, expect(&exchange, 400));
    sessions(session, report).await;
}

async fn sessions(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    let Some(session_id) = session.id.clone() else { return };
    let is_visible =
        session_id.bytes().all(|byte| matches!(byte, 0x21..=0x7e)) && !session_id.is_empty();
    let observed = format!("Mcp-Session-Id: {}", shown(&session_id));
    report.record(&SESSION_ID, revision, if is_visible { Ok(()) } else { Err(observed.clone()) });
    report.record(
        &SESSION_SECURE,
        revision,
        if session_id.len() >= 16 { Ok(()) } else { Err(observed) },
    );

    let (exchange, _) = ping_with(session, &[("mcp-session-id", None)]).await;
    // A server that does not need the id may answer.
    let outcome = if status(&exchange) < 300 { Ok(()) } else { expect(&exchange, 400) };
    report.record(&SESSION_MISSING, revision, outcome);
    let (exchange, _) =
        ping_with(session, &[("mcp-session-id", Some("00000000-0000-4000-8000-000000000000"))])
            .await;
    report.record(&SESSION_UNKNOWN, revision, expect(&exchange, 404));
}

/// Ends the session by DELETE, and checks that it has ended.
pub async fn end(session: &mut Session, report: &mut Report) {
    if session.id.is_none() {
        return;
    }
    let status = session.delete().await;
    if status.is_some_and(|status| (200..300).contains(&status)) {
        let (exchange, _) = ping_with(session, &[]).await;
        report.record(&SESSION_ENDED, session.revision, expect(&exchange, 404));
    }
}

async fn modern(session: &mut Session, listed: &Listed, report: &mut Report) {
    let revision = session.revision;
    let is_mismatch = |exchange: &Exchange, code: Option<i64>| {
        if code == Some(-32020) && status(exchange) == 400 {
            Ok(())
        } else {
            Err(exchange.observed())
        }
    };
    let only_modern = report.is_only_modern;
    let discover = [
        (&VERSION_MISMATCH, "mcp-protocol-version", Some("2025-11-25"), true),
        (&VERSION_MISSING, "mcp-protocol-version", None, only_modern),
        (&METHOD, "mcp-method", Some("tools/list"), true),
        (&METHOD, "mcp-method", None, true),
    ];
    for (check, header, value, applies) in discover {
        if !applies {
            continue;
        }
        let id = session.new_id();
        let text = session.request_text(&id, "server/discover", json!({}));
        let (exchange, reply) = session.exchange_with(&text, &id, &[(header, value)]).await;
        let named =
            |observed: String| format!("{header}: {}: {observed}", value.unwrap_or("(none)"));
        let outcome = is_mismatch(&exchange, reply.code()).map_err(named);
        // A server that speaks earlier revisions too may take the header for the one that says which revision it is.
        let is_contested = check.id == VERSION_MISMATCH.id && !only_modern;
        let severity = if is_contested { Severity::Warning } else { check.severity };
        report.record_as(check, severity, revision, outcome);
    }
    if only_modern {
        let outcome = match session.get().await {
            Ok(stream) if stream.head.status == 405 => Ok(()),
            Ok(stream) => Err(format!("HTTP {}", stream.head.status)),
            Err(_) => Err("no response".to_owned()),
        };
        report.record(&MODERN_GET, revision, outcome);
    }
    let Some((method, params, name)) = named_request(listed) else { return };
    for value in [Some("another-name"), None] {
        let id = session.new_id();
        let text = session.request_text(&id, method, params.clone());
        let (exchange, reply) = session.exchange_with(&text, &id, &[("mcp-name", value)]).await;
        let named =
            |observed: String| format!("mcp-name: {}: {observed}", value.unwrap_or("(none)"));
        report.record(&NAME, revision, is_mismatch(&exchange, reply.code()).map_err(named));
    }
    let encoded = format!("=?base64?{}?=", STANDARD.encode(&name));
    let id = session.new_id();
    let text = session.request_text(&id, method, params);
    let (exchange, reply) =
        session.exchange_with(&text, &id, &[("mcp-name", Some(&encoded))]).await;
    report.record(
        &ENCODED,
        revision,
        if reply.code() == Some(-32020) { Err(exchange.observed()) } else { Ok(()) },
    );
}

/// Returns a request with a name that changes nothing.
fn named_request(listed: &Listed) -> Option<(&'static str, Value, String)> {
    if let Some(uri) = listed.resources.iter().find_map(|resource| resource["uri"].as_str()) {
        return Some(("resources/read", json!({"uri": uri}), uri.to_owned()));
    }
    if let Some(name) = listed.prompts.iter().find_map(|prompt| prompt["name"].as_str()) {
        return Some(("prompts/get", json!({"name": name}), name.to_owned()));
    }
    let harmless = listed.tools.iter().find(|tool| tool["annotations"]["readOnlyHint"] == true)?;
    let name = harmless["name"].as_str()?;
    Some(("tools/call", json!({"name": name, "arguments": {}}), name.to_owned()))
}

async fn ping_with(session: &mut Session, headers: Headers<'_>) -> (Exchange, RpcReply) {
    let id = session.new_id();
    let text = session.request_text(&id, "ping", json!({}));
    session.exchange_with(&text, &id, headers).await
}

fn status(exchange: &Exchange) -> u16 {
    exchange.http.as_ref().map_or(0, |head| head.status)
}

fn expect(exchange: &Exchange, status: u16) -> Result<(), String> {
    if self::status(exchange) == status { Ok(()) } else { Err(exchange.observed()) }
}
