//! The transport HTTP+SSE of 2024-11-05: its `endpoint` event, its events with messages, `Origin` and `Host`.

use http::Method;
use serde_json::json;
use tokio::time::Instant;

use super::{
    check::{Check, Section, Severity, sections},
    http::{EVIL, HOST, ORIGIN},
    report::{Report, shown},
    session::{Limits, Session},
    wire::{
        Server,
        http::{Address, Headers},
        sse::{NotSse, SseWire},
    },
};

pub const CHECKS: &[&Check] = &[&ENDPOINT, &ENDPOINT_ORIGIN, &EVENTS];

/// The transport is defined in this revision only, and servers of later ones may offer it too.
const TRANSPORT: Section = Section::new(
    "https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse",
);

static ENDPOINT: Check = Check {
    id: "sse.endpoint",
    title: "begins its stream with an `endpoint` event that names a URI for messages",
    section: TRANSPORT,
    fix: "send `event: endpoint` with the URI as its data when a client connects",
    ..Check::LEGACY
};
static ENDPOINT_ORIGIN: Check = Check {
    id: "sse.endpoint-origin",
    title: "names an endpoint of its own origin",
    severity: Severity::Warning,
    section: sections::HOSTS,
    fix: "send a path, such as /messages?session=…: clients do not send messages, and tokens, to another origin",
    ..Check::LEGACY
};
static EVENTS: Check = Check {
    id: "sse.events",
    title: "sends messages in events of the name `message`",
    severity: Severity::Warning,
    section: TRANSPORT,
    fix: "send `event: message` with the JSON of one message as its data",
    ..Check::LEGACY
};

/// Finds out whether an address is one of this transport, after it has refused POST. `Err` holds what came instead of the
/// `endpoint` event on a stream that was opened.
pub async fn detect(address: &Address, limits: Limits) -> Result<bool, String> {
    match SseWire::open(address, Instant::now() + limits.response).await {
        Ok(_) => Ok(true),
        Err(NotSse::NoStream(_)) => Ok(false),
        Err(NotSse::NoEndpoint(observed)) => Err(observed),
    }
}

/// Records that a stream does not begin with an endpoint.
pub fn no_endpoint(observed: &str, report: &mut Report) {
    report.record(&ENDPOINT, gudgeon::Revision::V2024_11_05, Err(shown(observed)));
}

/// Checks the `endpoint` event of a connection.
pub fn connected(session: &mut Session, report: &mut Report) {
    let Server::Sse(address) = session.server.clone() else { return };
    let revision = session.revision;
    let Some(wire) = session.sse() else { return };
    report.record(&ENDPOINT, revision, Ok(()));
    let is_same = wire.is_same_origin(&address);
    let outcome = if is_same { Ok(()) } else { Err(shown(wire.endpoint.url.as_str())) };
    report.record(&ENDPOINT_ORIGIN, revision, outcome);
}

/// Checks the events of an open session, and requests of web pages.
pub async fn run(session: &mut Session, report: &mut Report) {
    let Server::Sse(address) = session.server.clone() else { return };
    let (revision, limits) = (session.revision, session.limits);
    let pings = [(); 2].map(|()| {
        let id = session.new_id();
        let text = session.request_text(&id, "ping", json!({}));
        session.observer.sent(&text);
        text
    });
    let Some(wire) = session.sse() else { return };
    let outcome = match wire.other() {
        None => Ok(()),
        Some((event, data)) => Err(shown(&format!("event: {event}, data: {data}"))),
    };
    report.record(&EVENTS, revision, outcome);

    // A public server may expect every origin. One on this machine can be reached from web pages by DNS rebinding only.
    let severity = if address.is_local { Severity::Failure } else { Severity::Note };
    for outcome in foreign(&address, wire, &[("origin", Some(EVIL))], &pings[0], limits).await {
        report.record_as(&ORIGIN, severity, revision, outcome);
    }
    if address.is_local {
        let header = [("host", Some("evil.example"))];
        for outcome in foreign(&address, wire, &header, &pings[1], limits).await {
            report.record(&HOST, revision, outcome);
        }
    }
}

/// Opens a stream and sends a message with the header of a web page; each must be refused.
async fn foreign(
    address: &Address,
    wire: &SseWire,
    header: Headers<'_>,
    text: &str,
    limits: Limits,
) -> [Result<(), String>; 2] {
    let named: Vec<_> = header
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.unwrap_or_default()))
        .collect();
    let named = named.join(", ");
    let mut all = vec![("accept", Some("text/event-stream"))];
    all.extend_from_slice(header);
    let until = Instant::now() + limits.response;
    let opened = match address.open(Method::GET, &all, "", until).await {
        Ok(stream) if stream.head.status < 400 => {
            Err(format!("GET with {named}: HTTP {}", stream.head.status))
        }
        _ => Ok(()),
    };
    let sent = match wire.send(text, header).await {
        Ok(None) => Err(format!("POST with {named} is accepted")),
        _ => Ok(()),
    };
    [opened, sent]
}
