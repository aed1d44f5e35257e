//! Cancellation, subscriptions, and the end of a server over stdio.

use std::time::Duration;

use serde_json::json;

use super::{
    check::{Check, Section, Severity},
    report::{Report, shown},
    session::Session,
    wire::{End, http::Head},
};

pub const CHECKS: &[&Check] =
    &[&UNKNOWN_CANCEL, &ACKNOWLEDGES, &SUBSCRIPTION_ID, &LISTEN_CANCEL, &BUFFERING, &EOF];

static UNKNOWN_CANCEL: Check = Check {
    id: "cancellation.unknown",
    title: "ignores the cancellation of an unknown request",
    severity: Severity::Warning,
    section: Section::moved(
        "basic/patterns/cancellation#error-handling",
        "basic/utilities/cancellation#error-handling",
    ),
    fix: "ignore notifications/cancelled with an unknown id: the request may have ended in between",
    ..Check::ANY
};
static ACKNOWLEDGES: Check = Check {
    id: "subscriptions.acknowledges",
    title: "acknowledges `subscriptions/listen` first",
    section: Section::new("basic/patterns/subscriptions#acknowledgment"),
    fix: "send notifications/subscriptions/acknowledged before anything else of the subscription",
    ..Check::MODERN
};
static SUBSCRIPTION_ID: Check = Check {
    id: "subscriptions.id",
    title: "names the subscription in the `_meta` of its notifications",
    section: Section::new("basic/patterns/subscriptions#receiving-notifications"),
    fix: "add \"io.modelcontextprotocol/subscriptionId\" with the id of `subscriptions/listen`, with its JSON type",
    ..Check::MODERN
};
static LISTEN_CANCEL: Check = Check {
    id: "cancellation.listen",
    title: "sends nothing more of a cancelled subscription, and goes on",
    section: Section::new("basic/transports/stdio#cancellation"),
    fix: "end the subscription of the id in notifications/cancelled, and send no response for it",
    ..Check::MODERN
};
static BUFFERING: Check = Check {
    id: "http.buffering",
    title: "tells proxies not to buffer streams",
    severity: Severity::Warning,
    section: Section::new("basic/transports/streamable-http#receiving-messages"),
    fix: "add the header X-Accel-Buffering: no to responses of type text/event-stream",
    ..Check::MODERN
};
static EOF: Check = Check {
    id: "stdio.eof",
    title: "exits when its stdin is closed",
    severity: Severity::Warning,
    section: Section::moved("basic/transports/stdio#shutdown", "basic/lifecycle#shutdown"),
    fix: "exit at the end of stdin; in Node, listen for \"end\" of process.stdin, and stop timers",
    ..Check::ANY
};

/// The time to exit after the end of standard input.
const EXIT: Duration = Duration::from_secs(5);

/// Cancels a request that was never sent, and a subscription.
pub async fn run(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    if !(session.is_modern() && session.server.is_http()) {
        let text = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never-sent", "reason": "a check"},
        });
        let exchange = session.provoke_silence(&text.to_string()).await;
        let is_accepted = exchange.http.as_ref().is_none_or(|head| head.status < 400);
        let is_alive = !matches!(exchange.end, End::Closed | End::Failed(_));
        let is_right = exchange.any_response().is_none() && is_accepted && is_alive;
        report.record(
            &UNKNOWN_CANCEL,
            revision,
            if is_right { Ok(()) } else { Err(exchange.observed()) },
        );
    }
    if session.is_modern() {
        listen(session, report).await;
    }
}

async fn listen(session: &mut Session, report: &mut Report) {
    let revision = session.revision;
    let wanted = ["tools", "prompts", "resources"];
    let offers = wanted.iter().any(|kind| {
        session.capability(kind).is_some_and(|capability| capability["listChanged"] == true)
    });
    if !offers {
        return;
    }
    let id = session.new_id();
    let filter =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let text = session.request_text(&id, "subscriptions/listen", json!({"notifications": filter}));
    let (first, head) = session.subscribe(&text, &id).await;
    let observed =
        first.as_ref().map_or_else(|| "nothing".to_owned(), |message| shown(&message.raw));
    let acknowledgement = first
        .filter(|message| message.method() == Some("notifications/subscriptions/acknowledged"));
    let is_first = acknowledgement.is_some();
    if let Some(head) = head.filter(Head::is_stream) {
        let value = head.header("x-accel-buffering");
        let outcome = if value == Some("no") {
            Ok(())
        } else {
            Err(format!("X-Accel-Buffering: {}", shown(value.unwrap_or("(none)"))))
        };
        report.record(&BUFFERING, revision, outcome);
    }
    report.record(&ACKNOWLEDGES, revision, if is_first { Ok(()) } else { Err(observed.clone()) });
    if let Some(message) = acknowledgement {
        let named = &message.value["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        report.record(
            &SUBSCRIPTION_ID,
            revision,
            if *named == id { Ok(()) } else { Err(observed) },
        );
    }
    if session.server.is_http() || !is_first {
        return;
    }
    let text =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let exchange = session.provoke_silence(&text.to_string()).await;
    let is_alive = !matches!(exchange.end, End::Closed | End::Failed(_));
    let is_silent = exchange.response(&id).is_none();
    report.record(
        &LISTEN_CANCEL,
        revision,
        if is_alive && is_silent { Ok(()) } else { Err(exchange.observed()) },
    );
}

/// Closes the standard input of the server, and records all that was observed in the session.
pub async fn close(session: Session, report: &mut Report) {
    let revision = session.revision;
    let (has_exited, observer) = session.close(EXIT).await;
    if let Some(has_exited) = has_exited {
        let limit = EXIT.as_secs();
        let outcome =
            if has_exited { Ok(()) } else { Err(format!("it still runs after {limit} s")) };
        report.record(&EOF, revision, outcome);
    }
    observer.finish(report, revision);
}
