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
    unsent::Unstored,
};
use crate::{
    protocol::json,
    session::server::{ServerSession, SessionChange},
    store::{StoreOperation, StoreReply},
};

/// The maximum number of stored changes of a session, and of their bytes.
const MAX_CHANGES: u64 = 10_000;
const MAX_CHANGE_BYTES: u64 = 1024 * 1024;
/// The maximum number of sessions whose changes are read at the same time, after messages were lost.
const MAX_READING: usize = 64;

impl Endpoint {
    /// Has a session note its changes, if they are shared.
    pub(super) fn track_changes(&self, machine: &mut ServerSession) {
        if self.stored.is_there() {
            machine.track_changes();
        }
    }

    /// Shares the changes that were made to a session. Their answers wait until they are stored, and each process has them then.
    pub(super) fn share_changes(&mut self, now: Instant, session: &mut Session) {
        let changes = session.peer.machine.take_changes();
        if !changes.is_empty() {
            self.store_changes(now, session, changes);
        }
    }

    fn store_changes(&mut self, now: Instant, session: &mut Session, changes: Vec<SessionChange>) {
        let Some(log) = stored::name("changes", &session.id) else { return };
        let mut event = String::new();
        json::push(&mut event, &changes);
        let append = StoreOperation::Append {
            log,
            event: event.into_bytes(),
            max_events: MAX_CHANGES,
            max_bytes: MAX_CHANGE_BYTES,
            ttl: Duration::from_secs(LIFETIME),
        };
        // Before the operation, whose reply comes after the message was sent.
        self.publish(&ProcessMessage::Made { session: session.id.to_string(), changes });
        let unstored = Unstored::new(now, None, None);
        session.changing = Some(self.store_before(append, unstored));
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
            self.stored.reading += 1;
            self.ask_store(StoreOperation::Read { log, after: 0 }, awaiting);
        }
    }

    /// Reads the changes of all sessions in memory, because messages about some may have been lost.
    pub(super) fn read_all_changes(&mut self) {
        self.sessions.drop_resting(None);
        self.stored.to_read = self.sessions.all().into();
        self.read_next_changes();
    }

    /// Reads the changes of some sessions, and those of others when that is done.
    pub(super) fn read_next_changes(&mut self) {
        while self.stored.reading < MAX_READING
            && let Some(number) = self.stored.to_read.pop_front()
        {
            if let Some(session) = self.sessions.get_mut(number) {
                let id = Arc::clone(&session.id);
                self.read_changes(&id);
            }
        }
    }

    /// Repeats the changes that a client made to its session. What it has subscribed to may have changed in the meantime.
    pub(super) fn repeat_changes(&mut self, now: Instant, session: &Arc<str>, reply: StoreReply) {
        let StoreReply::Events(events) = reply else { return };
        let Some(number) = self.sessions.number_of(session) else { return };
        let Some(mut entry) = self.sessions.take(number) else { return };
        if entry.changing.is_some_and(|ticket| self.unsent.awaits(ticket)) {
            // What was read is older than the session.
            self.sessions.put(entry);
            return self.read_changes(session);
        }
        let (before, so_far) =
            (entry.peer.machine.subscribed().clone(), entry.peer.machine.changes_so_far());
        if events.is_empty() && !so_far.is_empty() {
            // The store has lost them.
            self.store_changes(now, &mut entry, so_far);
        }
        self.sessions.put(entry);
        let changes: Vec<SessionChange> = events
            .iter()
            .filter_map(|(_, event)| json::from_bytes::<Vec<SessionChange>>(event).ok())
            .flatten()
            .collect();
        self.adopt_changes(now, session, changes);
        let has_more =
            |session: &mut Session| !session.peer.machine.subscribed().is_subset(&before);
        if self.sessions.get_mut(number).is_some_and(has_more) {
            self.pass_to_session(now, number, session::Input::AllUpdated);
        }
    }
}
