//! The sessions that their clients ended with DELETE, whose ids would still open.

use std::collections::{HashSet, VecDeque};

use super::sealed_id::SessionKey;

/// The maximum number of them. After as many further ones, the id of an ended session opens again, for its own client.
pub(super) const MAX_ENDED: usize = 32_768;

#[derive(Debug, Default)]
pub(super) struct EndedSessions {
    keys: HashSet<SessionKey>,
    in_order: VecDeque<SessionKey>,
}

impl EndedSessions {
    pub(super) fn add(&mut self, session: SessionKey) {
        if !self.keys.insert(session) {
            return;
        }
        self.in_order.push_back(session);
        if self.in_order.len() > MAX_ENDED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, session: &SessionKey) -> bool {
        self.keys.contains(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_known_and_memory_is_bounded() {
        let mut ended = EndedSessions::default();
        let key = |number: usize| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&number.to_le_bytes());
            key
        };
        for number in 0..=MAX_ENDED {
            ended.add(key(number));
            ended.add(key(number));
        }
        assert!(!ended.contains(&key(0)));
        assert!(ended.contains(&key(1)) && ended.contains(&key(MAX_ENDED)));
        assert_eq!((ended.keys.len(), ended.in_order.len()), (MAX_ENDED, MAX_ENDED));
    }
}
