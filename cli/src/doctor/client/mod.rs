//! Checks of a client: what it sends to the probe over stdio or HTTP.

pub mod http;

use std::{collections::BTreeSet, env, ffi::OsString, fs, process, process::Stdio, time::Duration};

use gudgeon::Revision;
use serde_json::Value;

use super::{
    check::{Check, Section, Severity, sections},
    probe::{CURSORS, PING, UNKNOWN, http::HttpProbe},
    report::{Report, shown},
};
use crate::{
    failure::{Failure, FailureKind},
    frames::http::Listener,
};

/// The address at which the probe listens.
const LOOPBACK: &str = "http://127.0.0.1:0/mcp";

pub const CHECKS: &[&Check] = &[
    &CONNECTS,
    &VALID,
    &FIRST,
    &INITIALIZE,
    &INITIALIZED,
    &IDS,
    &ANSWERS_PING,
    &ANSWERS_UNKNOWN,
    &META,
    &RESPONSES,
    &CURSOR,
    &PAGES,
    &KEEPS_INITIALIZE,
    &CANCELS_OWN,
    &CLOSES,
];

static CONNECTS: Check = Check {
    id: "client.connects",
    title: "connects to the server and sends messages",
    section: Section::new("basic/transports"),
    fix: "start the command in MCP_SERVER_COMMAND, or pass {command} to the client; with --http, connect to MCP_SERVER_URL or {url}",
    ..Check::ANY
};
static VALID: Check = Check {
    id: "client.valid",
    title: "sends nothing but valid JSON-RPC 2.0 messages",
    section: sections::MESSAGES,
    fix: "a message is, over stdio on one line, an object with \"jsonrpc\": \"2.0\" and one of \"method\", \"result\" and \"error\"",
    ..Check::ANY
};
static FIRST: Check = Check {
    id: "client.first",
    title: "begins with `initialize`",
    section: Section::new("basic/lifecycle#initialization"),
    fix: "send `initialize` before any other request",
    ..Check::LEGACY
};
static INITIALIZE: Check = Check {
    id: "client.initialize",
    title: "sends protocolVersion, capabilities and clientInfo",
    section: Section::new("basic/lifecycle#initialization"),
    fix: "send {\"protocolVersion\", \"capabilities\", \"clientInfo\": {\"name\", \"version\"}}",
    ..Check::LEGACY
};
static INITIALIZED: Check = Check {
    id: "client.initialized",
    title: "sends `notifications/initialized` before other requests",
    section: Section::new("basic/lifecycle#initialization"),
    fix: "send notifications/initialized once `initialize` is answered",
    ..Check::LEGACY
};
static IDS: Check = Check {
    id: "client.ids",
    title: "gives each request an id of its own, a string or an integer",
    section: Section::new("basic#requests").in_2024("basic/messages#requests"),
    fix: "count the requests of a connection",
    ..Check::ANY
};
static ANSWERS_PING: Check = Check {
    id: "client.ping",
    title: "answers `ping` with an empty result",
    section: Section::new("basic/utilities/ping#behavior-requirements"),
    fix: "answer {} at once, also while other requests are pending",
    ..Check::LEGACY
};
static ANSWERS_UNKNOWN: Check = Check {
    id: "client.unknown-request",
    title: "answers an unknown request with error -32601",
    section: sections::JSON_RPC_ERRORS,
    fix: "return -32601 (Method not found)",
    ..Check::LEGACY
};
static META: Check = Check {
    id: "client.meta",
    title: "sends protocolVersion and clientCapabilities in `_meta` of each request",
    section: sections::META,
    fix: "add both members of io.modelcontextprotocol/ to `_meta` of every request",
    ..Check::MODERN
};
static RESPONSES: Check = Check {
    id: "client.no-responses",
    title: "sends no responses",
    section: Section::new("basic/transports/stdio#sending-messages"),
    fix: "send requests and notifications only",
    ..Check::MODERN
};
static CURSOR: Check = Check {
    id: "client.cursor",
    title: "returns cursors as they came",
    section: Section::moved(
        "server/utilities/pagination#implementation-guidelines",
        "server/utilities/pagination#implementation-guidelines",
    ),
    fix: "send the nextCursor of the last page, unchanged",
    ..Check::ANY
};
static PAGES: Check = Check {
    id: "client.pages",
    title: "reads all pages of a list, also behind an empty cursor",
    severity: Severity::Warning,
    section: Section::new("server/utilities/pagination#implementation-guidelines"),
    fix: "ask for pages until one has no nextCursor; an empty string is a cursor",
    ..Check::ANY
};
static KEEPS_INITIALIZE: Check = Check {
    id: "client.cancels-initialize",
    title: "does not cancel `initialize`",
    section: Section::new("basic/utilities/cancellation#behavior-requirements"),
    fix: "close the connection instead",
    ..Check::LEGACY
};
static CANCELS_OWN: Check = Check {
    id: "client.cancels-own",
    title: "cancels only requests that it sent",
    section: Section::moved(
        "basic/patterns/cancellation#behavior-requirements",
        "basic/utilities/cancellation#behavior-requirements",
    ),
    fix: "send the id of the request, with its JSON type, as \"requestId\"",
    ..Check::ANY
};
static CLOSES: Check = Check {
    id: "client.closes",
    title: "closes the stdin of the server at the end",
    severity: Severity::Warning,
    section: Section::moved("basic/transports/stdio#shutdown", "basic/lifecycle#shutdown"),
    fix: "close stdin and wait for the server before it is killed",
    ..Check::ANY
};

