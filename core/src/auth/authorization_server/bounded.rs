//! A table with a maximum size.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

/// A table that forgets its oldest entry when a new one finds it full.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    entries: HashMap<K, V>,
    /// The keys, oldest first, with those of removed entries.
    order: VecDeque<K>,
    max: usize,
}

impl<K: Clone + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { entries: HashMap::new(), order: VecDeque::new(), max }
    }

    /// Adds an entry with a key that was not used before.
    pub(super) fn insert(&mut self, key: K, value: V) {
        while self.entries.len() >= self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
        if self.order.len() >= 2 * self.max {
            self.order.retain(|key| self.entries.contains_key(key));
        }
        self.order.push_back(key.clone());
        self.entries.insert(key, value);
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_makes_room_and_removed_ones_take_none() {
        let mut table = Bounded::new(3);
        for number in 0..10 {
            table.insert(number, number);
        }
        assert_eq!((table.entries.len(), table.get(&6), table.get(&7)), (3, None, Some(&7)));
        for number in 10..1_000 {
            table.insert(number, number);
            table.remove(&number);
            assert!(table.order.len() <= 6, "{}", table.order.len());
        }
    }
}
