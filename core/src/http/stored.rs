//! The endpoint's operations on a store that outlives its process and that other processes share, and what waits for their
//! replies.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rustc_hash::FxHashMap;

use super::{
    Endpoint, EndpointOutput, ExchangeId,
    ended_sessions::MAX_ENDED,
    sealed_id::{self, LIFETIME, SessionKey},
    session,
    session_values::ValuesStep,
};
use crate::store::{StoreOperation, StoreReply};

/// The log of the sessions that clients ended with DELETE.
const ENDED: &str = "ended-sessions";
/// The size of an entry of that log, sealed, in bytes.
const ENDED_BYTES: u64 = 128;

/// Names an operation on the store, for its reply.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StoreTicket(pub u64);

/// The continuation that waits for the reply to an operation.
#[derive(Debug)]
pub(super) enum Awaiting {
    /// The list of the sessions that clients ended.
    Ended,
    /// The events of a stream that a client resumes here.
    Events(ExchangeId),
    /// The changes that a client made to its session.
    Changes(Arc<str>),
    /// The values of a session.
    Values(ValuesStep),
}

/// The operations whose replies are awaited.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// `true` if there is a store.
    is_there: bool,
    next: u64,
    /// The sessions whose changes are to be read again.
    pub(super) to_read: VecDeque<u64>,
    /// The number of sessions whose changes are read.
    pub(super) reading: usize,
    awaiting: FxHashMap<StoreTicket, Awaiting>,
}

impl Stored {
    /// Returns whether there is a store.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// Returns whether the reply to an operation is awaited.
    pub(super) fn awaits(&self, ticket: StoreTicket) -> bool {
        self.awaiting.contains_key(&ticket)
    }
}

impl Endpoint {
    /// Has the endpoint keep in a store what other processes, or this one after a restart, need. Its driver carries out each
    /// [`EndpointOutput::Store`], and answers with [`EndpointInput::Stored`](super::EndpointInput::Stored).
    #[doc(hidden)] // For the drivers and the tests.
    pub fn use_store(&mut self) {
        self.stored.is_there = true;
    }

    /// Begins an operation whose reply nothing waits for. The driver reports failures.
    pub(super) fn tell_store(&mut self, operation: StoreOperation) -> StoreTicket {
        let ticket = StoreTicket(self.stored.next);
        self.stored.next += 1;
        self.outputs.push_back(EndpointOutput::Store(ticket, operation));
        ticket
    }

    /// Begins an operation whose reply something waits for.
    pub(super) fn ask_store(
        &mut self,
        operation: StoreOperation,
        awaiting: Awaiting,
    ) -> StoreTicket {
        let ticket = self.tell_store(operation);
        self.stored.awaiting.insert(ticket, awaiting);
        ticket
    }

    /// Gives up to wait for a reply. Returns what waited for it, if it has not come.
    pub(super) fn give_up(&mut self, ticket: StoreTicket) -> Option<Awaiting> {
        self.stored.awaiting.remove(&ticket)
    }

    /// Handles the reply to an operation.
    pub(super) fn handle_stored(&mut self, now: Instant, ticket: StoreTicket, reply: StoreReply) {
        match self.stored.awaiting.remove(&ticket) {
            None => self.end_waiting(ticket),
            Some(Awaiting::Ended) => {
                if let StoreReply::Events(events) = reply {
                    for key in
                        events.iter().filter_map(|(_, key)| SessionKey::try_from(&**key).ok())
                    {
                        self.absent.ended.add(key);
                    }
                }
            }
            Some(Awaiting::Events(exchange)) => self.continue_following(now, exchange, reply),
            Some(Awaiting::Changes(session)) => {
                self.stored.reading -= 1;
                self.repeat_changes(now, &session, reply);
                self.read_next_changes();
            }
            Some(Awaiting::Values(step)) => self.handle_values(now, step, reply),
        }
    }

    /// Makes up for messages of other processes that may have been lost: everything that they may have told counts as changed.
    pub(super) fn make_up_for_lost_messages(&mut self, now: Instant) {
        if self.stored.is_there {
            let log = ENDED.to_owned();
            self.ask_store(StoreOperation::Read { log, after: 0 }, Awaiting::Ended);
            self.read_all_changes();
        }
        let lists = self.engine.declared_lists();
        self.lists_changed(now, &lists);
        self.engine.forget_all_reads();
        self.pass_to_all(now, |()| session::Input::AllUpdated);
    }

    /// Stores that a client has ended a session, for processes that start later.
    pub(super) fn store_end(&mut self, session: SessionKey) {
        if self.stored.is_there {
            self.tell_store(StoreOperation::Append {
                log: ENDED.to_owned(),
                event: session.to_vec(),
                max_events: MAX_ENDED as u64,
                max_bytes: MAX_ENDED as u64 * ENDED_BYTES,
                ttl: Duration::from_secs(LIFETIME),
            });
        }
    }
}

/// Returns the name of something that belongs to a session in the store; `None` if its id exists in one process only.
pub(super) fn name(purpose: &str, session: &str) -> Option<String> {
    let key = sealed_id::key(session)?;
    Some(format!("{purpose}:{}", BASE64_URL_SAFE_NO_PAD.encode(key)))
}