/// Starts a client with the probe over stdio as its server, and checks what it sent until it ended. With `only`, the probe
/// speaks no other revision.
pub async fn run_stdio(
    words: &[OsString],
    only: Option<Revision>,
    limit: Duration,
) -> Result<Report, Failure> {
    let program = env::current_exe()?;
    let record = env::temp_dir().join(format!("gudgeon-probe-{}.jsonl", process::id()));
    let mut command = format!("{} doctor --probe {}", program.display(), record.display());
    if let Some(revision) = only {
        command = format!("{command} --revision {revision}");
    }
    let mut report = Report::default();
    let ended =
        run_client(words, ("{command}", "MCP_SERVER_COMMAND"), &command, limit, &mut report);
    let ended = ended.await;
    let text = fs::read_to_string(&record).unwrap_or_default();
    // The file is missing if the client never started the server.
    let _ = fs::remove_file(&record);
    ended?;
    examine(&text, only, &mut report);
    Ok(report)
}

/// Like [`run_stdio`], with the probe over HTTP.
pub async fn run_http(
    words: &[OsString],
    only: Option<Revision>,
    limit: Duration,
) -> Result<Report, Failure> {
    let listener = Listener::bind(LOOPBACK).await?;
    let url = listener.url().to_owned();
    let probe = HttpProbe::new(only);
    let own = probe.clone();
    let serving =
        tokio::spawn(
            async move { listener.answer(move |request| own.clone().handle(request)).await },
        );
    let mut report = Report::default();
    let ended = run_client(words, ("{url}", "MCP_SERVER_URL"), &url, limit, &mut report).await;
    serving.abort();
    ended?;
    http::examine(&probe.take(), &mut report);
    if report.revisions.is_empty() {
        report.record(&CONNECTS, Revision::LATEST, Err("no message came".into()));
    }
    Ok(report)
}

/// Starts a client and waits for its end. The server replaces the placeholder in its words, and is in the variable.
async fn run_client(
    words: &[OsString],
    (placeholder, variable): (&str, &str),
    server: &str,
    limit: Duration,
    report: &mut Report,
) -> Result<(), Failure> {
    let words: Vec<OsString> = words
        .iter()
        .map(|word| {
            word.to_str()
                .map_or_else(|| word.clone(), |text| text.replace(placeholder, server).into())
        })
        .collect();
    let Some((program, arguments)) = words.split_first() else {
        let hint = "give the command of the client after `--`";
        return Err(Failure::usage("the client is missing").with_hint(hint));
    };
    let mut client = tokio::process::Command::new(program);
    client.args(arguments).env(variable, server).stdin(Stdio::null());
    // Standard output is for the report.
    client.stdout(Stdio::null()).kill_on_drop(true);
    let mut child = client.spawn().map_err(|error| {
        let message =
            format!("{}: the client can't be started: {error}", program.to_string_lossy());
        Failure::new(FailureKind::Connect, message)
    })?;
    if tokio::time::timeout(limit, child.wait()).await.is_err() {
        report.remark(format!("the client was killed after {} s", limit.as_secs_f32()));
        let _ = child.kill().await;
    }
    Ok(())
}

/// Checks the record of the probe over stdio.
fn examine(record: &str, only: Option<Revision>, report: &mut Report) {
    let entries: Vec<Value> =
        record.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    // A client may start the server several times: once to find out which revisions it speaks.
    for connection in entries
        .split(|entry| entry.get("start").is_some())
        .filter(|connection| !connection.is_empty())
    {
        let lines: Vec<&str> =
            connection.iter().filter_map(|entry| entry["line"].as_str()).collect();
        if !lines.is_empty() {
            check_connection(&lines, only, true, report);
            let has_closed = connection.iter().any(|entry| entry.get("eof").is_some());
            let revision = report.revisions.last().copied().unwrap_or(Revision::LATEST);
            report.record(
                &CLOSES,
                revision,
                if has_closed { Ok(()) } else { Err("the server was ended without it".into()) },
            );
        }
    }
    if report.revisions.is_empty() {
        report.record(&CONNECTS, Revision::LATEST, Err("no message came".into()));
    }
}

