//! The legacy handshake over HTTP, which must finish before other messages are sent, and the renewal of a session
//! that the server ended.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use tokio::sync::oneshot;

use super::{
    Shared, TaskReport, events,
    exchange::Outcome,
    message::{Kind, Message},
};
use crate::{
    protocol::{Method, json},
    wire,
};

/// The time limit for the server to accept `notifications/initialized`.
const ACCEPT_TIME: Duration = Duration::from_secs(5);
/// The time to wait for the server's own stream. A server may delay the response head until the first event.
const OPEN_TIME: Duration = Duration::from_secs(1);
/// The time limit for starting a new session.
const RENEWAL_TIME: Duration = Duration::from_secs(30);

/// Sends `notifications/initialized` and opens the server's own stream before the first call is sent; otherwise
/// messages about that call on this stream would be lost.
pub(super) async fn settle(shared: Arc<Shared>, initialized: Message) {
    confirm(&shared, initialized).await;
    shared.report(TaskReport::Settled).await;
}

async fn confirm(shared: &Arc<Shared>, initialized: Message) {
    let accepted = tokio::time::timeout(ACCEPT_TIME, shared.exchange(&initialized)).await;
    if let Ok(Outcome::Failed(error) | Outcome::Refused(_, error)) = accepted {
        tracing::debug!(%error, "notifications/initialized was not accepted");
    }
    if !shared.is_pair() {
        let (opened, is_open) = oneshot::channel();
        shared.listen(events::standalone(Arc::clone(shared), opened));
        let _ = tokio::time::timeout(OPEN_TIME, is_open).await;
    }
}

/// Starts a session with the parameters of the old one.
pub(super) async fn renew(shared: Arc<Shared>, initialize: Message) {
    let begun = tokio::time::timeout(RENEWAL_TIME, begin(&shared, &initialize)).await;
    let problem = match begun {
        Ok(Ok(())) => {
            let method = Method::Initialized.as_str();
            let initialized = Message {
                body: wire::notification_frame(method, None).into(),
                kind: Kind::Notification { method: method.to_owned(), cancels: None },
                ..initialize
            };
            confirm(&shared, initialized).await;
            return shared.report(TaskReport::Renewed).await;
        }
        Ok(Err(problem)) => problem,
        Err(_) => format!("no answer in {} s", RENEWAL_TIME.as_secs()),
    };
    let report = format!("the server ended the session, and no new one could be opened: {problem}");
    shared.report(TaskReport::NotRenewed(report)).await;
}

async fn begin(shared: &Arc<Shared>, initialize: &Message) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Answer {
        result: Option<Agreed>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: String,
    }
    // The session already has its response to `initialize`, so this one is read here.
    let (private, mut reports) = shared.beside();
    match private.exchange(initialize).await {
        Outcome::Done => (),
        Outcome::Failed(error) | Outcome::Refused(_, error) => return Err(error.to_string()),
        Outcome::SessionGone(_) => return Err("HTTP 404".into()),
    }
    drop(private);
    let frame = loop {
        match reports.recv().await {
            Some(TaskReport::Answer { frame, .. }) => break frame,
            Some(_) => (),
            None => return Err("initialize got no response".into()),
        }
    };
    let answer: Answer = json::from_bytes(&frame).map_err(|error| error.to_string())?;
    let agreed = answer.result.ok_or("the server rejected initialize")?.protocol_version;
    match shared.state().version.as_ref().and_then(|version| version.to_str().ok()) {
        Some(version) if version == agreed => Ok(()),
        _ => Err(format!("the server speaks {agreed} now")),
    }
}
