//! The store of one process. The time is an argument.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use super::{Expect, StoreOperation, StoreReply};

/// The maximum number of values.
pub const MAX_VALUES: usize = 100_000;
/// The maximum length of all keys and values, in bytes.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The values of a process. At a limit new ones are refused, because to forget one could be unsafe.
#[derive(Debug, Default)]
pub struct Memory {
    values: HashMap<Arc<str>, Stored>,
    /// The ends of the values, in their order.
    ends: BTreeSet<(Instant, Arc<str>)>,
    bytes: usize,
    /// The version that was used last.
    version: u64,
}

#[derive(Debug)]
struct Stored {
    value: Vec<u8>,
    version: u64,
    /// `None`: the value lasts as long as the process.
    end: Option<Instant>,
}

impl Memory {
    pub fn handle(&mut self, now: Instant, operation: StoreOperation) -> StoreReply {
        self.remove_expired(now);
        match operation {
            StoreOperation::Get { key } => StoreReply::Found(
                self.values.get(&*key).map(|entry| (entry.value.clone(), entry.version)),
            ),
            StoreOperation::Take { key } => StoreReply::Taken(self.remove(&key)),
            StoreOperation::Put { key, value, ttl, expect } => {
                let current = self.values.get(&*key).map(|entry| entry.version);
                let is_expected = match expect {
                    Expect::Any => true,
                    Expect::Absent => current.is_none(),
                    Expect::Version(version) => current == Some(version),
                };
                if !is_expected {
                    return StoreReply::Conflict;
                }
                let freed = self.values.get(&*key).map_or(0, |entry| key.len() + entry.value.len());
                let bytes = self.bytes - freed + key.len() + value.len();
                if bytes > MAX_BYTES || (current.is_none() && self.values.len() >= MAX_VALUES) {
                    return StoreReply::Failed("the store in memory is full".into());
                }
                self.remove(&key);
                self.version += 1;
                self.bytes = bytes;
                let (key, end) = (Arc::from(key), now.checked_add(ttl));
                self.ends.extend(end.map(|end| (end, Arc::clone(&key))));
                self.values.insert(key, Stored { value, version: self.version, end });
                StoreReply::Stored(self.version)
            }
            StoreOperation::Delete { key } => {
                self.remove(&key);
                StoreReply::Deleted
            }
            other => StoreReply::Failed(format!("the store in memory has no {}", other.name())),
        }
    }

    fn remove(&mut self, key: &str) -> Option<Vec<u8>> {
        let (key, Stored { value, end, .. }) = self.values.remove_entry(key)?;
        self.bytes -= key.len() + value.len();
        if let Some(end) = end {
            self.ends.remove(&(end, key));
        }
        Some(value)
    }

    fn remove_expired(&mut self, now: Instant) {
        while let Some((end, key)) = self.ends.first()
            && *end <= now
        {
            let key = Arc::clone(key);
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn put(key: &str, value: &[u8], expect: Expect) -> StoreOperation {
        StoreOperation::Put { key: key.into(), value: value.into(), ttl: TTL, expect }
    }

    fn get(key: &str) -> StoreOperation {
        StoreOperation::Get { key: key.into() }
    }

    #[test]
    fn a_value_ends_with_its_time() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert_eq!(memory.handle(now, put("a", b"1", Expect::Absent)), StoreReply::Stored(1));
        let before = now + Duration::from_nanos(9_999_999_999);
        assert_eq!(memory.handle(before, put("a", b"2", Expect::Absent)), StoreReply::Conflict);
        assert_eq!(memory.handle(before, get("a")), StoreReply::Found(Some((b"1".into(), 1))));
        assert_eq!(memory.handle(now + TTL, get("a")), StoreReply::Found(None));
        assert_eq!(memory.handle(now + TTL, put("a", b"2", Expect::Absent)), StoreReply::Stored(2));
        assert_eq!((memory.values.len(), memory.ends.len(), memory.bytes), (1, 1, 2));
        let ttl = Duration::MAX;
        let forever =
            StoreOperation::Put { key: "b".into(), value: Vec::new(), ttl, expect: Expect::Any };
        assert_eq!(memory.handle(now, forever), StoreReply::Stored(3));
        assert_eq!(memory.ends.len(), 1);
    }

    #[test]
    fn a_value_is_replaced_if_its_version_is_the_expected_one() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert_eq!(memory.handle(now, put("a", b"1", Expect::Version(1))), StoreReply::Conflict);
        assert_eq!(memory.handle(now, put("a", b"1", Expect::Any)), StoreReply::Stored(1));
        assert_eq!(memory.handle(now, put("a", b"2", Expect::Version(1))), StoreReply::Stored(2));
        assert_eq!(memory.handle(now, put("a", b"3", Expect::Version(1))), StoreReply::Conflict);
        // The end of a value that was replaced does not end the new one.
        let (later, again) = (now + TTL / 2, put("a", b"4", Expect::Any));
        assert_eq!(memory.handle(later, again), StoreReply::Stored(3));
        assert_eq!(memory.handle(now + TTL, get("a")), StoreReply::Found(Some((b"4".into(), 3))));
        let take = || StoreOperation::Take { key: "a".into() };
        assert_eq!(memory.handle(later, take()), StoreReply::Taken(Some(b"4".into())));
        assert_eq!(memory.handle(later, take()), StoreReply::Taken(None));
        assert_eq!((memory.ends.len(), memory.bytes), (0, 0));
    }

    #[test]
    fn the_number_and_the_bytes_of_values_are_bounded() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        for number in 0..MAX_VALUES {
            let stored = memory.handle(now, put(&number.to_string(), b"1", Expect::Absent));
            assert!(matches!(stored, StoreReply::Stored(_)));
        }
        let full = StoreReply::Failed("the store in memory is full".into());
        assert_eq!(memory.handle(now, put("one more", b"1", Expect::Absent)), full);
        assert!(matches!(memory.handle(now, put("7", b"2", Expect::Any)), StoreReply::Stored(_)));
        let stored = memory.handle(now + TTL, put("one more", b"1", Expect::Absent));
        assert!(matches!(stored, StoreReply::Stored(_)));
        assert_eq!(memory.values.len(), 1, "the others have expired");
        let (mut memory, half) = (Memory::default(), vec![0; MAX_BYTES / 2]);
        assert_eq!(memory.handle(now, put("a", &half, Expect::Any)), StoreReply::Stored(1));
        assert_eq!(memory.handle(now, put("b", &half, Expect::Any)), full);
        assert_eq!(memory.handle(now, put("a", &half, Expect::Any)), StoreReply::Stored(2));
    }
}
