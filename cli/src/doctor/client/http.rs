//! Checks of a client over Streamable HTTP: headers, sessions, and streams that are resumed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::Revision;
use http::Method;
use serde_json::Value;

use super::check_connection;
use crate::doctor::{
    check::{Check, Section, Severity, sections},
    probe::{
        self, PARAM,
        http::{Dropped, ProbeSession, RETRY, Record, Recorded, SessionEnd},
    },
    report::{Report, shown},
};

pub const CHECKS: &[&Check] = &[
    &ACCEPT,
    &CONTENT_TYPE,
    &SINGLE,
    &VERSION,
    &SESSION,
    &RENEWS,
    &DELETES,
    &RESUMES,
    &RETRIES,
    &METHOD,
    &NAME,
    &PARAM_HEADER,
    &CANCELS,
];

const SESSIONS: Section = Section::new("basic/transports#session-management");
const STREAMS: Section = Section::new("basic/transports#sending-messages-to-the-server");

/// A check of the revisions with sessions over Streamable HTTP.
const LEGACY_HTTP: Check = Check { since: Revision::V2025_03_26, ..Check::LEGACY };

static ACCEPT: Check = Check {
    id: "client-http.accept",
    title: "accepts application/json and text/event-stream",
    section: sections::HTTP_SENDING,
    fix: "send `Accept: application/json, text/event-stream` with POST, and `Accept: text/event-stream` with GET",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static CONTENT_TYPE: Check = Check {
    id: "client-http.content-type",
    title: "sends JSON as application/json",
    severity: Severity::Warning,
    section: sections::HTTP_SENDING,
    fix: "send `Content-Type: application/json`; servers reject other types",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static SINGLE: Check = Check {
    id: "client-http.single-message",
    title: "sends one message in each POST",
    section: sections::HTTP_SENDING,
    fix: "send no batches, which only 2025-03-26 has, and no responses in 2026-07-28",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static VERSION: Check = Check {
    id: "client-http.version",
    title: "names the revision in MCP-Protocol-Version",
    section: Section::moved(
        "basic/transports/streamable-http#protocol-version-header",
        "basic/transports#protocol-version-header",
    ),
    fix: "send the negotiated version with every request after `initialize`; in 2026-07-28 the version of `_meta`",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static SESSION: Check = Check {
    id: "client-http.session",
    title: "sends the session id with each request after `initialize`",
    section: SESSIONS,
    fix: "repeat Mcp-Session-Id of the response to `initialize` with every POST, GET and DELETE",
    ..LEGACY_HTTP
};
static RENEWS: Check = Check {
    id: "client-http.renews",
    title: "begins a new session once the server has ended it",
    section: SESSIONS,
    fix: "after status 404, send `initialize` without Mcp-Session-Id, then the request again",
    ..LEGACY_HTTP
};
static DELETES: Check = Check {
    id: "client-http.deletes",
    title: "ends its session by DELETE",
    severity: Severity::Warning,
    section: SESSIONS,
    fix: "send DELETE with Mcp-Session-Id when the session is not needed any more",
    ..LEGACY_HTTP
};
static RESUMES: Check = Check {
    id: "client-http.resumes",
    title: "resumes a stream that ended before its response",
    severity: Severity::Warning,
    section: STREAMS,
    fix: "send GET with the id of the last event in Last-Event-ID",
    since: Revision::V2025_11_25,
    ..Check::LEGACY
};
static RETRIES: Check = Check {
    id: "client-http.retry",
    title: "waits as long as `retry` says before it resumes a stream",
    section: STREAMS,
    fix: "wait the milliseconds of the field `retry` before the GET",
    since: Revision::V2025_11_25,
    ..Check::LEGACY
};
static METHOD: Check = Check {
    id: "client-http.method",
    title: "repeats the method of each request in Mcp-Method",
    section: Section::new("basic/transports/streamable-http#standard-request-headers"),
    fix: "send the header Mcp-Method with the method of the body",
    ..Check::MODERN
};
static NAME: Check = Check {
    id: "client-http.name",
    title: "repeats the name of the tool, prompt or resource in Mcp-Name",
    section: Section::new("basic/transports/streamable-http#standard-request-headers"),
    fix: "send `params.name`, or `params.uri` of resources/read, encoded as =?base64?…?= if it is not plain ASCII",
    ..Check::MODERN
};
static PARAM_HEADER: Check = Check {
    id: "client-http.param",
    title: "repeats marked arguments of tools in Mcp-Param headers",
    section: Section::new("basic/transports/streamable-http#custom-headers-from-tool-parameters"),
    fix: "send Mcp-Param-{name} for each argument whose schema has x-mcp-header, and no such header for one that is not given",
    ..Check::MODERN
};
static CANCELS: Check = Check {
    id: "client-http.cancels",
    title: "cancels a request by closing its stream",
    severity: Severity::Warning,
    section: Section::new("basic/patterns/cancellation#transport-specific-cancellation"),
    fix: "close the response instead of sending notifications/cancelled",
    ..Check::MODERN
};

/// Checks the record of the probe.
pub fn examine(record: &Record, report: &mut Report) {
    for (number, session) in record.sessions.iter().enumerate() {
        let own = |request: &&Recorded| request.session == Some(number);
        let requests: Vec<_> = record.requests.iter().filter(own).collect();
        let messages: Vec<_> = requests.iter().flat_map(|request| request.messages()).collect();
        let lines: Vec<_> = messages.iter().map(String::as_str).collect();
        check_connection(&lines, Some(session.revision), session.was_asked, report);
        for request in &requests {
            check_headers(request, session.revision, report);
            check_session(request, session, report);
        }
        if let Some(dropped) = &session.dropped {
            check_resumption(dropped, session.revision, report);
        }
        if let SessionEnd::Gone(requests) = session.end {
            let later = &record.requests[requests..];
            let outcome = check_renewal(later);
            report.record(&RENEWS, session.revision, outcome);
        }
    }
    if let Some(last) = record.sessions.last()
        && !matches!(last.end, SessionEnd::Gone(_))
    {
        let is_deleted = last.end == SessionEnd::Deleted;
        let outcome = if is_deleted { Ok(()) } else { Err("no DELETE came".into()) };
        report.record(&DELETES, last.revision, outcome);
    }
    check_without_session(record, report);
}

/// Checks the requests that belong to no session.
fn check_without_session(record: &Record, report: &mut Report) {
    let own = |request: &&Recorded| request.session.is_none() && request.method == Method::POST;
    let requests: Vec<_> = record.requests.iter().filter(own).collect();
    let is_modern = requests.iter().any(|request| probe::is_modern(&request.message()));
    // A client that went on with `initialize` only asked which revisions there are.
    if requests.is_empty() || (!record.sessions.is_empty() && requests.len() == 1) {
        return;
    }
    let messages: Vec<_> = requests.iter().flat_map(|request| request.messages()).collect();
    let lines: Vec<_> = messages.iter().map(String::as_str).collect();
    check_connection(&lines, None, false, report);
    if is_modern {
        for it in requests {
            check_modern(it, report);
        }
    }
}

/// Checks the headers that all revisions have.
fn check_headers(request: &Recorded, revision: Revision, report: &mut Report) {
    let named = |name: &str| {
        let value = request.header(name).unwrap_or("(none)");
        shown(&format!("{} with {name}: {value}", request.method))
    };
    let accept = request.header("accept").unwrap_or_default().to_ascii_lowercase();
    let wanted: &[&str] = match request.method {
        Method::POST => &["application/json", "text/event-stream"],
        Method::GET => &["text/event-stream"],
        _ => &[],
    };
    let is_accepted = wanted.iter().all(|media_type| accept.contains(media_type));
    report.record(&ACCEPT, revision, if is_accepted { Ok(()) } else { Err(named("accept")) });
    if request.method != Method::POST {
        return;
    }
    let kind = request.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let is_json =
        kind.split(';').next().is_some_and(|media_type| media_type.trim() == "application/json");
    report.record(
        &CONTENT_TYPE,
        revision,
        if is_json { Ok(()) } else { Err(named("content-type")) },
    );
    let message = request.message();
    let is_response = message.get("method").is_none();
    let is_single = message.is_object() && !(is_response && revision > Revision::LATEST_LEGACY);
    report.record(&SINGLE, revision, if is_single { Ok(()) } else { Err(shown(&request.body)) });
}

/// Checks the headers of a request of a session.
fn check_session(request: &Recorded, session: &ProbeSession, report: &mut Report) {
    if request.message()["method"] == "initialize" {
        return;
    }
    let revision = session.revision;
    let described = request.described();
    let outcome = match request.header("mcp-session-id") {
        Some(id) if id == session.id => Ok(()),
        _ => Err(format!("{described} without Mcp-Session-Id")),
    };
    report.record(&SESSION, revision, outcome);
    let version = request.header("mcp-protocol-version");
    match version {
        Some(version) if version == revision.to_string() => {
            report.record(&VERSION, revision, Ok(()));
        }
        Some(version) => {
            // The specification says SHOULD for the negotiated version.
            let observed = format!("{described} with MCP-Protocol-Version: {}", shown(version));
            report.record_as(&VERSION, Severity::Warning, revision, Err(observed));
        }
        None => {
            let observed = format!("{described} without MCP-Protocol-Version");
            report.record(&VERSION, revision, Err(observed));
        }
    }
}

fn check_resumption(dropped: &Dropped, revision: Revision, report: &mut Report) {
    let Some((after, id)) = &dropped.resumed else {
        let observed = "no GET with Last-Event-ID came";
        return report.record(&RESUMES, revision, Err(observed.into()));
    };
    let outcome = match id {
        Some(id) if *id == dropped.event => Ok(()),
        id => Err(format!("Last-Event-ID: {}", shown(id.as_deref().unwrap_or("(none)")))),
    };
    report.record(&RESUMES, revision, outcome);
    let observed =
        format!("{} ms after the end, with retry: {}", after.as_millis(), RETRY.as_millis());
    report.record(&RETRIES, revision, if *after >= RETRY { Ok(()) } else { Err(observed) });
}

/// Looks for a new session in the requests after the one that was answered with 404.
fn check_renewal(later: &[Recorded]) -> Result<(), String> {
    let initialize = later.iter().find(|request| request.message()["method"] == "initialize");
    match initialize.map(|request| request.header("mcp-session-id")) {
        Some(None) => Ok(()),
        Some(Some(id)) => Err(format!("initialize with Mcp-Session-Id: {}", shown(id))),
        None => Err("no initialize came after status 404".into()),
    }
}

/// Checks the headers of a request of 2026-07-28.
fn check_modern(request: &Recorded, report: &mut Report) {
    let revision = Revision::LATEST;
    let message = request.message();
    check_headers(request, revision, report);
    let method = message["method"].as_str().unwrap_or_default();
    if method == "notifications/cancelled" {
        report.record(&CANCELS, revision, Err(shown(&request.body)));
    }
    if method.is_empty() || message.get("id").is_none() {
        // Headers of notifications are not defined.
        return;
    }
    let mut expect = |check: &'static Check, name: &str, value: Option<&str>| {
        let given = request.header(name).map(decoded);
        let is_right = given.as_deref() == value;
        let observed = format!(
            "{} with {name}: {}",
            request.described(),
            shown(request.header(name).unwrap_or("(none)"))
        );
        report.record(check, revision, if is_right { Ok(()) } else { Err(observed) });
    };
    let named = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let version = named.as_str().map_or_else(|| revision.to_string(), str::to_owned);
    expect(&VERSION, "mcp-protocol-version", Some(&version));
    expect(&METHOD, "mcp-method", Some(method));
    let params = &message["params"];
    match method {
        "tools/call" | "prompts/get" => expect(&NAME, "mcp-name", params["name"].as_str()),
        "resources/read" => expect(&NAME, "mcp-name", params["uri"].as_str()),
        _ => (),
    }
    if method == "tools/call"
        && params["name"].as_str().is_some_and(|name| name.starts_with("probe_"))
    {
        let region = params["arguments"]["region"].as_str();
        expect(&PARAM_HEADER, &format!("mcp-param-{}", PARAM.to_ascii_lowercase()), region);
    }
}

/// Decodes the value of a header that repeats a part of the body.
fn decoded(value: &str) -> String {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

impl Recorded {
    fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the messages in the body: none of GET and DELETE, several of a batch.
    fn messages(&self) -> Vec<String> {
        match self.message() {
            Value::Array(batch) => batch.iter().map(Value::to_string).collect(),
            _ if self.method == Method::POST => vec![self.body.clone()],
            _ => Vec::new(),
        }
    }

    /// Returns the method of the message, or else that of the request.
    fn described(&self) -> String {
        match self.message()["method"].as_str() {
            Some(method) => shown(method),
            None => self.method.to_string(),
        }
    }
}
