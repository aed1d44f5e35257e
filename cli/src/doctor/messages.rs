//! Messages that are wrong, or that no handler knows: each has its error, and the server goes on.

use gudgeon::Revision;
use serde_json::{Value, json};

use super::{
    check::{Check, Section, Severity, sections},
    report::Report,
    session::Session,
    wire::{End, Exchange},
};

pub const CHECKS: &[&Check] = &[
    &UNKNOWN_METHOD,
    &STRING_ID,
    &HUGE_ID,
    &NOTIFICATION,
    &UNKNOWN_RESPONSE,
    &PARSE_ERROR,
    &INVALID_REQUEST,
    &DUPLICATE_KEYS,
    &INVALID_PARAMS,
    &SURVIVES,
];

static UNKNOWN_METHOD: Check = Check {
    id: "messages.unknown-method",
    title: "answers an unknown method with error -32601",
    section: sections::JSON_RPC_ERRORS,
    fix: "return -32601 (Method not found) for every method that the server does not know; over HTTP in 2026-07-28 with status 404",
    ..Check::ANY
};
static STRING_ID: Check = Check {
    id: "messages.string-id",
    title: "returns an id that is a string as it came",
    section: sections::RESPONSES,
    fix: "copy the id from the request; it may be any string",
    ..Check::ANY
};
static HUGE_ID: Check = Check {
    id: "messages.huge-id",
    title: "returns an id above 2^53 as it came",
    severity: Severity::Warning,
    section: sections::RESPONSES,
    fix: "copy the digits of the id instead of a floating-point number",
    ..Check::ANY
};
static NOTIFICATION: Check = Check {
    id: "messages.notification",
    title: "sends no response to a notification",
    section: sections::NOTIFICATIONS,
    fix: "ignore notifications that are not known",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static UNKNOWN_RESPONSE: Check = Check {
    id: "messages.unknown-response",
    title: "sends no response to a response",
    section: sections::MESSAGES,
    fix: "ignore responses to requests that were never sent",
    ..Check::LEGACY
};
static PARSE_ERROR: Check = Check {
    id: "messages.parse-error",
    title: "answers broken JSON with error -32700",
    severity: Severity::Warning,
    section: sections::JSON_RPC_ERRORS,
    fix: "return -32700 (Parse error), so that the client does not wait; over HTTP with status 400",
    ..Check::ANY
};
static INVALID_REQUEST: Check = Check {
    id: "messages.invalid-request",
    title: "answers a message that is not a request with error -32600",
    severity: Severity::Warning,
    section: sections::JSON_RPC_ERRORS,
    fix: "return -32600 (Invalid Request), so that the client does not wait",
    ..Check::ANY
};
static DUPLICATE_KEYS: Check = Check {
    id: "messages.duplicate-keys",
    title: "answers a message with a key that occurs twice",
    severity: Severity::Warning,
    section: sections::MESSAGES,
    fix: "take one of the values, or return -32600",
    ..Check::ANY
};
static INVALID_PARAMS: Check = Check {
    id: "messages.invalid-params",
    title: "answers missing parameters with error -32602",
    severity: Severity::Warning,
    section: sections::JSON_RPC_ERRORS,
    fix: "return -32602 (Invalid params) if a required parameter is missing or has a wrong type",
    ..Check::ANY
};
static SURVIVES: Check = Check {
    id: "messages.survives",
    title: "goes on after each message, right or wrong",
    section: sections::JSON_RPC_ERRORS,
    fix: "catch the error and answer with it; one wrong message must not end the connection",
    ..Check::ANY
};

/// Messages that are well-formed JSON and no valid requests. Their second member is the id of the response, if it can be
/// read.
fn wrong_messages() -> Vec<(&'static str, Value)> {
    vec![
        ("without \"jsonrpc\"", json!({"id": "wrong-1", "method": "ping"})),
        ("with \"jsonrpc\": \"1.0\"", json!({"jsonrpc": "1.0", "id": "wrong-2", "method": "ping"})),
        ("without \"method\"", json!({"jsonrpc": "2.0", "id": "wrong-3"})),
        ("with \"method\": 7", json!({"jsonrpc": "2.0", "id": "wrong-4", "method": 7})),
    ]
}

/// Sends the messages. Returns `false` once the server is gone.
pub async fn run(session: &mut Session, report: &mut Report) -> bool {
    let revision = session.revision;
    ids_and_methods(session, report).await;
    notifications(session, report).await;
    if session.capability("tools").is_some() {
        let (exchange, reply) = session.request("tools/call", json!({})).await;
        let outcome = match reply.code() {
            Some(-32602) => Ok(()),
            _ => Err(format!("tools/call without a name: {}", exchange.observed())),
        };
        report.record(&INVALID_PARAMS, revision, outcome);
    }

    let exchange = session.provoke(r#"{"jsonrpc":"2.0","id":"broken","method":"ping""#, None).await;
    report.record(&PARSE_ERROR, revision, rejected(&exchange, Some(-32700)));
    if !survives("broken JSON", &exchange, session, report).await {
        return false;
    }
    for (name, message) in wrong_messages() {
        let exchange = session.provoke(&message.to_string(), Some(&message["id"])).await;
        let outcome =
            rejected(&exchange, None).map_err(|error| format!("a message {name}: {error}"));
        report.record(&INVALID_REQUEST, revision, outcome);
        if !survives(&format!("a message {name}"), &exchange, session, report).await {
            return false;
        }
    }
    let method = if session.is_modern() { "server/discover" } else { "ping" };
    let id = json!("duplicate");
    let text = session.request_text(&id, method, json!({}));
    let text = text.replacen(r#""jsonrpc":"2.0","#, r#""jsonrpc":"2.0","jsonrpc":"2.0","#, 1);
    let exchange = session.provoke(&text, Some(&id)).await;
    let is_answered = exchange.any_response().is_some() || exchange.http.is_some();
    report.record(
        &DUPLICATE_KEYS,
        revision,
        if is_answered { Ok(()) } else { Err(exchange.observed()) },
    );
    survives("a key that occurs twice", &exchange, session, report).await
}

async fn ids_and_methods(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    let id = session.new_id();
    let text = session.request_text(&id, "doctor/unknown", json!({}));
    let exchange = session.provoke(&text, Some(&id)).await;
    let code = exchange.response(&id).map(|response| response.value["error"]["code"].clone());
    let status = exchange.http.as_ref().map(|head| head.status);
    let is_right = code == Some(json!(-32601))
        && (!session.is_modern() || status.is_none_or(|status| status == 404));
    report.record(
        &UNKNOWN_METHOD,
        revision,
        if is_right { Ok(()) } else { Err(exchange.observed()) },
    );

    let method = if session.is_modern() { "server/discover" } else { "ping" };
    for (check, id) in
        [(&STRING_ID, json!("7 \"é\" \u{1f600}")), (&HUGE_ID, json!(9_007_199_254_740_993_u64))]
    {
        // The nearest floating-point number is a wrong answer to this request, not one to a request that was never sent.
        session.observer.allow(&json!(9_007_199_254_740_992_u64));
        let text = session.request_text(&id, method, json!({}));
        let exchange = session.provoke(&text, Some(&id)).await;
        let is_right =
            exchange.response(&id).is_some_and(|response| response.value.get("result").is_some());
        report.record(check, revision, if is_right { Ok(()) } else { Err(exchange.observed()) });
    }
}

async fn notifications(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    // 2026-07-28 defines no notifications from clients over HTTP, and not which headers they would have.
    if !(session.is_modern() && session.server.is_http()) {
        let text = json!({"jsonrpc": "2.0", "method": "notifications/doctor"}).to_string();
        let exchange = session.provoke_silence(&text).await;
        // Over HTTP, a notification may be refused with a status and an error without an id.
        let is_error = exchange.http.as_ref().is_some_and(|head| head.status >= 400);
        let is_right = exchange.any_response().is_none() || is_error;
        report.record(
            &NOTIFICATION,
            revision,
            if is_right { Ok(()) } else { Err(exchange.observed()) },
        );
    }
    if !session.is_modern() {
        let text = json!({"jsonrpc": "2.0", "id": "never-sent", "result": {}}).to_string();
        let exchange = session.provoke_silence(&text).await;
        let is_error = exchange.http.as_ref().is_some_and(|head| head.status >= 400);
        let is_right = exchange.any_response().is_none() || is_error;
        report.record(
            &UNKNOWN_RESPONSE,
            revision,
            if is_right { Ok(()) } else { Err(exchange.observed()) },
        );
    }
}

/// Returns `Ok` if an error came, with this code if one is given.
fn rejected(exchange: &Exchange, code: Option<i64>) -> Result<(), String> {
    let error = exchange.any_response().and_then(|response| response.value.get("error"));
    let is_right = match (error, code) {
        (Some(error), Some(code)) => error["code"] == code,
        (Some(error), None) => {
            error["code"].as_i64().is_some_and(|code| (-32700..=-32600).contains(&code))
        }
        (None, _) => false,
    };
    let status = exchange.http.as_ref().map(|head| head.status);
    // Over HTTP, the status tells the client enough.
    if is_right || (error.is_none() && status.is_some_and(|status| (400..500).contains(&status))) {
        return Ok(());
    }
    Err(exchange.observed())
}

/// Records whether the server still answers.
async fn survives(
    after: &str,
    exchange: &Exchange,
    session: &mut Session,
    report: &mut Report,
) -> bool {
    if session.server.is_http() {
        let is_gone = matches!(exchange.end, End::Failed(_) | End::Silent);
        let outcome =
            if is_gone { Err(format!("after {after}: {}", exchange.observed())) } else { Ok(()) };
        report.record(&SURVIVES, session.revision, outcome);
        return true;
    }
    let method = if session.is_modern() { "server/discover" } else { "ping" };
    let answered = session.result(method, json!({})).await;
    let is_alive = answered.is_ok();
    let outcome = answered.map(|_| ()).map_err(|error| format!("after {after}: {error}"));
    report.record(&SURVIVES, session.revision, outcome);
    is_alive
}

/// Records that the server does not answer any more after correct messages.
pub fn died(after: &str, exchange: &Exchange, revision: Revision, report: &mut Report) {
    report.record(&SURVIVES, revision, Err(format!("after {after}: {}", exchange.observed())));
}

/// Batches, which only 2025-03-26 defines.
pub mod batches {
    use super::{Check, Report, Revision, Section, Session, Severity, json};

    pub const CHECKS: &[&Check] = &[&ACCEPTS, &OLDEST, &REFUSES];

    static ACCEPTS: Check = Check {
        id: "batches.accepts",
        title: "answers every request of a batch",
        section: Section::new("basic#batching"),
        fix: "answer the requests of an array, and nothing for its notifications",
        since: Revision::V2025_03_26,
        until: Revision::V2025_03_26,
        ..Check::ANY
    };
    static OLDEST: Check = Check {
        id: "batches.json-rpc",
        title: "answers every request of a batch, as JSON-RPC 2.0 defines it",
        severity: Severity::Note,
        section: Section::new("https://www.jsonrpc.org/specification#batch"),
        fix: "answer the requests of an array, and nothing for its notifications",
        until: Revision::V2024_11_05,
        ..Check::ANY
    };
    static REFUSES: Check = Check {
        id: "batches.refuses",
        title: "refuses batches, which the revision does not have",
        severity: Severity::Warning,
        section: Section::moved(
            "basic/transports/streamable-http#sending-messages",
            "basic/transports#sending-messages-to-the-server",
        ),
        fix: "answer an array with error -32600; over HTTP with status 400",
        since: Revision::V2025_06_18,
        ..Check::ANY
    };

    pub async fn run(session: &mut Session, report: &mut Report) {
        let revision = session.revision;
        let method = if session.is_modern() { "server/discover" } else { "ping" };
        let (first, second) = (json!("batch-1"), json!("batch-2"));
        let requests = [
            session.request_text(&first, method, json!({})),
            r#"{"jsonrpc":"2.0","method":"notifications/doctor"}"#.to_owned(),
            session.request_text(&second, method, json!({})),
        ];
        let exchange = session.provoke(&format!("[{}]", requests.join(",")), None).await;
        let has = |id: &serde_json::Value| {
            exchange.messages.iter().any(|message| match &message.value {
                serde_json::Value::Array(batch) => batch
                    .iter()
                    .any(|response| response["id"] == *id && response.get("result").is_some()),
                value => value["id"] == *id && value.get("result").is_some(),
            })
        };
        let (all, none) = (has(&first) && has(&second), !has(&first) && !has(&second));
        let observed = match exchange.messages.last() {
            Some(last) if exchange.any_response().is_none() => {
                super::super::report::shown(&last.raw)
            }
            _ => exchange.observed(),
        };
        let outcome = |is_right: bool| if is_right { Ok(()) } else { Err(observed.clone()) };
        report.record(&ACCEPTS, revision, outcome(all));
        report.record(&OLDEST, revision, outcome(all));
        report.record(&REFUSES, revision, outcome(none));
    }
}
