//! Sessions before 2026-07-28 that are restored from what their id says, and the sessions that can be.

use std::sync::Arc;

use super::{ClientIdentity, ListKind, ServerSession, SessionConfig, legacy::Handshake};
use crate::wire::Wire;

impl ServerSession {
    /// Creates a session that `initialize` opened, here or in another process. It counts as confirmed.
    ///
    /// `lists` are those of which the client was told that they may change. `first_question` is the JSON-RPC id of the first
    /// question: a late answer to one that was asked before must not answer another.
    pub fn restored(
        config: Arc<SessionConfig>,
        wire: &'static Wire,
        client: ClientIdentity,
        lists: Vec<ListKind>,
        first_question: u64,
    ) -> Self {
        Self {
            handshake: Handshake::restored(wire, client),
            spoken: wire,
            lists,
            first_question,
            ..Self::new(config)
        }
    }

    /// Returns whether the session consists of nothing but its revision and its client: no request, question, subscription or
    /// handler of a notification is there, the log level is the default, and no handler stored values.
    pub fn is_at_rest(&self) -> bool {
        self.handshake.is_restorable()
            && self.pending.len() == 0
            && self.listeners.is_empty()
            && self.batches.is_empty()
            && self.subscriptions.is_empty()
            && self.untold.is_empty()
            && self.logs.due.is_none()
            && self.asked.as_ref().is_none_or(|asked| asked.is_empty())
            && self.outputs.is_empty()
    }
}
