//! A table whose entries end.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

/// Entries by name. The caller of `insert` counts the bytes of an entry.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: HashMap<Arc<str>, Entry<T>>,
    /// The ends of the entries, in their order.
    ends: BTreeSet<(Instant, Arc<str>)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    content: T,
    bytes: usize,
    /// `None`: the entry lasts as long as the process.
    end: Option<Instant>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), ends: BTreeSet::new(), bytes: 0 }
    }
}

impl<T> Table<T> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the bytes of all entries and their names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes of an entry and its name, or 0.
    pub(super) fn bytes_of(&self, name: &str) -> usize {
        self.entries.get(name).map_or(0, |entry| name.len() + entry.bytes)
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|entry| &entry.content)
    }

    /// Inserts an entry, in the place of one with the same name.
    pub(super) fn insert(&mut self, name: &str, content: T, bytes: usize, end: Option<Instant>) {
        self.remove(name);
        let name: Arc<str> = name.into();
        self.bytes += name.len() + bytes;
        self.ends.extend(end.map(|end| (end, Arc::clone(&name))));
        self.entries.insert(name, Entry { content, bytes, end });
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        let (name, Entry { content, bytes, end }) = self.entries.remove_entry(name)?;
        self.bytes -= name.len() + bytes;
        if let Some(end) = end {
            self.ends.remove(&(end, name));
        }
        Some(content)
    }

    pub(super) fn remove_expired(&mut self, now: Instant) {
        while let Some((end, name)) = self.ends.first()
            && *end <= now
        {
            let name = Arc::clone(name);
            self.remove(&name);
        }
    }
}

/// Returns the end of an entry that lasts this long.
pub(super) fn end(now: Instant, ttl: Duration) -> Option<Instant> {
    now.checked_add(ttl)
}
