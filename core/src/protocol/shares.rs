//! The rule by which clients share what is limited, so that one of them can't use up all of it.
//!
//! Up to the limit everybody may hold more. Beyond it, a client with less than its share, the limit divided by the clients,
//! still may; all together hold at most twice the limit.

#[cfg(any(feature = "server", feature = "auth"))]
use std::{collections::HashMap, hash::Hash};

#[cfg(any(feature = "server", feature = "auth"))]
use super::ClientKey;

/// Returns whether one of `clients` may hold the amount `own` where all together then hold `total`, more than the limit.
pub(crate) fn is_within_share(limit: usize, clients: usize, own: usize, total: usize) -> bool {
    own <= limit / clients && total <= 2 * limit
}

/// The amounts that clients hold of one resource. Clients whose address is not known count as one.
#[cfg(any(feature = "server", feature = "auth"))]
#[derive(Debug)]
pub(crate) struct Shares<K = Option<ClientKey>> {
    limit: usize,
    total: usize,
    amounts: HashMap<K, usize>,
}

#[cfg(any(feature = "server", feature = "auth"))]
impl<K: Copy + Eq + Hash> Shares<K> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, total: 0, amounts: HashMap::new() }
    }

    /// Returns whether a client may hold one more.
    #[cfg(feature = "auth")]
    pub(crate) fn has_room_for(&self, client: K) -> bool {
        self.allows(self.share_of(client), 0, 1)
    }

    /// Adds one to what a client holds.
    #[cfg(feature = "auth")]
    pub(crate) fn add(&mut self, client: K) {
        self.set(client, self.share_of(client) + 1);
    }

    /// Subtracts one from what a client holds.
    #[cfg(feature = "auth")]
    pub(crate) fn remove(&mut self, client: K) {
        self.set(client, self.share_of(client).saturating_sub(1));
    }

    /// Replaces a part, `before`, of what a client holds by `after`. Returns `false` and changes nothing if there is no room
    /// for that.
    #[cfg(feature = "server")]
    pub(crate) fn replace(&mut self, client: K, before: usize, after: usize) -> bool {
        let own = self.share_of(client);
        let has_room = after <= before || self.allows(own, before, after);
        if has_room {
            self.set(client, own - before + after);
        }
        has_room
    }

    /// Returns whether a client holds its share of half of the limit.
    #[cfg(feature = "server")]
    pub(crate) fn has_half_share(&self, client: K) -> bool {
        let own = self.share_of(client);
        own >= self.limit / 2 / self.clients_with(own)
    }

    /// Returns what all clients hold together.
    #[cfg(feature = "server")]
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    fn share_of(&self, client: K) -> usize {
        self.amounts.get(&client).copied().unwrap_or_default()
    }

    /// Returns the number of clients, with one that holds `own`.
    fn clients_with(&self, own: usize) -> usize {
        self.amounts.len() + usize::from(own == 0)
    }

    /// Returns whether a client that holds `own` may hold `after` instead of a part `before` of it.
    fn allows(&self, own: usize, before: usize, after: usize) -> bool {
        let total = self.total - before + after;
        let clients = self.clients_with(own);
        total <= self.limit || is_within_share(self.limit, clients, own - before + after, total)
    }

    fn set(&mut self, client: K, amount: usize) {
        let before = match amount {
            0 => self.amounts.remove(&client),
            _ => self.amounts.insert(client, amount),
        };
        self.total = self.total - before.unwrap_or_default() + amount;
    }
}

#[cfg(all(test, feature = "server", feature = "auth"))]
mod tests {
    use super::*;

    const CLIENTS: [Option<ClientKey>; 4] =
        [Some(ClientKey::V4(1)), Some(ClientKey::V4(2)), Some(ClientKey::V4(3)), None];

    #[test]
    fn a_client_with_less_than_its_share_finds_room() {
        let mut shares = Shares::new(4);
        for _ in 0..4 {
            assert!(shares.has_room_for(CLIENTS[0]));
            shares.add(CLIENTS[0]);
        }
        assert!(!shares.has_room_for(CLIENTS[0]));
        for _ in 0..2 {
            assert!(shares.has_room_for(CLIENTS[1]));
            shares.add(CLIENTS[1]);
        }
        assert!(!shares.has_room_for(CLIENTS[1]), "it has its share, a half");
        for other in [CLIENTS[2], CLIENTS[3]] {
            assert!(shares.has_room_for(other));
            shares.add(other);
        }
        assert!(!shares.has_room_for(Some(ClientKey::V6(5))), "twice the limit is held");
        for _ in 0..4 {
            shares.remove(CLIENTS[0]);
        }
        assert!(shares.has_room_for(Some(ClientKey::V6(5))));
        assert_eq!((shares.total(), shares.amounts.len()), (4, 3));
    }

    #[test]
    fn an_amount_without_room_changes_nothing() {
        let mut shares = Shares::new(1_000);
        assert!(shares.replace(CLIENTS[0], 0, 1_000) && !shares.replace(CLIENTS[0], 1_000, 1_001));
        assert!(shares.replace(CLIENTS[1], 0, 500) && !shares.replace(CLIENTS[1], 500, 501));
        assert!(shares.replace(CLIENTS[0], 1_000, 900), "less is always possible");
        assert_eq!(shares.total(), 1_400);
        assert!(shares.has_half_share(CLIENTS[1]) && !shares.has_half_share(CLIENTS[2]));
        assert!(shares.replace(CLIENTS[0], 900, 0) && shares.replace(CLIENTS[1], 500, 0));
        assert_eq!((shares.total(), shares.amounts.len()), (0, 0));
    }
}
