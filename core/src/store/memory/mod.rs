//! The store of one process. The time is an argument.

mod table;

use std::time::{Duration, Instant};

use self::table::{Table, end};
use super::{Expect, StoreOperation, StoreReply, log::Log};

/// The maximum number of values, of logs, and of leases.
pub const MAX_VALUES: usize = 100_000;
/// The maximum length of all keys, values and events, in bytes.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The values, logs and leases of a process. At a limit new ones are refused, because to forget one could be unsafe.
#[derive(Debug, Default)]
pub struct Memory {
    values: Table<(Vec<u8>, u64)>,
    logs: Table<Log>,
    leases: Table<Lease>,
    /// The version or token that was used last.
    version: u64,
    /// The highest number of an event.
    event: u64,
}

#[derive(Debug)]
struct Lease {
    owner: String,
    token: u64,
}

impl Memory {
    /// Carries out an operation. Messages are not the memory's matter.
    pub fn handle(&mut self, now: Instant, operation: StoreOperation) -> StoreReply {
        self.values.remove_expired(now);
        self.logs.remove_expired(now);
        self.leases.remove_expired(now);
        match operation {
            StoreOperation::Get { key } => StoreReply::Found(self.values.get(&key).cloned()),
            StoreOperation::Take { key } => {
                StoreReply::Taken(self.values.remove(&key).map(|(value, _)| value))
            }
            StoreOperation::Delete { key } => {
                self.values.remove(&key);
                StoreReply::Deleted
            }
            StoreOperation::Put { key, value, ttl, expect } => {
                self.put(now, &key, value, ttl, expect)
            }
            StoreOperation::Append { log, event, max_events, max_bytes, ttl } => {
                self.append(now, &log, event, (max_events, max_bytes), ttl)
            }
            StoreOperation::Read { log, after } => match self.logs.get(&log) {
                Some(log) => log.read(after),
                None if after == 0 => StoreReply::Events(Vec::new()),
                None => StoreReply::Gone,
            },
            StoreOperation::Lease { key, owner, ttl } => self.lease(now, &key, owner, ttl),
            StoreOperation::Renew { key, owner, ttl } => {
                match self.leases.get(&key).filter(|lease| lease.owner == owner) {
                    None => StoreReply::Held,
                    Some(&Lease { token, .. }) => {
                        let bytes = owner.len();
                        self.leases.insert(&key, Lease { owner, token }, bytes, end(now, ttl));
                        StoreReply::Leased(token)
                    }
                }
            }
            StoreOperation::Release { key, owner } => {
                if self.leases.get(&key).is_some_and(|lease| lease.owner == owner) {
                    self.leases.remove(&key);
                }
                StoreReply::Released
            }
            StoreOperation::Publish { .. } => {
                StoreReply::Failed("this store carries no messages".into())
            }
        }
    }

    fn put(
        &mut self,
        now: Instant,
        key: &str,
        value: Vec<u8>,
        ttl: Duration,
        expect: Expect,
    ) -> StoreReply {
        let current = self.values.get(key).map(|(_, version)| *version);
        let is_expected = match expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Version(version) => current == Some(version),
        };
        if !is_expected {
            return StoreReply::Conflict;
        }
        let added = key.len() + value.len();
        let is_full = current.is_none() && self.values.len() >= MAX_VALUES;
        if is_full || self.bytes() - self.values.bytes_of(key) + added > MAX_BYTES {
            return full();
        }
        self.version += 1;
        let bytes = value.len();
        self.values.insert(key, (value, self.version), bytes, end(now, ttl));
        StoreReply::Stored(self.version)
    }

    fn append(
        &mut self,
        now: Instant,
        name: &str,
        event: Vec<u8>,
        (max_events, max_bytes): (u64, u64),
        ttl: Duration,
    ) -> StoreReply {
        let is_full = self.logs.get(name).is_none() && self.logs.len() >= MAX_VALUES;
        // As much as the log may take with the event, before others are removed.
        let added = name.len() + event.len() + size_of::<(u64, Vec<u8>)>();
        if is_full || self.bytes() + added > MAX_BYTES {
            return full();
        }
        if let Some(failed) = super::log::too_long(&event, max_bytes) {
            return failed;
        }
        let mut log = self.logs.remove(name).unwrap_or_else(|| Log::after(self.event));
        let appended = log.append(event, max_events, max_bytes);
        self.event = self.event.max(log.last());
        let bytes = log.bytes();
        self.logs.insert(name, log, bytes, end(now, ttl));
        appended
    }

    fn lease(&mut self, now: Instant, key: &str, owner: String, ttl: Duration) -> StoreReply {
        let current = self.leases.get(key);
        if current.is_some_and(|lease| lease.owner != owner) {
            return StoreReply::Held;
        }
        let is_full = current.is_none() && self.leases.len() >= MAX_VALUES;
        if is_full || self.bytes() + key.len() + owner.len() > MAX_BYTES {
            return full();
        }
        self.version += 1;
        let (token, bytes) = (self.version, owner.len());
        self.leases.insert(key, Lease { owner, token }, bytes, end(now, ttl));
        StoreReply::Leased(token)
    }

    fn bytes(&self) -> usize {
        self.values.bytes() + self.logs.bytes() + self.leases.bytes()
    }
}

