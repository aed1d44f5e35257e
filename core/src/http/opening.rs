//! The way of a request to its session: opened by `initialize`, found in memory, or restored from its id.

use std::{sync::Arc, time::Instant};

use super::{
    Endpoint, HttpFacts,
    ended_sessions::EndedSessions,
    logging::End,
    process_message::ProcessMessage,
    requests::{HttpRequest, too_many},
    sealed_id::{SealedSession, SessionId},
    session,
};
use crate::{
    log_events::EventKind,
    protocol::Frame,
    session::server::{ListKind, ServerSession},
};

/// The facts that are remembered of sessions that are not in memory.
#[derive(Debug, Default)]
pub(super) struct AbsentSessions {
    pub(super) ended: EndedSessions,
    /// The time of the last change of each list, in seconds since 1970.
    changes: Vec<(ListKind, u64)>,
}

/// The session that a request names.
pub(super) enum Found {
    Session(u64),
    /// It does not exist, or not for this caller.
    Nothing,
    /// It is not in memory, and there is no room for it.
    NoRoom,
}

impl AbsentSessions {
    fn note_change(&mut self, list: ListKind, at: u64) {
        self.changes.retain(|(changed, _)| *changed != list);
        self.changes.push((list, at));
    }

    /// Returns which of these lists may have changed since a session began.
    fn missed(&self, lists: &[ListKind], sealed: &SealedSession) -> Vec<ListKind> {
        let has_changed = |list: &&ListKind| {
            let mut changes = self.changes.iter();
            // Another process does not know what the client was told.
            !sealed.is_own || changes.any(|(changed, at)| changed == *list && *at >= sealed.created)
        };
        lists.iter().filter(has_changed).copied().collect()
    }
}

impl Endpoint {
    /// Returns the session that a request names. A session before 2026-07-28 that is not in memory is restored from its id,
    /// also if another process with the same keys opened it.
    pub(super) fn find_session(&mut self, now: Instant, request: &HttpRequest) -> Found {
        let HttpFacts { session_id: Some(id), principal, .. } = &*request.facts else {
            return Found::Nothing;
        };
        let owner = principal.as_deref();
        if let Some(number) = self.sessions.number(id, owner, false) {
            return Found::Session(number);
        }
        if self.sessions.has(id) {
            return Found::Nothing;
        }
        let sealed = SealedSession::open(&self.engine, now, id, owner);
        let supported = |sealed: &SealedSession| {
            self.session.revisions.contains(&sealed.wire.revision)
                && sealed.wire.dialect.is_none_or(|own| self.session.dialects.contains(&own))
        };
        match sealed {
            Some(sealed) if supported(&sealed) && !self.absent.ended.contains(&sealed.key) => {
                self.restore(now, request, sealed)
            }
            _ => Found::Nothing,
        }
    }

    fn restore(&mut self, now: Instant, request: &HttpRequest, sealed: SealedSession) -> Found {
        let Some(text) = request.facts.session_id.clone() else { return Found::Nothing };
        if !self.make_room_for_session(now, request) {
            return Found::NoRoom;
        }
        let lists = self.engine.declared_lists();
        let missed = self.absent.missed(&lists, &sealed);
        let first_number = self.sessions.fresh_number();
        let SealedSession { wire, client, .. } = sealed;
        let config = Arc::clone(&self.session);
        let mut machine = ServerSession::restored(config, wire, client, lists, first_number);
        self.track_changes(&mut machine);
        let id = SessionId { text, is_whole: true };
        let session =
            self.sessions.restore(now, id, machine, &request.facts, (first_number, missed));
        let number = session.number;
        let id = Arc::clone(&session.id);
        self.sessions.put(session);
        self.sessions.weigh(number);
        self.read_changes(&id);
        self.log_of_request(EventKind::SessionRestored, number, &request.facts);
        Found::Session(number)
    }

