//! Ids that are accepted once: those of proofs of possession, and of assertions.

use std::collections::{BTreeMap, HashSet};

use super::TokenDigest;
use crate::protocol::Shares;

/// The number of ids from which on each owner may use its share only.
const MAX_IDS: usize = 100_000;

/// The ids that were used. None is forgotten while it would still be accepted, because it could be used again then. When very many
/// are remembered, new ones are refused. Each owner has a share of that number, so that one can't use up all of it.
#[derive(Debug)]
pub struct UsedOnce {
    used: HashSet<TokenDigest>,
    /// The ids with their owners, by the time until which they are accepted.
    ends: BTreeMap<u64, Vec<(TokenDigest, TokenDigest)>>,
    shares: Shares<TokenDigest>,
}

/// The reason why an id is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotUsable {
    UsedBefore,
    /// Very many ids are remembered, and the owner has its share of them.
    NoRoom,
}

impl Default for UsedOnce {
    fn default() -> Self {
        Self::new(MAX_IDS)
    }
}

impl UsedOnce {
    fn new(limit: usize) -> Self {
        Self { used: HashSet::new(), ends: BTreeMap::new(), shares: Shares::new(limit) }
    }

    /// Uses an id. `until` is the last second at which it would be accepted; both times are in seconds since 1970.
    pub fn use_once(
        &mut self,
        owner: TokenDigest,
        id: TokenDigest,
        until: u64,
        unix: u64,
    ) -> Result<(), NotUsable> {
        self.forget_before(unix);
        if self.used.contains(&id) {
            return Err(NotUsable::UsedBefore);
        }
        if !self.shares.has_room_for(owner) {
            return Err(NotUsable::NoRoom);
        }
        self.shares.add(owner);
        self.used.insert(id);
        self.ends.entry(until).or_default().push((id, owner));
        Ok(())
    }

    fn forget_before(&mut self, unix: u64) {
        while let Some(entry) = self.ends.first_entry().filter(|entry| *entry.key() < unix) {
            for (id, owner) in entry.remove() {
                self.used.remove(&id);
                self.shares.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> TokenDigest {
        TokenDigest::new(text)
    }

    #[test]
    fn an_id_is_used_once_while_it_is_accepted() {
        let (mut used, owner) = (UsedOnce::default(), digest("owner"));
        let mut use_once =
            |id: u64, until, unix| used.use_once(owner, digest(&id.to_string()), until, unix);
        assert_eq!(use_once(1, 1_300, 1_000), Ok(()));
        assert_eq!(use_once(2, 1_200, 1_000), Ok(()));
        for unix in [1_000, 1_200, 1_300] {
            assert_eq!(use_once(1, 1_300, unix), Err(NotUsable::UsedBefore), "{unix}");
        }
        assert_eq!(use_once(1, 1_600, 1_301), Ok(()), "nobody accepted it any more");
        assert_eq!((used.used.len(), used.ends.len()), (1, 1));
    }

    #[test]
    fn nothing_is_forgotten_for_another_owner_who_finds_room_in_its_share() {
        let (mut used, many, few) = (UsedOnce::new(100), digest("many"), digest("few"));
        let until = 1_300;
        assert_eq!(used.use_once(few, digest("first"), until, 1_000), Ok(()));
        let accepted = (0..1_000)
            .filter(|number| {
                used.use_once(many, digest(&format!("{number}")), until, 1_000).is_ok()
            })
            .count();
        assert_eq!(accepted, 99);
        let again = used.use_once(few, digest("first"), until, 1_000);
        assert_eq!(again, Err(NotUsable::UsedBefore));
        assert_eq!(used.use_once(many, digest("last"), until, 1_000), Err(NotUsable::NoRoom));
        assert_eq!(used.use_once(few, digest("second"), until, 1_000), Ok(()));
        // Everybody has room again once the ids are not accepted any more.
        assert_eq!(used.use_once(many, digest("last"), until + 300, until + 1), Ok(()));
        assert_eq!(used.used.len(), 1);
    }

    #[test]
    fn all_owners_together_have_a_bounded_number_of_ids() {
        let mut used = UsedOnce::new(100);
        // Each fills its share, which was larger for those before.
        for owner in 0..50 {
            for id in 0..100 {
                let id = digest(&format!("{owner} {id}"));
                let _ = used.use_once(digest(&format!("{owner}")), id, 1_300, 1_000);
                assert!(used.used.len() <= 200);
            }
        }
        assert_eq!(used.used.len(), 200);
    }
}
