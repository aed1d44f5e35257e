//! The shares that clients have of what is bounded, so that one of them can't use up all.

use std::collections::HashMap;

use crate::protocol::ClientKey;

/// The number of things that each client holds. Clients whose address is not known count as one.
#[derive(Debug)]
pub(crate) struct Shares {
    max: usize,
    total: usize,
    counts: HashMap<Option<ClientKey>, usize>,
}

impl Shares {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, total: 0, counts: HashMap::new() }
    }

    /// Returns whether a client may hold one more. At the maximum, a client with less than its share still may; all together
    /// hold at most twice the maximum.
    pub(crate) fn has_room_for(&self, client: Option<ClientKey>) -> bool {
        if self.total < self.max {
            return true;
        }
        let own = self.counts.get(&client).copied().unwrap_or_default();
        let clients = self.counts.len() + usize::from(own == 0);
        own < self.max / clients && self.total < 2 * self.max
    }

    pub(crate) fn add(&mut self, client: Option<ClientKey>) {
        *self.counts.entry(client).or_default() += 1;
        self.total += 1;
    }

    pub(crate) fn remove(&mut self, client: Option<ClientKey>) {
        let Some(count) = self.counts.get_mut(&client) else { return };
        self.total -= 1;
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(number: u8) -> Option<ClientKey> {
        ClientKey::of(None, Some(IpAddr::from([192, 0, 2, number])))
    }

    #[test]
    fn a_client_with_less_than_its_share_finds_room() {
        let mut shares = Shares::new(4);
        for _ in 0..4 {
            assert!(shares.has_room_for(client(1)));
            shares.add(client(1));
        }
        assert!(!shares.has_room_for(client(1)));
        for _ in 0..2 {
            assert!(shares.has_room_for(client(2)));
            shares.add(client(2));
        }
        assert!(!shares.has_room_for(client(2)), "it has its share, a half");
        for other in [client(3), client(4)] {
            assert!(shares.has_room_for(other));
            shares.add(other);
        }
        assert!(!shares.has_room_for(client(5)), "twice the maximum is held");
        for _ in 0..4 {
            shares.remove(client(1));
        }
        assert!(shares.has_room_for(client(5)));
        assert_eq!((shares.total, shares.counts.len()), (4, 3));
    }
}
