//! The handshake: `initialize` in each revision before 2026-07-28, `server/discover` from it on.

use gudgeon::Revision;
use serde_json::{Value, json};

use super::{
    Unanswered,
    check::{Check, Section, Severity, sections},
    report::{Report, shown},
    session::{Limits, RpcReply, Session},
    shape, sse,
    wire::{End, Server},
};
use crate::failure::Failure;

pub const CHECKS: &[&Check] = &[
    &ANSWERS,
    &SHAPE,
    &UNKNOWN,
    &DISCOVER,
    &DISCOVER_SHAPE,
    &DISCOVER_CACHE,
    &SERVER_INFO,
    &UNSUPPORTED,
    &META,
    &SURVIVES_PROBE,
    &PING,
];

static ANSWERS: Check = Check {
    id: "handshake.answers",
    title: "answers the handshake of a revision",
    section: sections::INITIALIZATION,
    fix: "answer `initialize`, or `server/discover` of 2026-07-28, with a result",
    ..Check::ANY
};
static SHAPE: Check = Check {
    id: "handshake.result",
    title: "answers `initialize` with protocolVersion, capabilities and serverInfo",
    section: Section::new("basic/lifecycle#initialization"),
    fix: "return {\"protocolVersion\", \"capabilities\", \"serverInfo\": {\"name\", \"version\"}}",
    ..Check::LEGACY
};
static UNKNOWN: Check = Check {
    id: "handshake.unknown-version",
    title: "answers an unknown version with a version that it supports",
    severity: Severity::Warning,
    section: Section::new("basic/lifecycle#version-negotiation"),
    fix: "answer `initialize` with the latest revision that the server supports; the client decides whether to go on",
    ..Check::LEGACY
};
static DISCOVER: Check = Check {
    id: "handshake.discover",
    title: "lists the revision in the supportedVersions of `server/discover`",
    section: Section::new("server/discover#response"),
    fix: "return all revisions that the server supports in \"supportedVersions\"",
    ..Check::MODERN
};
static DISCOVER_SHAPE: Check = Check {
    id: "handshake.discover-result",
    title: "answers `server/discover` with supportedVersions and capabilities",
    section: Section::new("server/discover#discoverresult"),
    fix: "return {\"supportedVersions\": [\"…\"], \"capabilities\": {…}}",
    ..Check::MODERN
};
static DISCOVER_CACHE: Check = Check {
    id: "handshake.discover-cache",
    title: "says how long the result of `server/discover` may be cached",
    section: Section::new("server/utilities/caching#cacheable-results"),
    fix: "add \"ttlMs\" (0 or more) and \"cacheScope\" (\"public\" or \"private\")",
    ..Check::MODERN
};
static SERVER_INFO: Check = Check {
    id: "handshake.server-info",
    title: "identifies itself in the `_meta` of results",
    severity: Severity::Warning,
    section: sections::META,
    fix: "add \"io.modelcontextprotocol/serverInfo\": {\"name\", \"version\"} to `_meta` of results",
    ..Check::MODERN
};
static UNSUPPORTED: Check = Check {
    id: "handshake.unsupported-version",
    title: "answers a request of an unknown version with error -32022 and the versions that it supports",
    section: Section::new("basic/versioning#protocol-version-negotiation"),
    fix: "return {\"code\": -32022, \"data\": {\"supported\": […], \"requested\": \"…\"}}",
    ..Check::MODERN
};
static META: Check = Check {
    id: "handshake.meta",
    title: "rejects a request without the required members of `_meta` with error -32602",
    section: sections::META,
    fix: "return -32602 if `_meta` lacks protocolVersion or clientCapabilities; over HTTP with status 400",
    ..Check::MODERN
};
static SURVIVES_PROBE: Check = Check {
    id: "handshake.probe",
    title: "goes on after a request before `initialize`",
    severity: Severity::Warning,
    section: Section::moved(
        "basic/transports/stdio#backward-compatibility",
        "https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility",
    ),
    fix: "answer with an error instead of exiting: clients of 2026-07-28 send `server/discover` first",
    ..Check::ANY
};
static PING: Check = Check {
    id: "ping.empty",
    title: "answers `ping` with an empty result",
    section: Section::new("basic/utilities/ping#behavior-requirements"),
    fix: "return {} without other members than `_meta`",
    ..Check::LEGACY
};

/// Opens a session in a revision, if the server speaks it.
pub async fn open(
    server: &Server,
    revision: Revision,
    limits: Limits,
    report: &mut Report,
) -> Result<Opened, Failure> {
    let mut session = Session::connect(server, revision, limits).await?;
    sse::connected(&mut session, report);
    let version = revision.to_string();
    let (exchange, reply) = match session.is_modern() {
        true => session.discover().await,
        false => session.initialize(&version).await,
    };
    if let Some(head) = exchange.http.as_ref().filter(|head| head.status == 401) {
        return Ok(Opened::Protected(head.clone()));
    }
    if let End::Failed(reason) = &exchange.end
        && server.is_http()
    {
        return Err(Failure::new(crate::failure::FailureKind::Connect, reason.clone()));
    }
    match reply {
        RpcReply::Result(result) if session.is_modern() => {
            let versions = result["supportedVersions"].as_array();
            let is_spoken = versions
                .is_some_and(|versions| versions.iter().any(|spoken| *spoken == version.as_str()));
            check_discover(&result, is_spoken, report);
            report.record(&ANSWERS, revision, Ok(()));
            let info = result["_meta"]["io.modelcontextprotocol/serverInfo"].clone();
            meet(&info, report);
            Ok(Opened::Session(Box::new(session)))
        }
        RpcReply::Result(result) => {
            meet(&result["serverInfo"], report);
            if result["protocolVersion"] != version.as_str() {
                let offered = result["protocolVersion"].as_str().map(str::to_owned);
                session.kill().await;
                return Ok(Opened::Other(offered));
            }
            report.record(&ANSWERS, revision, Ok(()));
            report.record(&SHAPE, revision, shape::check("InitializeResult", &result));
            Ok(Opened::Session(Box::new(session)))
        }
        RpcReply::Error { .. } | RpcReply::Missing => {
            let stderr = session.stderr();
            let is_gone = matches!(exchange.end, End::Closed | End::Failed(_));
            if session.is_modern() && server.is_stdio() {
                let outcome = if is_gone { Err(exchange.observed()) } else { Ok(()) };
                report.record(&SURVIVES_PROBE, revision, outcome);
            }
            session.kill().await;
            let mut observed = exchange.observed();
            if let Some(last) = stderr.lines().last().filter(|_| is_gone) {
                observed = format!("{observed}; its stderr ends with: {}", shown(last));
            }
            let status = exchange.http.as_ref().map(|head| head.status);
            Ok(Opened::None { observed, status })
        }
    }
}

