//! Chooses the client whose session is evicted when the table is full.

use std::{
    collections::{BTreeSet, HashMap},
    iter::once,
};

use crate::protocol::ClientKey;

/// The number of sessions of each client. Clients that the server can't tell apart count as one.
#[derive(Debug, Default)]
pub(super) struct SessionShares {
    clients: HashMap<Option<ClientKey>, usize>,
    /// The clients by the number of their sessions.
    by_count: BTreeSet<(usize, Option<ClientKey>)>,
}

impl SessionShares {
    pub(super) fn add(&mut self, client: Option<ClientKey>) {
        let count = self.clients.entry(client).or_default();
        self.by_count.remove(&(*count, client));
        *count += 1;
        self.by_count.insert((*count, client));
    }

    pub(super) fn remove(&mut self, client: Option<ClientKey>) {
        let Some(count) = self.clients.get_mut(&client) else { return };
        self.by_count.remove(&(*count, client));
        *count -= 1;
        match *count {
            0 => drop(self.clients.remove(&client)),
            count => drop(self.by_count.insert((count, client))),
        }
    }

    /// Returns the clients of which one loses a session before `newcomer` gets another one, in this order. With one session
    /// less they have as many as the newcomer then has, or more; the newcomer comes last.
    pub(super) fn eviction_candidates(
        &self,
        newcomer: Option<ClientKey>,
    ) -> impl Iterator<Item = Option<ClientKey>> {
        let own = self.clients.get(&newcomer).copied().unwrap_or_default();
        let larger = self.by_count.iter().rev().take_while(move |(count, _)| own + 1 < *count);
        larger.map(|(_, client)| *client).chain(once(newcomer))
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
        assert_eq!(eviction_candidates(&shares, ADA), [ADA]);
        for _ in 0..3 {
            shares.add(ADA);
        }
        assert_eq!(eviction_candidates(&shares, ADA), [ADA]);
        assert_eq!(eviction_candidates(&shares, BOB), [ADA, BOB]);
        shares.add(BOB);
        shares.add(BOB);
        // With one more session each would have as many as the other.
        assert_eq!(eviction_candidates(&shares, BOB), [BOB]);
        assert_eq!(eviction_candidates(&shares, EVE), [ADA, BOB, EVE]);
        for client in [ADA, ADA, ADA, BOB, BOB] {
            shares.remove(client);
        }
        assert!(shares.clients.is_empty() && shares.by_count.is_empty());
    }
}
