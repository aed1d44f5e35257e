//! `gudgeon doctor`: checks of a server against the specification, from outside.

mod auth;
mod check;
pub mod client;
mod components;
mod contents;
mod handshake;
mod http;
mod messages;
mod observe;
pub mod probe;
mod render;
mod report;
mod requests;
mod session;
mod shape;
mod sse;
mod tools;
mod wire;

use std::time::Duration;

use gudgeon::Revision;

use self::{
    check::Check,
    handshake::Opened,
    session::Session,
    wire::{End, http::Head},
};
pub use self::{
    render::{Style, junit, list, text},
    report::Report,
    session::Limits,
    wire::Server,
};
use crate::failure::Failure;
pub use check::Severity;

/// The time for a response of a server that has answered nothing so far.
const UNRESPONSIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The options of an examination.
#[derive(Debug)]
pub struct Examination {
    pub server: Server,
    /// All revisions if `None`.
    pub revision: Option<Revision>,
    pub limits: Limits,
    /// `true` if tools are called that may change something.
    pub calls_tools: bool,
}

/// The outcomes of the handshakes in all revisions.
#[derive(Debug, Default)]
struct Handshakes {
    sessions: Vec<Session>,
    unanswered: Vec<Unanswered>,
    /// The head of the response with status 401.
    protected: Option<(Head, Vec<Revision>)>,
    /// The version that the server proposed instead.
    offered: Option<String>,
}

impl Handshakes {
    /// Returns whether every POST was refused with a status that servers over HTTP+SSE give.
    fn refuses_posts(&self) -> bool {
        let mut unanswered = self.unanswered.iter();
        self.sessions.is_empty()
            && self.protected.is_none()
            && self.offered.is_none()
            && unanswered.all(|attempt| matches!(attempt.status, Some(400 | 404 | 405)))
    }
}

/// A handshake without a result.
#[derive(Debug)]
pub struct Unanswered {
    revision: Revision,
    /// A description of the response that arrived, or of the failure.
    observed: String,
    /// The status over HTTP.
    status: Option<u16>,
}

/// Returns all checks of servers, by area.
pub fn checks() -> Vec<&'static Check> {
    let areas = [
        handshake::CHECKS,
        observe::CHECKS,
        messages::CHECKS,
        messages::batches::CHECKS,
        components::CHECKS,
        tools::CHECKS,
        contents::CHECKS,
        requests::CHECKS,
        http::CHECKS,
        sse::CHECKS,
        auth::CHECKS,
        client::CHECKS,
        client::http::CHECKS,
    ];
    let mut all: Vec<_> = areas.into_iter().flatten().copied().collect();
    all.sort_by_key(|check| check.area());
    all
}

impl Examination {
    /// Runs all checks. Errors if the server can't be started or reached at all.
    pub async fn run(mut self) -> Result<Report, Failure> {
        let mut report = Report::default();
        let mut handshakes = self.greet(&mut report).await?;
        let mut is_sse = Ok(false);
        if let Server::Address(address) = &self.server
            && handshakes.refuses_posts()
        {
            is_sse = sse::detect(address, self.limits).await;
            // A server over Streamable HTTP may refuse a message that it can't read, and still open streams.
            if handshakes.unanswered.iter().any(|attempt| attempt.status == Some(400)) {
                is_sse = is_sse.or(Ok(false));
            }
            if is_sse == Ok(true) {
                self.server = Server::Sse(address.clone());
                handshakes = self.greet(&mut report).await?;
            }
        }
        let Handshakes { mut sessions, unanswered, protected, offered } = handshakes;
        sessions.sort_by_key(|session| session.revision);
        report.revisions = sessions.iter().map(|session| session.revision).collect();
        report.is_only_modern =
            self.revision.is_none() && report.revisions == [Revision::V2026_07_28];
        if let (Some((head, mut revisions)), Server::Address(address)) = (protected, &self.server) {
            revisions.sort();
            auth::run(address, &head, &revisions, self.limits.response, &mut report).await;
            let hint = "the server requires a token; with -H 'Authorization: Bearer …' the rest is checked too";
            report.remark(hint);
        } else if sessions.is_empty() {
            match (offered, is_sse) {
                (Some(version), _) => report.remark(format!(
                    "the server proposes the version {}, which was not examined",
                    report::shown(&version)
                )),
                (None, Err(observed)) => sse::no_endpoint(&observed, &mut report),
                (None, Ok(_)) => handshake::nothing_spoken(&mut report, &unanswered),
            }
        }
        let legacy =
            report.revisions.iter().copied().rfind(|revision| *revision <= Revision::LATEST_LEGACY);
        if let Some(revision) = legacy {
            handshake::unknown_version(&self.server, revision, self.limits, &mut report).await?;
        }
        for session in sessions {
            self.examine(session, &mut report).await?;
        }
        Ok(report)
    }