/// The outcome of a handshake.
#[derive(Debug)]
pub enum Opened {
    Session(Box<Session>),
    /// The server proposed another version.
    Other(Option<String>),
    /// No result arrived.
    None {
        /// A description of the response that arrived, or of the failure.
        observed: String,
        /// The status over HTTP.
        status: Option<u16>,
    },
    /// HTTP status 401.
    Protected(super::wire::http::Head),
}

/// Records that no revision could be opened.
pub fn nothing_spoken(report: &mut Report, unanswered: &[Unanswered]) {
    for it in unanswered {
        report.record(&ANSWERS, it.revision, Err(it.observed.clone()));
    }
}

fn meet(info: &Value, report: &mut Report) {
    let text = |name: &str| info[name].as_str().map(shown);
    if report.peer.is_none()
        && let (Some(name), version) = (text("name"), text("version"))
    {
        report.peer = Some((name, version.unwrap_or_default()));
    }
}

fn check_discover(result: &Value, is_spoken: bool, report: &mut Report) {
    let revision = Revision::V2026_07_28;
    let listed = shown(&result["supportedVersions"].to_string());
    report.record(
        &DISCOVER,
        revision,
        if is_spoken { Ok(()) } else { Err(format!("supportedVersions: {listed}")) },
    );
    report.record(&DISCOVER_SHAPE, revision, shape::check("DiscoverResult", result));
    report.record(&DISCOVER_CACHE, revision, shape::check("Cacheable", result));
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    let outcome = shape::check("Implementation", info);
    report.record(
        &SERVER_INFO,
        revision,
        outcome.map_err(|error| format!("server/discover: {error}")),
    );
}

/// Checks what a server answers to a version that does not exist.
pub async fn unknown_version(
    server: &Server,
    revision: Revision,
    limits: Limits,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut session = Session::connect(server, revision, limits).await?;
    let (exchange, reply) = session.initialize("1999-01-01").await;
    let outcome = match reply.result() {
        Some(result) => match result["protocolVersion"].as_str() {
            Some("1999-01-01") => Err("it accepts the version 1999-01-01".to_owned()),
            Some(version) if Revision::parse(version).is_none() => {
                Err(format!("it proposes the version {}", shown(version)))
            }
            Some(_) => Ok(()),
            None => Err(exchange.observed()),
        },
        None => Err(exchange.observed()),
    };
    report.record(&UNKNOWN, revision, outcome);
    session.kill().await;
    Ok(())
}

/// Checks `ping`, and, in 2026-07-28, requests with a wrong envelope.
pub async fn run(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    if !session.is_modern() {
        let outcome = match session.result("ping", json!({})).await {
            Ok(result) => match result.as_object() {
                Some(members) if members.keys().all(|key| key == "_meta") => Ok(()),
                _ => Err(shown(&result.to_string())),
            },
            Err(observed) => Err(observed),
        };
        report.record(&PING, revision, outcome);
        return;
    }
    let params = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}});
    let id = session.new_id();
    let text = session.request_text(&id, "server/discover", params);
    let (exchange, reply) =
        session.exchange_with(&text, &id, &[("mcp-protocol-version", Some("1999-01-01"))]).await;
    let data = match &reply {
        RpcReply::Error { code: -32022, error } => Some(&error["data"]),
        _ => None,
    };
    let is_right =
        data.is_some_and(|data| data["supported"].is_array() && data["requested"] == "1999-01-01");
    let status = exchange.http.as_ref().map_or(400, |head| head.status);
    report.record(
        &UNSUPPORTED,
        revision,
        if is_right && status == 400 { Ok(()) } else { Err(exchange.observed()) },
    );

    for (missing, meta) in [
        (
            "clientCapabilities",
            json!({"io.modelcontextprotocol/protocolVersion": revision.to_string()}),
        ),
        ("protocolVersion", json!({"io.modelcontextprotocol/clientCapabilities": {}})),
    ] {
        // A server that also speaks earlier revisions may take a request without a version for one of theirs.
        if missing == "protocolVersion" && (!report.is_only_modern || session.server.is_http()) {
            continue;
        }
        let id = session.new_id();
        let text = json!({"jsonrpc": "2.0", "id": id, "method": "server/discover", "params": {"_meta": meta}});
        let (exchange, reply) = session.exchange_with(&text.to_string(), &id, &[]).await;
        let status = exchange.http.as_ref().map_or(400, |head| head.status);
        let is_right = reply.code() == Some(-32602) && status == 400;
        let observed = format!("without {missing}: {}", exchange.observed());
        report.record(&META, revision, if is_right { Ok(()) } else { Err(observed) });
    }
}