/// Checks the messages of one connection. `negotiated` is the revision of a session, if it is known, and `was_asked` true if
/// the probe sent requests to the client.
fn check_connection(
    lines: &[&str],
    negotiated: Option<Revision>,
    was_asked: bool,
    report: &mut Report,
) {
    let messages: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    let initialize = messages.iter().find(|message| message["method"] == "initialize");
    let version = initialize.and_then(|message| message["params"]["protocolVersion"].as_str());
    let revision = match initialize {
        None if messages.iter().any(|message| {
            !message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_null()
        }) =>
        {
            Revision::LATEST
        }
        _ => negotiated
            .or_else(|| version.and_then(Revision::parse))
            .unwrap_or(Revision::LATEST_LEGACY)
            .min(Revision::LATEST_LEGACY),
    };
    if !report.revisions.contains(&revision) {
        report.revisions.push(revision);
    }
    let mut record = |check: &'static Check, is_right: bool, observed: &str| {
        report.record(check, revision, if is_right { Ok(()) } else { Err(shown(observed)) });
    };
    record(&CONNECTS, true, "");
    let mut ids = BTreeSet::new();
    let (mut is_open, mut asked) = (false, 0);
    for (line, message) in lines.iter().zip(&messages) {
        let is_request = message["method"].is_string() && message.get("id").is_some();
        record(&VALID, super::observe::is_valid(message), line);
        if is_request {
            let id = &message["id"];
            // In 2026-07-28, an id may be used again after the response.
            let is_new = ids.insert(id.to_string()) || revision > Revision::LATEST_LEGACY;
            record(&IDS, is_new && (id.is_string() || id.is_i64() || id.is_u64()), line);
            let meta = &message["params"]["_meta"];
            let has = |name: &str| meta.get(format!("io.modelcontextprotocol/{name}")).is_some();
            record(&META, has("protocolVersion") && has("clientCapabilities"), line);
        }
        let method = message["method"].as_str().unwrap_or_default();
        is_open |= method == "notifications/initialized";
        // `server/discover` finds out whether the server speaks 2026-07-28.
        if is_request && !matches!(method, "initialize" | "ping" | "server/discover") {
            record(&INITIALIZED, is_open, line);
        }
        record(&RESPONSES, !method.is_empty() || message.is_null(), line);
        if method == "tools/list" {
            asked += 1;
            let cursor = message["params"].get("cursor").filter(|cursor| !cursor.is_null());
            let is_known = cursor.is_none_or(|cursor| CURSORS.iter().any(|known| cursor == known));
            record(&CURSOR, is_known, line);
        }
        if method == "notifications/cancelled" {
            let id = &message["params"]["requestId"];
            record(&CANCELS_OWN, ids.contains(&id.to_string()), line);
            if let Some(initialize) = initialize {
                record(&KEEPS_INITIALIZE, *id != initialize["id"], line);
            }
        }
    }
    if asked > 0 {
        let reaches = messages.iter().any(|message| {
            message["method"] == "tools/list" && message["params"]["cursor"] == CURSORS[1]
        });
        record(&PAGES, reaches, "the third page of tools/list was never asked for");
    }
    let first = messages.iter().position(|message| {
        message["method"].is_string() && message["method"] != "server/discover"
    });
    record(
        &FIRST,
        first.is_some_and(|index| messages[index]["method"] == "initialize"),
        first.map_or("", |index| lines[index]),
    );
    if let Some(initialize) = initialize {
        let params = &initialize["params"];
        let info = super::shape::check("Implementation", &params["clientInfo"]);
        let is_whole = version.is_some() && params["capabilities"].is_object() && info.is_ok();
        record(&INITIALIZE, is_whole, &initialize.to_string());
    }
    if is_open && was_asked {
        let response = |id: &str| {
            messages.iter().find(|message| message["id"] == id && message.get("method").is_none())
        };
        let shown_response = |response: Option<&Value>| {
            response.map_or_else(|| "no response".to_owned(), ToString::to_string)
        };
        let ping = response(PING);
        let is_empty = ping
            .and_then(|response| response["result"].as_object())
            .is_some_and(|result| result.keys().all(|key| key == "_meta"));
        record(&ANSWERS_PING, is_empty, &shown_response(ping));
        let unknown = response(UNKNOWN);
        record(
            &ANSWERS_UNKNOWN,
            unknown.is_some_and(|response| response["error"]["code"] == -32601),
            &shown_response(unknown),
        );
    }
}