    /// Opens a session in each revision that the server speaks.
    async fn greet(&mut self, report: &mut Report) -> Result<Handshakes, Failure> {
        let mut handshakes = Handshakes::default();
        // The newest revision with a session comes first: servers of both eras answer it at once, others with an error.
        let newest = match self.server {
            Server::Sse(_) => Revision::LATEST_LEGACY,
            _ => Revision::LATEST,
        };
        let order = Revision::ALL.into_iter().rev().filter(|revision| {
            *revision <= newest && self.revision.is_none_or(|only| only == *revision)
        });
        let mut order: Vec<_> = order.collect();
        order.sort_by_key(|revision| *revision != Revision::LATEST_LEGACY);
        for revision in order {
            match handshake::open(&self.server, revision, self.limits, report).await? {
                Opened::Session(session) => handshakes.sessions.push(*session),
                Opened::Other(version) => handshakes.offered = version.or(handshakes.offered),
                Opened::None { observed, status } => {
                    if handshakes.sessions.is_empty() && observed == "no response" {
                        self.limits.start = self.limits.start.min(UNRESPONSIVE_TIMEOUT);
                    }
                    handshakes.unanswered.push(Unanswered { revision, observed, status });
                }
                Opened::Protected(head) => match &mut handshakes.protected {
                    Some((_, revisions)) => revisions.push(revision),
                    None => handshakes.protected = Some((head, vec![revision])),
                },
            }
        }
        Ok(handshakes)
    }

    /// Runs the checks of one revision. A server that does not answer any more after an area is started again.
    async fn examine(&self, session: Session, report: &mut Report) -> Result<(), Failure> {
        let mut session = session;
        let revision = session.revision;
        handshake::run(&mut session, report).await;
        let listed = components::run(&mut session, report).await;
        let Some(mut session) = self.revive(session, "lists", report).await? else { return Ok(()) };
        tools::run(&mut session, &listed.tools, self.calls_tools, report).await;
        let Some(mut session) = self.revive(session, "calls of tools", report).await? else {
            return Ok(());
        };
        contents::run(&mut session, &listed, report).await;
        let Some(mut session) = self.revive(session, "reads", report).await? else { return Ok(()) };
        requests::run(&mut session, report).await;
        if self.server.is_http() && revision > Revision::V2024_11_05 {
            http::run(&mut session, &listed, report).await;
        }
        sse::run(&mut session, report).await;
        let Some(mut session) = self.revive(session, "cancellations", report).await? else {
            return Ok(());
        };
        messages::batches::run(&mut session, report).await;
        let Some(mut session) = self.revive(session, "a batch", report).await? else {
            return Ok(());
        };
        if messages::run(&mut session, report).await {
            http::end(&mut session, report).await;
            requests::close(session, report).await;
            return Ok(());
        }
        // The process is gone: another one shows how it ends.
        session.kill().await.finish(report, revision);
        if let Opened::Session(session) =
            handshake::open(&self.server, revision, self.limits, report).await?
        {
            requests::close(*session, report).await;
        }
        Ok(())
    }

    /// Returns the session if the server still answers, or else a new one. `None` if a new one can't be opened.
    async fn revive(
        &self,
        mut session: Session,
        after: &str,
        report: &mut Report,
    ) -> Result<Option<Session>, Failure> {
        if self.server.is_http() {
            return Ok(Some(session));
        }
        let method = if session.is_modern() { "server/discover" } else { "ping" };
        let (exchange, _) = session.request(method, serde_json::json!({})).await;
        if exchange.end == End::Answered {
            return Ok(Some(session));
        }
        let revision = session.revision;
        messages::died(after, &exchange, revision, report);
        session.kill().await.finish(report, revision);
        let opened = handshake::open(&self.server, revision, self.limits, report).await?;
        if let Opened::Session(session) = opened {
            return Ok(Some(*session));
        }
        report
            .remark(format!("{revision} was not examined further: the server did not start again"));
        Ok(None)
    }
}
