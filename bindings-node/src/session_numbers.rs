//! Numbers for sessions, so that values kept by handlers can be dropped at their end.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use gudgeon::session::server::ClientIdentity;

/// The number of sessions from which on ended ones are removed.
const FEW: usize = 64;

/// Session numbers. A session is identified by its client's identity object, which lives exactly as long.
#[derive(Debug, Default)]
pub(crate) struct SessionNumbers {
    /// Keyed by the identity's address, which is not reused while the entry exists.
    known: HashMap<usize, (Weak<ClientIdentity>, u32)>,
    last: u32,
    ended: Vec<u32>,
    look_at: usize,
}

impl SessionNumbers {
    pub(crate) fn number(&mut self, client: &Arc<ClientIdentity>) -> u32 {
        let place = Arc::as_ptr(client).addr();
        if let Some((_, number)) = self.known.get(&place) {
            return *number;
        }
        if self.known.len() >= self.look_at.max(FEW) {
            self.sweep();
        }
        self.last += 1;
        self.known.insert(place, (Arc::downgrade(client), self.last));
        self.last
    }

    /// Records that handlers store values for a session, which therefore stays in memory.
    pub(crate) fn keep_values(&self, session: u32) {
        let found = self.known.values().find(|(_, number)| *number == session);
        if let Some(client) = found.and_then(|(client, _)| client.upgrade()) {
            client.keep_values();
        }
    }

    /// Returns the sessions that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    fn sweep(&mut self) {
        let ended = &mut self.ended;
        self.known.retain(|_, (client, number)| {
            let lives = client.strong_count() > 0;
            if !lives {
                ended.push(*number);
            }
            lives
        });
        self.look_at = self.known.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_its_number_and_is_forgotten_after_its_end() {
        let mut session_numbers = SessionNumbers::default();
        let first = Arc::new(ClientIdentity::default());
        assert_eq!(session_numbers.number(&first), 1);
        assert_eq!(session_numbers.number(&first), 1);
        let kept: Vec<_> = (1..FEW).map(|_| Arc::new(ClientIdentity::default())).collect();
        for client in &kept {
            session_numbers.number(client);
        }
        drop(first);
        assert!(session_numbers.take_ended().is_empty());
        session_numbers.number(&Arc::new(ClientIdentity::default()));
        assert_eq!(session_numbers.take_ended(), [1]);
        assert_eq!(session_numbers.known.len(), FEW);
    }
}
