//! Negotiation of the revision: the probe, the handshake, and their failures.
//!
//! An error that is not a known modern one, or no response, means a legacy server (stdio, "Backward Compatibility").

use std::{sync::Arc, time::Instant};

use super::{ClientSession, Output, ServerIdentity, calls::seconds, legacy, modern, stray_output};
use crate::{
    error::{Error, ErrorKind, option_name},
    protocol::{Dialect, Era, ErrorObject, Implementation, Method, Raw, Revision, code},
    wire::{self, Stamp, Wire},
};

const STDOUT_IS_FOR_MESSAGES: &str =
    "over stdio a server's standard output is for messages only: log to standard error";
const MAY_BE_LEGACY: &str = "it may be a legacy server: allow an older revision too";

/// The state of the connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// Not started, or between two server processes.
    Idle,
    /// Waiting for the response to `server/discover`.
    Probing {
        id: u64,
        revision: Revision,
    },
    /// Waiting for the response to `initialize`.
    Initializing {
        id: u64,
    },
    Open,
    /// Closed, with the reason.
    Closed(String),
}

/// The attempts so far.
#[derive(Debug, Default)]
pub(super) struct Negotiation {
    /// The time limit of the current step.
    pub(super) deadline: Option<Instant>,
    /// The time limit of all steps.
    limit: Option<Instant>,
    /// The time since when the transport waits for the user.
    held_since: Option<Instant>,
    probed: Vec<Revision>,
    /// The id of the probe that timed out; its response may still arrive.
    late_probe: Option<u64>,
    /// The late response to the probe. It is used only if the server then rejects `initialize`.
    late_identity: Option<ServerIdentity>,
    /// `true` if the current server process was probed, and may have ended because of that.
    touched: bool,
    restarted: bool,
}

impl Negotiation {
    /// Returns the time limit of the current step, unless the time of the user is not counted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.deadline.filter(|_| !self.is_held())
    }

    pub(super) fn is_held(&self) -> bool {
        self.held_since.is_some()
    }
}

impl ClientSession {
    /// Suspends the time limits, or continues them.
    pub(super) fn hold_negotiation(&mut self, now: Instant, is_held: bool) {
        let negotiation = &mut self.negotiation;
        if is_held {
            negotiation.held_since.get_or_insert(now);
        } else if let Some(since) = negotiation.held_since.take() {
            let passed = now.saturating_duration_since(since);
            for limit in [&mut negotiation.deadline, &mut negotiation.limit] {
                *limit = limit.and_then(|end| end.checked_add(passed));
            }
        }
    }

