//! The changes that a client makes to its session, for the other processes that may go on with it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::ServerSession;
use crate::{error::Fault, protocol::LoggingLevel, session::server::Output};

/// A change to a session before 2026-07-28, made when its request succeeds.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SessionChange {
    Level(LoggingLevel),
    Subscribe(String),
    Unsubscribe(String),
}

/// The changes since they were last taken.
#[derive(Debug, Default)]
pub(super) struct TrackedChanges(Vec<SessionChange>);

impl ServerSession {
    /// Notes changes from now on, for [`take_changes`](Self::take_changes).
    pub(crate) fn track_changes(&mut self) {
        self.tracked.get_or_insert_default();
    }

    /// Returns the changes that the client has made since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<SessionChange> {
        self.tracked.as_mut().map(|changes| std::mem::take(&mut changes.0)).unwrap_or_default()
    }

    /// Returns the changes that make a new session what this one is.
    pub(crate) fn changes_so_far(&self) -> Vec<SessionChange> {
        let subscribed = self.subscriptions.uris().iter().cloned().map(SessionChange::Subscribe);
        subscribed.chain(self.handshake.chosen_level().map(SessionChange::Level)).collect()
    }

    /// Returns the resources that the client has subscribed to.
    pub(crate) fn subscribed(&self) -> &BTreeSet<String> {
        self.subscriptions.uris()
    }

    /// Makes a change that the client has made in another process. One that is not possible here is left out.
    pub(crate) fn adopt(&mut self, change: SessionChange) {
        // It was within the limits there, so that only its order among others can be in the way.
        let _ = self.make(change);
    }

    /// Makes a change that the client asks for here.
    pub(super) fn apply(&mut self, change: SessionChange) -> Result<(), Fault> {
        let noted = self.tracked.is_some().then(|| change.clone());
        self.make(change)?;
        if let (Some(changes), Some(change)) = (&mut self.tracked, noted) {
            changes.0.push(change);
        }
        Ok(())
    }

    fn make(&mut self, change: SessionChange) -> Result<(), Fault> {
        match change {
            SessionChange::Subscribe(uri) => {
                self.subscriptions.subscribe(uri.clone())?;
                self.outputs.push_back(Output::Subscribed(vec![uri]));
            }
            SessionChange::Unsubscribe(uri) => self.subscriptions.unsubscribe(&uri),
            SessionChange::Level(level) => self.handshake.set_level(level),
        }
        Ok(())
    }
}
