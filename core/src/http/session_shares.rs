//! Chooses the client whose session is evicted when the table is full.

use std::{
    collections::{BTreeSet, HashMap},
    iter::once,
};

use crate::protocol::ClientKey;

/// The sessions of each client, by number. Clients that the server can't tell apart count as one.
#[derive(Debug, Default)]
pub(super) struct SessionShares {
    clients: HashMap<Option<ClientKey>, Share>,
    /// The clients by the number of their sessions.
    by_count: BTreeSet<(usize, Option<ClientKey>)>,
}

#[derive(Debug, Default)]
struct Share {
    sessions: usize,
    /// The sessions that were not used after `initialize`. Numbers grow, so the oldest comes first.
    unused: BTreeSet<u64>,
}

impl SessionShares {
    /// Adds a session that was not used yet.
    pub(super) fn add(&mut self, client: Option<ClientKey>, session: u64) {
        let share = self.clients.entry(client).or_default();
        self.by_count.remove(&(share.sessions, client));
        share.sessions += 1;
        share.unused.insert(session);
        self.by_count.insert((share.sessions, client));
    }

    /// Records that a session was used after `initialize`.
    pub(super) fn mark_used(&mut self, client: Option<ClientKey>, session: u64) {
        if let Some(share) = self.clients.get_mut(&client) {
            share.unused.remove(&session);
        }
    }

    pub(super) fn remove(&mut self, client: Option<ClientKey>, session: u64) {
        let Some(share) = self.clients.get_mut(&client) else { return };
        self.by_count.remove(&(share.sessions, client));
        share.sessions -= 1;
        share.unused.remove(&session);
        match share.sessions {
            0 => drop(self.clients.remove(&client)),
            count => drop(self.by_count.insert((count, client))),
        }
    }

    /// Returns the clients of which one loses a session before `newcomer` gets another one, in this order, and whether it may
    /// be a session that was used. They have more sessions than the newcomer, which comes last.
    pub(super) fn eviction_candidates(
        &self,
        newcomer: Option<ClientKey>,
    ) -> impl Iterator<Item = (Option<ClientKey>, bool)> {
        let own = self.clients.get(&newcomer).map_or(0, |share| share.sessions);
        let larger = self.by_count.iter().rev().take_while(move |(count, _)| own < *count);
        let larger = larger.map(move |(count, client)| (*client, own + 1 < *count));
        larger.chain(once((newcomer, true)))
    }

    /// Returns the sessions of a client that were not used after `initialize`, oldest first.
    pub(super) fn unused(&self, client: Option<ClientKey>) -> impl Iterator<Item = u64> {
        self.clients.get(&client).into_iter().flat_map(|share| share.unused.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Option<ClientKey> = Some(ClientKey::V4(1));
    const BOB: Option<ClientKey> = Some(ClientKey::V4(2));
    const EVE: Option<ClientKey> = Some(ClientKey::V4(3));

    #[test]
    fn the_client_with_the_most_sessions_loses_one() {
        let mut shares = SessionShares::default();
        let eviction_candidates =
            |shares: &SessionShares, client| shares.eviction_candidates(client).collect::<Vec<_>>();
        assert_eq!(eviction_candidates(&shares, ADA), [(ADA, true)]);
        for session in 0..3 {
            shares.add(ADA, session);
        }
        assert_eq!(eviction_candidates(&shares, ADA), [(ADA, true)]);
        assert_eq!(eviction_candidates(&shares, BOB), [(ADA, true), (BOB, true)]);
        shares.add(BOB, 3);
        shares.add(BOB, 4);
        // With one more session each would have as many as the other.
        assert_eq!(eviction_candidates(&shares, BOB), [(ADA, false), (BOB, true)]);
        assert_eq!(eviction_candidates(&shares, EVE), [(ADA, true), (BOB, true), (EVE, true)]);
        shares.remove(ADA, 0);
        assert_eq!(eviction_candidates(&shares, BOB), [(BOB, true)]);
    }

    #[test]
    fn the_oldest_unused_session_comes_first() {
        let mut shares = SessionShares::default();
        for session in [5, 6, 7] {
            shares.add(ADA, session);
        }
        shares.mark_used(ADA, 5);
        assert_eq!(shares.unused(ADA).collect::<Vec<_>>(), [6, 7]);
        shares.remove(ADA, 6);
        assert_eq!(shares.unused(ADA).collect::<Vec<_>>(), [7]);
        shares.remove(ADA, 5);
        shares.remove(ADA, 7);
        assert!(shares.clients.is_empty() && shares.by_count.is_empty());
    }
}