    /// Counts the time limit for connecting from `since`, when the shell began to reach the server. Without it that time
    /// begins with [`Input::Start`](super::Input::Start). Returns the limit.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn connecting_since(&mut self, since: Instant) -> Option<Instant> {
        let timeout = self.config.connect_timeout;
        self.negotiation.limit = timeout.and_then(|timeout| since.checked_add(timeout));
        self.negotiation.limit
    }

    pub(super) fn start(&mut self, now: Instant) {
        if !matches!(self.phase, Phase::Idle) {
            return;
        }
        if self.negotiation.limit.is_none() {
            self.connecting_since(now);
        }
        let legacy = newest(self.allowed(), Era::Legacy);
        let is_legacy = self.negotiation.restarted
            || self.config.last_revision.is_some_and(|revision| revision.era() == Era::Legacy)
                && legacy.is_some();
        let probe = newest(self.allowed(), Era::Modern).filter(|_| !is_legacy);
        match (probe, legacy) {
            (Some(revision), _) => self.probe(now, revision),
            (None, Some(revision)) => self.initialize(revision),
            (None, None) => {
                self.fail(Error::misuse("no revision is allowed: name at least one"));
            }
        }
    }

    /// Handles the response to the probe or to `initialize`. Returns `false` if it is neither.
    pub(super) fn negotiated(
        &mut self,
        now: Instant,
        id: Option<u64>,
        outcome: Result<&str, &ErrorObject>,
    ) -> bool {
        // An error without an id belongs to the only request in flight.
        let is_mine = |own: u64| id == Some(own) || (id.is_none() && outcome.is_err());
        match self.phase {
            Phase::Probing { id: own, revision } if is_mine(own) => {
                self.negotiation.deadline = None;
                match outcome {
                    Ok(result) => self.discovered(result),
                    Err(error) => self.probe_refused(now, revision, error),
                }
                true
            }
            Phase::Initializing { .. } if id.is_some() && id == self.negotiation.late_probe => {
                self.negotiation.late_identity = outcome
                    .ok()
                    .filter(|result| modern::check_result(&Method::Discover.into(), result).is_ok())
                    .and_then(modern::read_discovery)
                    .and_then(|found| {
                        let revision = self.mutual(&found.supported, Era::Modern)?;
                        Some(found.identity(revision))
                    });
                true
            }
            Phase::Initializing { id: own } if is_mine(own) => {
                self.negotiation.deadline = None;
                match outcome {
                    Ok(result) => self.initialized(result),
                    Err(error) => self.initialize_refused(now, error),
                }
                true
            }
            _ => false,
        }
    }

    /// Returns the request of the negotiation that is in flight.
    pub(super) fn negotiating(&self) -> Option<u64> {
        match self.phase {
            Phase::Probing { id, .. } | Phase::Initializing { id } => Some(id),
            _ => None,
        }
    }

    pub(super) fn expire_negotiation(&mut self, now: Instant) {
        if self.negotiation.due().is_none_or(|due| due > now) {
            return;
        }
        self.negotiation.deadline = None;
        if self.negotiation.limit.is_some_and(|limit| limit <= now) {
            return self.fail(self.took_too_long());
        }
        if let Phase::Probing { id, .. } = self.phase {
            self.negotiation.late_probe = Some(id);
            let limit = seconds(self.config.probe_timeout.unwrap_or_default());
            let silence = format!("no answer to server/discover in {limit}");
            self.fall_back(ErrorKind::Timeout, &silence);
        }
    }

    /// Returns the error once the time limit for connecting is over.
    pub(crate) fn took_too_long(&self) -> Error {
        let limit = seconds(self.config.connect_timeout.unwrap_or_default());
        let hint = format!("{} sets the limit", option_name("connect_timeout"));
        let message = match self.phase {
            Phase::Probing { .. } => format!("no answer to server/discover in {limit}"),
            Phase::Initializing { .. } if self.negotiation.late_probe.is_some() => {
                format!("no answer to server/discover or initialize in {limit}")
            }
            Phase::Initializing { .. } => format!("no answer to initialize in {limit}"),
            _ => format!("no connection in {limit}"),
        };
        Error::new(ErrorKind::Timeout, message).with_hint(hint)
    }

    /// Handles the failure of the probe or of `initialize`. Returns the failure if it is neither.
    pub(super) fn negotiation_failed(
        &mut self,
        now: Instant,
        id: u64,
        error: Error,
    ) -> Option<Error> {
        match self.phase {
            Phase::Probing { id: own, .. } if own == id => {
                self.negotiation.deadline = None;
                // A server that responds with an error of its own may be a legacy server.
                let may_be_legacy = error.http_status.is_some() && error.kind != ErrorKind::Auth;
                match newest(&self.config.revisions, Era::Legacy).filter(|_| may_be_legacy) {
                    Some(revision) => self.initialize(revision),
                    None => self.fail(doubted(error)),
                }
            }
            Phase::Initializing { id: own } if own == id => {
                self.negotiation.deadline = None;
                let is_answer = error.http_status.is_some() && error.kind != ErrorKind::Auth;
                match (self.negotiation.late_identity.take(), self.unprobed()) {
                    (Some(identity), _) => self.accept(identity),
                    (None, Some(revision)) if is_answer => self.probe(now, revision),
                    (None, _) => self.fail(error),
                }
            }
            _ => return Some(error),
        }
        None
    }

    /// Records that the server's process did not end because of the probe, which it has not read.
    pub(super) fn probe_unread(&mut self) {
        self.negotiation.touched = false;
    }

    pub(super) fn close_negotiation(&mut self, reason: &str) {
        let negotiation = &mut self.negotiation;
        negotiation.deadline = None;
        let may_restart = negotiation.touched
            && !negotiation.restarted
            && matches!(self.phase, Phase::Probing { .. } | Phase::Initializing { .. })
            && newest(&self.config.revisions, Era::Legacy).is_some();
        if may_restart {
            negotiation.restarted = true;
            negotiation.touched = false;
            negotiation.late_probe = None;
            negotiation.late_identity = None;
            self.phase = Phase::Idle;
            self.outputs.push_back(Output::Restart);
        } else {
            self.fail(Error::new(ErrorKind::Connect, reason));
        }
    }

    fn probe(&mut self, now: Instant, revision: Revision) {
        self.speak(revision);
        self.negotiation.probed.push(revision);
        self.negotiation.touched = true;
        let id = self.send_opening(Method::Discover, "{}");
        let limit = self.negotiation.limit;
        let probe = self.config.probe_timeout.and_then(|time| now.checked_add(time));
        let may_fall_back = newest(self.allowed(), Era::Legacy).is_some();
        // Time is left for the fallback.
        let share = limit
            .filter(|_| may_fall_back && self.config.probe_timeout.is_some())
            .map(|end| now + end.saturating_duration_since(now) / 2);
        self.negotiation.deadline = [probe, share, limit].into_iter().flatten().min();
        self.phase = Phase::Probing { id, revision };
    }

    fn initialize(&mut self, revision: Revision) {
        self.speak(revision);
        let config = Arc::clone(&self.config);
        let params = match config.dialect {
            Some(Dialect::V0_7) => wire::semantic_initialize_params(),
            _ => wire::initialize_params(self.wire, &config.info, &config.capabilities),
        };
        let id = self.send_opening(Method::Initialize, &params);
        self.negotiation.deadline = self.negotiation.limit;
        self.phase = Phase::Initializing { id };
    }

    fn discovered(&mut self, result: &str) {
        // Some legacy servers answer every request with an empty result.
        let Some(found) = modern::read_discovery(result) else {
            return self
                .fall_back(ErrorKind::Unsupported, "its answer to server/discover is not valid");
        };
        if let Err(error) = modern::check_result(&Method::Discover.into(), result) {
            return self.fail(error);
        }
        match self.mutual(&found.supported, Era::Modern) {
            Some(revision) => {
                self.speak(revision);
                self.open(found.identity(revision));
            }
            None => self.initialize_mutual(&found.supported),
        }
    }

    fn probe_refused(&mut self, now: Instant, revision: Revision, error: &ErrorObject) {
        let said = describe(error);
        match (error.code, supported(error)) {
            (code::UNSUPPORTED_PROTOCOL_VERSION, Some(supported)) => {
                match self.mutual(&supported, Era::Modern) {
                    Some(next) if self.may_probe(next) => self.probe(now, next),
                    _ => self.initialize_mutual(&supported),
                }
            }
            (code, _) if code::is_modern(code) && code != code::UNSUPPORTED_PROTOCOL_VERSION => {
                let message = format!("the server refused server/discover in {revision}: {said}");
                self.fail(refusal(message, error));
            }
            _ => self.fall_back(ErrorKind::Unsupported, &said),
        }
    }

    /// A server may name the revision that it rejected a moment ago: it is tried once more.
    fn may_probe(&self, revision: Revision) -> bool {
        self.negotiation.probed.iter().filter(|probed| **probed == revision).count() < 2
    }

    /// The server listed its revisions, and no modern one is supported by both sides.
    fn initialize_mutual(&mut self, supported: &[String]) {
        match self.mutual(supported, Era::Legacy) {
            Some(revision) => self.initialize(revision),
            None => self.fail(self.no_common(&supported.join(", "))),
        }
    }

    fn fall_back(&mut self, kind: ErrorKind, why: &str) {
        if let Some(revision) = newest(&self.config.revisions, Era::Legacy) {
            return self.initialize(revision);
        }
        let message = format!("the server does not support {}: {why}", self.spoken_here());
        self.fail(Error::new(kind, message).with_hint(MAY_BE_LEGACY));
    }

    fn initialized(&mut self, result: &str) {
        if self.config.dialect == Some(Dialect::V0_7) {
            return self.introduced(result);
        }
        let found = match legacy::read_initialize(result) {
            Ok(found) => found,
            Err(problem) => {
                let message = format!("the server's answer to initialize can't be read: {problem}");
                return self.fail(Error::new(ErrorKind::Protocol, message));
            }
        };
        let chosen = self.mutual(std::slice::from_ref(&found.version), Era::Legacy);
        let Some(revision) = chosen else {
            return self.fail(self.no_common(&found.version));
        };
        self.speak(revision);
        let frame = wire::notification_frame(self.wire.word(Method::Initialized), None);
        self.outputs.push_back(Output::Send(frame));
        self.open(found.identity(revision, self.config.dialect));
    }

    /// Accepts the response of the dialect with semantic versions, which has no `initialized` notification.
    fn introduced(&mut self, result: &str) {
        match wire::read_semantic_initialize(result) {
            Ok(capabilities) => self.open(ServerIdentity {
                info: Implementation::default(),
                revision: self.wire.revision,
                dialect: self.wire.dialect,
                capabilities,
                instructions: None,
            }),
            Err(problem) => {
                let message = format!("the server's answer to initialize is not 0.7's: {problem}");
                let hint = "leave out the revision to find out what it speaks";
                self.fail(Error::new(ErrorKind::Unsupported, message).with_hint(hint));
            }
        }
    }

    fn initialize_refused(&mut self, now: Instant, error: &ErrorObject) {
        if let Some(identity) = self.negotiation.late_identity.take() {
            return self.accept(identity);
        }
        if let Some(revision) = self.unprobed() {
            return self.probe(now, revision);
        }
        let versions = supported(error).map(|revisions| self.no_common(&revisions.join(", ")));
        self.fail(versions.unwrap_or_else(|| {
            refusal(format!("the server refused initialize: {}", describe(error)), error)
        }));
    }

    /// Returns the revision to probe the server with, if it was not probed because it was legacy over an earlier
    /// connection.
    fn unprobed(&self) -> Option<Revision> {
        let is_unprobed = self.negotiation.probed.is_empty() && !self.negotiation.restarted;
        newest(self.allowed(), Era::Modern).filter(|_| is_unprobed)
    }

    /// Handles a late response to the probe.
    fn accept(&mut self, identity: ServerIdentity) {
        self.speak(identity.revision);
        self.open(identity);
    }

    fn open(&mut self, identity: ServerIdentity) {
        let identity = Arc::new(identity);
        self.server = Some(Arc::clone(&identity));
        self.phase = Phase::Open;
        self.negotiation = Negotiation::default();
        if self.stray_output.has_text() {
            stray_output::warn(&self.stray_output.list());
        }
        self.outputs.push_back(Output::Ready(identity));
    }

    fn fail(&mut self, mut error: Error) {
        self.negotiation.deadline = None;
        let stray = self.stray_output.list();
        if !stray.is_empty() {
            error.message.push_str("; what it sent is not a message: ");
            error.message.push_str(&stray);
            error.hint.get_or_insert_with(|| STDOUT_IS_FOR_MESSAGES.to_owned());
        }
        self.phase = Phase::Closed(error.message.clone());
        let phase = error.phase.unwrap_or("negotiate");
        self.outputs.push_back(Output::Failed(error.in_phase(phase)));
    }

    /// Uses the tables of this revision from now on.
    pub(super) fn speak(&mut self, revision: Revision) {
        self.wire = Wire::spelled(revision, self.config.dialect);
        let config = &self.config;
        self.envelope = (revision.era() == Era::Modern)
            .then(|| wire::ClientEnvelope::new(self.wire, &config.info, &config.capabilities));
    }

    fn send_opening(&mut self, method: Method, params: &str) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let stamp = Stamp { envelope: self.envelope.as_ref(), ..Stamp::default() };
        let frame = wire::request_frame(id, method.as_str(), params, stamp)
            .expect("our own params are an object");
        self.outputs.push_back(Output::Send(frame));
        id
    }

    /// Returns the newest revision of an era that both sides support.
    fn mutual(&self, theirs: &[String], era: Era) -> Option<Revision> {
        let common = theirs.iter().filter_map(|version| Revision::parse(version));
        common.filter(|revision| revision.era() == era && self.allowed().contains(revision)).max()
    }

    fn no_common(&self, theirs: &str) -> Error {
        let theirs = if theirs.is_empty() { "no revision at all" } else { theirs };
        let message = format!(
            "no common revision: the server supports {theirs}, this client {}",
            self.spoken_here()
        );
        Error::new(ErrorKind::Unsupported, message)
    }

    /// Returns the revisions to negotiate; a dialect uses the first revision.
    fn allowed(&self) -> &[Revision] {
        match self.config.dialect {
            Some(_) => &[Revision::V2024_11_05],
            None => &self.config.revisions,
        }
    }

    fn spoken_here(&self) -> String {
        let mut revisions = self.allowed().to_vec();
        revisions.sort_unstable();
        let names: Vec<_> = revisions.iter().rev().map(|revision| revision.as_str()).collect();
        names.join(", ")
    }
}

/// Returns `true` for HTTP statuses with which legacy servers answer modern requests (Streamable HTTP, "Backward
/// Compatibility").
fn doubted(error: Error) -> Error {
    if !matches!(error.http_status, Some(400 | 404 | 405)) {
        return error;
    }
    let hint = match &error.hint {
        Some(hint) => format!("{hint}; or {MAY_BE_LEGACY}"),
        None => MAY_BE_LEGACY.to_owned(),
    };
    error.with_hint(hint)
}

fn newest(revisions: &[Revision], era: Era) -> Option<Revision> {
    revisions.iter().copied().filter(|revision| revision.era() == era).max()
}

fn describe(error: &ErrorObject) -> String {
    format!("{} ({})", error.message, error.code)
}

fn refusal(message: String, error: &ErrorObject) -> Error {
    let data: Option<Raw> = error.data.clone();
    Error::new(ErrorKind::Protocol, message)
        .with(|details| (details.code, details.data) = (Some(error.code), data))
}

/// Returns the revisions listed in an error.
fn supported(error: &ErrorObject) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data = error.data.as_ref()?;
    serde_json::from_str::<Data>(data.get()).ok().map(|data| data.supported)
}
