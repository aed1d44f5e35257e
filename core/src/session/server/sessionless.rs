//! Single requests before 2026-07-28 at a server that keeps no sessions.

use std::sync::Arc;

use super::{
    ClientIdentity, Lifetime, ServerSession, SessionConfig, legacy::Handshake, requests::LogPolicy,
};
use crate::{
    error::{Fault, FaultKind, option_name},
    protocol::{Era, Request, ServerDescription},
    wire::Wire,
};

impl ServerSession {
    /// Creates a session for a single request, of which nothing is known but the revision that its client speaks; `None` for
    /// `initialize`.
    pub fn without_session(config: Arc<SessionConfig>, spoken: Option<&'static Wire>) -> Self {
        let mut session = Self { lifetime: Lifetime::OneRequest, ..Self::new(config) };
        if let Some(wire) = spoken.and_then(|spoken| session.legacy_wire(spoken)) {
            session.handshake = Handshake::restored(wire, ClientIdentity::default());
            session.spoken = wire;
        }
        session
    }

    /// Returns these tables if the server has sessions in their revision, or else those of the newest one in which it has.
    fn legacy_wire(&self, spoken: &'static Wire) -> Option<&'static Wire> {
        let revisions = self.config.revisions.iter().copied();
        let mut legacy = revisions.filter(|revision| revision.era() == Era::Legacy);
        let newest = legacy.clone().max();
        let found = legacy.find(|revision| *revision == spoken.revision).or(newest)?;
        Some(Wire::for_revision(found))
    }

    /// Returns whether the session serves a single request and then ends.
    pub(crate) fn is_sessionless(&self) -> bool {
        self.lifetime == Lifetime::OneRequest
    }

    /// Errors if a request changes the session, and there is none.
    pub(super) fn check_session(&self, request: &Request) -> Result<(), Fault> {
        let changes = matches!(
            request,
            Request::Subscribe { .. } | Request::Unsubscribe { .. } | Request::SetLevel { .. }
        );
        if !self.is_sessionless() || !changes {
            return Ok(());
        }
        let message = format!(
            "{} needs a session, and this server keeps none (option {})",
            request.method().as_str(),
            option_name("sessions"),
        );
        Err(Fault::new(FaultKind::UnknownMethod, message))
    }

    /// Returns the log messages that a request may send: without a session the client was not told that there are any.
    pub(super) fn log_policy(&self, policy: LogPolicy) -> LogPolicy {
        match self.is_sessionless() {
            true => LogPolicy::Request(None),
            false => policy,
        }
    }

    /// Leaves out of the answer to `initialize` what only a session could do.
    pub(super) fn hide_changes(&self, server: &mut Arc<ServerDescription>) {
        if !self.is_sessionless() {
            return;
        }
        let capabilities = &mut Arc::make_mut(server).capabilities;
        let lists = [&mut capabilities.tools, &mut capabilities.prompts];
        for list in lists.into_iter().flatten() {
            list.list_changed = None;
        }
        if let Some(resources) = &mut capabilities.resources {
            (resources.list_changed, resources.subscribe) = (None, None);
        }
        capabilities.logging = None;
    }
}
