//! A table of bounded size that is never locked, so that readers of numbers and calls do not wait for each other.

use std::{
    hash::{BuildHasher, Hash},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustc_hash::FxBuildHasher;

/// The place of one entry, which is boxed to keep an empty table small.
type Slot<K, V> = OnceLock<Box<(K, V)>>;

/// Entries that are added and never removed.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    /// Twice as many as entries, so that searches are short.
    slots: Box<[Slot<K, V>]>,
    capacity: usize,
    used: AtomicUsize,
}

impl<K, V> Table<K, V> {
    /// Creates a table for this many entries.
    pub(super) fn new(capacity: usize) -> Self {
        let slots = (0..(capacity * 2).next_power_of_two()).map(|_| OnceLock::new()).collect();
        Self { slots, capacity, used: AtomicUsize::new(0) }
    }

    /// Returns the number of an entry, which is added if it is new. Returns `None` if the table is full.
    pub(super) fn number(
        &self,
        key: &(impl Hash + ?Sized),
        is_it: impl Fn(&K) -> bool,
        new: impl FnOnce() -> (K, V),
    ) -> Option<usize> {
        let first = usize::try_from(FxBuildHasher.hash_one(key) >> 32).unwrap_or_default();
        let (mut new, mut entry) = (Some(new), None);
        for step in 0..self.slots.len() {
            let number = (first + step) & (self.slots.len() - 1);
            let slot = self.slots.get(number)?;
            if slot.get().is_none() {
                if let Some(new) = new.take() {
                    if self.used.fetch_add(1, Ordering::Relaxed) >= self.capacity {
                        self.used.fetch_sub(1, Ordering::Relaxed);
                        return None;
                    }
                    entry = Some(Box::new(new()));
                }
                // Another thread may take the slot first, for the same entry or for another one.
                entry = entry.and_then(|entry| slot.set(entry).err());
            }
            if slot.get().is_some_and(|entry| is_it(&entry.0)) {
                if entry.is_some() {
                    self.used.fetch_sub(1, Ordering::Relaxed);
                }
                return Some(number);
            }
        }
        None
    }

    /// Returns the entry with this number.
    pub(super) fn get(&self, number: usize) -> Option<&(K, V)> {
        self.slots.get(number)?.get().map(|entry| &**entry)
    }

    /// Returns all entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.slots.iter().filter_map(OnceLock::get).map(|entry| &**entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(table: &Table<u32, u32>, key: u32) -> Option<usize> {
        table.number(&key, |other| *other == key, || (key, key * 2))
    }

    #[test]
    fn an_entry_is_added_once_and_a_full_table_takes_no_other() {
        let table = Table::new(100);
        let numbers: Vec<_> = (0..100).map(|key| number(&table, key).expect("room")).collect();
        assert_eq!(number(&table, 100), None);
        for (key, place) in (0..).zip(&numbers) {
            assert_eq!(number(&table, key), Some(*place));
            assert_eq!(table.get(*place), Some(&(key, key * 2)));
        }
        assert_eq!(table.iter().count(), 100);
    }

    #[test]
    fn threads_that_add_the_same_entries_get_the_same_numbers() {
        let table = Table::new(64);
        let numbers = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..64).map(|key| number(&table, key)).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("numbers")).collect::<Vec<_>>()
        });
        // A thread may find the table full while another one, which lost the race for a slot, still counts its entry.
        let places: Vec<_> = (0..64).map(|key| number(&table, key).expect("an entry")).collect();
        for own in numbers {
            assert!(own.iter().zip(&places).all(|(one, all)| one.is_none_or(|one| one == *all)));
        }
        assert_eq!(table.iter().count(), 64);
    }
}