    /// Ends sessions until there is room for another one. Returns whether there is.
    pub(super) fn make_room_for_session(&mut self, now: Instant, request: &HttpRequest) -> bool {
        if self.sessions.is_full(self.config.max_sessions) {
            self.sessions.drop_resting(None);
        }
        let client = request.facts.client_key();
        while self.sessions.is_full(self.config.max_sessions) {
            let Some(number) = self.sessions.expendable(client) else { return false };
            self.evict_session(now, number);
        }
        true
    }

    pub(super) fn initialize(&mut self, now: Instant, request: HttpRequest, frame: Frame<'_>) {
        if !self.make_room_for_session(now, &request) {
            return self.refuse_for_now(request, &too_many("sessions", "max_sessions"));
        }
        let mut machine = ServerSession::new(Arc::clone(&self.session));
        self.track_changes(&mut machine);
        machine.handle(session::Input::Parsed(frame));
        let owner = request.facts.principal.as_deref();
        let sealed = machine.client().and_then(|(wire, client)| {
            SessionId::seal(&mut self.engine, now, owner, wire, &client)
        });
        // Without an id the answer is an error.
        let id = sealed.unwrap_or_else(|| self.sessions.random_id());
        let facts = Arc::clone(&request.facts);
        let session = self.sessions.create(now, id, machine, &facts);
        let number = session.number;
        self.sessions.put(session);
        self.post_to_session(now, request, number, None);
        self.sessions.weigh(number);
        let opened =
            |session: &mut super::sessions::Session| session.peer.machine.agreed().is_some();
        match self.sessions.get_mut(number).is_some_and(opened) {
            true => self.log_of_request(EventKind::SessionOpened, number, &facts),
            false => self.end_session(now, number, End::NotOpened),
        }
    }

    /// Has a session count as confirmed: a client confirms it before such a request, perhaps to another process.
    pub(super) fn presume_confirmed(&mut self, now: Instant, number: u64) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        if session.peer.machine.presume_confirmed() {
            self.with_session(now, number, u64::MAX, None, None);
        }
    }

    /// Ends the session that a client deletes. Returns whether there was one.
    pub(super) fn delete_session(&mut self, now: Instant, request: &HttpRequest) -> bool {
        let HttpFacts { session_id: Some(id), principal, .. } = &*request.facts else {
            return false;
        };
        let owner = principal.as_deref();
        let sealed = SealedSession::open(&self.engine, now, id, owner);
        let in_memory = self.sessions.number(id, owner, false);
        let is_ended =
            sealed.as_ref().is_some_and(|sealed| self.absent.ended.contains(&sealed.key));
        if in_memory.is_none() && (sealed.is_none() || is_ended || self.sessions.has(id)) {
            return false;
        }
        if let Some(sealed) = sealed {
            self.absent.ended.add(sealed.key);
            self.store_end(sealed.key);
            self.remove_values(id);
            self.publish(&ProcessMessage::Ended { session: id.to_string() });
        }
        match in_memory {
            Some(number) => self.end_session(now, number, End::Deleted),
            None => self.log_absent_session_end(&request.facts, End::Deleted),
        }
        true
    }

    /// Records that lists have changed, for sessions that are not in memory. Those at rest go, so that a change costs them
    /// nothing.
    pub(super) fn note_list_changes(&mut self, now: Instant, changed: &[ListKind]) {
        if changed.is_empty() {
            return;
        }
        self.sessions.drop_resting(None);
        let at = self.engine.unix(now);
        for list in changed {
            self.absent.note_change(*list, at);
        }
    }

    /// Tells a client which lists may have changed while its session was not in memory.
    pub(super) fn tell_missed_changes(&mut self, now: Instant, number: u64) {
        let missed =
            self.sessions.get_mut(number).map(|session| std::mem::take(&mut session.missed));
        for list in missed.into_iter().flatten() {
            self.pass_to_session(now, number, session::Input::Changed(list));
        }
    }
}
