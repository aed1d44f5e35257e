//! The changes that a client makes to its session, shared with the processes that go on with it: in messages for those that have
//! the session in memory, and in the store for those that restore it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Endpoint,
    process_message::ProcessMessage,
    sealed_id::LIFETIME,
    session,
    sessions::Session,
    stored::{self, Awaiting},
};
use crate::{
    protocol::json,
    session::server::{ServerSession, SessionChange},
    store::{StoreOperation, StoreReply},
};

/// The maximum number of stored changes of a session, and of their bytes.
const MAX_CHANGES: u64 = 10_000;
const MAX_CHANGE_BYTES: u64 = 1024 * 1024;

impl Endpoint {
    /// Has a session note its changes, if they are shared.
    pub(super) fn track_changes(&self, machine: &mut ServerSession) {
        if self.stored.is_there() {
            machine.track_changes();
        }
    }

    /// Shares the changes that were made to a session.
    pub(super) fn share_changes(&mut self, session: &mut Session) {
        let changes = session.peer.machine.take_changes();
        let Some(log) = stored::name("changes", &session.id).filter(|_| !changes.is_empty()) else {
            return;
        };
        let mut event = String::new();
        json::push(&mut event, &changes);
        self.tell_store(StoreOperation::Append {
            log,
            event: event.into_bytes(),
            max_events: MAX_CHANGES,
            max_bytes: MAX_CHANGE_BYTES,
            ttl: Duration::from_secs(LIFETIME),
        });
        self.publish(&ProcessMessage::Made { session: session.id.to_string(), changes });
    }

    /// Makes the changes that a client has made in another process, if its session is in memory.
    pub(super) fn adopt_changes(
        &mut self,
        now: Instant,
        session: &str,
        changes: Vec<SessionChange>,
    ) {
        let Some(number) = self.sessions.number_of(session) else { return };
        let Some(session) = self.sessions.get_mut(number) else { return };
        for change in changes {
            session.peer.machine.adopt(change);
        }
        self.with_session(now, number, u64::MAX, None, None);
    }

    /// Reads the changes that a client made to its session before it was restored here.
    pub(super) fn read_changes(&mut self, session: &Arc<str>) {
        if self.stored.is_there()
            && let Some(log) = stored::name("changes", session)
        {
            let awaiting = Awaiting::Changes(Arc::clone(session));
            self.ask_store(StoreOperation::Read { log, after: 0 }, awaiting);
        }
    }

    /// Repeats the changes that a client made to its session. What it has subscribed to may have changed in the meantime.
    pub(super) fn repeat_changes(&mut self, now: Instant, session: &str, reply: StoreReply) {
        let StoreReply::Events(events) = reply else { return };
        let changes: Vec<SessionChange> = events
            .iter()
            .filter_map(|(_, event)| json::from_bytes::<Vec<SessionChange>>(event).ok())
            .flatten()
            .collect();
        if changes.is_empty() {
            return;
        }
        self.adopt_changes(now, session, changes);
        if let Some(number) = self.sessions.number_of(session) {
            self.pass_to_session(now, number, session::Input::AllUpdated);
        }
    }
}