fn full() -> StoreReply {
    StoreReply::Failed("the store in memory is full".into())
}

#[cfg(test)]
mod tests {
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
        assert_eq!((memory.values.len(), memory.bytes()), (1, 2));
        let ttl = Duration::MAX;
        let forever =
            StoreOperation::Put { key: "b".into(), value: Vec::new(), ttl, expect: Expect::Any };
        assert_eq!(memory.handle(now, forever), StoreReply::Stored(3));
        let never = now + Duration::from_secs(1 << 40);
        assert_eq!(memory.handle(never, get("a")), StoreReply::Found(None));
        assert_eq!(memory.handle(never, get("b")), StoreReply::Found(Some((Vec::new(), 3))));
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
        assert_eq!((memory.values.len(), memory.bytes()), (0, 0));
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

    fn append(log: &str, event: &[u8]) -> StoreOperation {
        StoreOperation::Append {
            log: log.into(),
            event: event.into(),
            max_events: 3,
            max_bytes: MAX_BYTES as u64,
            ttl: TTL,
        }
    }

    fn read(log: &str, after: u64) -> StoreOperation {
        StoreOperation::Read { log: log.into(), after }
    }

    #[test]
    fn a_log_lasts_from_its_last_event_on_and_its_numbers_never_return() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert_eq!(memory.handle(now, read("a", 0)), StoreReply::Events(Vec::new()));
        assert_eq!(memory.handle(now, read("a", 1)), StoreReply::Gone);
        assert_eq!(memory.handle(now, append("a", b"1")), StoreReply::Appended(1));
        let later = now + TTL / 2;
        assert_eq!(memory.handle(later, append("a", b"2")), StoreReply::Appended(2));
        let events = StoreReply::Events(vec![(2, b"2".into())]);
        assert_eq!(memory.handle(now + TTL, read("a", 1)), events);
        assert_eq!(memory.handle(later + TTL, read("a", 1)), StoreReply::Gone);
        assert_eq!(memory.bytes(), 0);
        assert_eq!(memory.handle(later + TTL, append("a", b"3")), StoreReply::Appended(3));
        assert_eq!(memory.handle(later + TTL, read("a", 1)), StoreReply::Gone);
        for number in 4..10 {
            let appended = memory.handle(later + TTL, append("a", &[0; 1000]));
            assert_eq!(appended, StoreReply::Appended(number));
        }
        assert!(memory.bytes() < 4_000, "three events are left");
        let half = vec![0; MAX_BYTES / 2];
        assert_eq!(memory.handle(later, append("b", &half)), StoreReply::Appended(10));
        let full = StoreReply::Failed("the store in memory is full".into());
        assert_eq!(memory.handle(later, append("c", &half)), full);
        assert_eq!(memory.handle(later, put("c", &half, Expect::Any)), full);
    }

    #[test]
    fn a_lease_has_one_owner_and_a_token_that_grows() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let named = |owner: &str| ("a".to_owned(), owner.to_owned());
        let lease = |owner| {
            let (key, owner) = named(owner);
            StoreOperation::Lease { key, owner, ttl: TTL }
        };
        let renew = |owner| {
            let (key, owner) = named(owner);
            StoreOperation::Renew { key, owner, ttl: TTL }
        };
        let release = |owner| {
            let (key, owner) = named(owner);
            StoreOperation::Release { key, owner }
        };
        let later = now + TTL / 2;
        for (time, operation, reply) in [
            (now, renew("one"), StoreReply::Held),
            (now, lease("one"), StoreReply::Leased(1)),
            (now, lease("two"), StoreReply::Held),
            (now, release("two"), StoreReply::Released),
            (later, renew("one"), StoreReply::Leased(1)),
            (later, renew("two"), StoreReply::Held),
            (now + TTL, lease("two"), StoreReply::Held),
            (later + TTL, renew("one"), StoreReply::Held),
            (later + TTL, lease("two"), StoreReply::Leased(2)),
            (later + TTL, lease("two"), StoreReply::Leased(3)),
            (later + TTL, release("two"), StoreReply::Released),
            (later + TTL, lease("one"), StoreReply::Leased(4)),
        ] {
            assert_eq!(memory.handle(time, operation.clone()), reply, "{operation:?}");
        }
        let value = StoreOperation::Get { key: "a".into() };
        assert_eq!(memory.handle(now, value), StoreReply::Found(None));
    }
}
