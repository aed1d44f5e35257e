//! A log of events, as the memory of a process or one value holds it.

use std::collections::VecDeque;

use super::StoreReply;

/// The events of a log, in their order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Log {
    events: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// The number before the log's first event. Smaller ones are of a log that had the same name before.
    before: u64,
    /// The highest number of the events that were removed; 0 if none was.
    removed: u64,
}

impl Log {
    /// Creates a log whose first event gets the number after this one.
    pub(crate) fn after(before: u64) -> Self {
        Self { events: VecDeque::new(), bytes: 0, before, removed: 0 }
    }

    /// Returns the memory that the events take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.events.len() * size_of::<(u64, Vec<u8>)>()
    }

    /// Returns the number of the newest event.
    pub(crate) fn last(&self) -> u64 {
        self.events.back().map_or(self.before.max(self.removed), |(number, _)| *number)
    }

    /// Adds an event, and removes the oldest ones above the limits.
    pub(crate) fn append(&mut self, event: Vec<u8>, max_events: u64, max_bytes: u64) -> StoreReply {
        if let Some(failed) = too_long(&event, max_bytes) {
            return failed;
        }
        let number = self.last() + 1;
        self.bytes += event.len();
        self.events.push_back((number, event));
        while self.events.len() as u64 > max_events.max(1) || self.bytes as u64 > max_bytes {
            let Some((number, event)) = self.events.pop_front() else { break };
            self.bytes -= event.len();
            self.removed = number;
        }
        StoreReply::Appended(number)
    }

    pub(crate) fn read(&self, after: u64) -> StoreReply {
        if is_gone(after, self.before, self.removed, self.last()) {
            return StoreReply::Gone;
        }
        let first = self.events.partition_point(|(number, _)| *number <= after);
        StoreReply::Events(self.events.range(first..).cloned().collect())
    }

    /// Returns the log as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = [self.before.to_le_bytes(), self.removed.to_le_bytes()].concat();
        for (number, event) in &self.events {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&(event.len() as u64).to_le_bytes());
            bytes.extend_from_slice(event);
        }
        bytes
    }

    /// Reads the bytes of a log; `None` if they are not a log.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (before, bytes) = number(bytes)?;
        let (removed, mut rest) = number(bytes)?;
        let mut log = Self { removed, ..Self::after(before) };
        while !rest.is_empty() {
            let (number_of, bytes) = number(rest)?;
            let (length, bytes) = number(bytes)?;
            let (event, bytes) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            log.bytes += event.len();
            log.events.push_back((number_of, event.into()));
            rest = bytes;
        }
        Some(log)
    }
}

/// Returns the failure to add an event that does not fit into its log.
pub(crate) fn too_long(event: &[u8], max_bytes: u64) -> Option<StoreReply> {
    let length = event.len();
    (length as u64 > max_bytes).then(|| {
        StoreReply::Failed(format!(
            "an event of {length} bytes is longer than its log, {max_bytes}"
        ))
    })
}

/// Returns `true` if events after the number `after` may be missing in a log. Its first event had the number after `before`, and
/// those up to `removed` are not stored any more.
pub(crate) fn is_gone(after: u64, before: u64, removed: u64, last: u64) -> bool {
    match after {
        0 => removed > 0,
        after => after <= before || after < removed || after > last,
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(numbers: &[u64]) -> StoreReply {
        StoreReply::Events(numbers.iter().map(|number| (*number, b"event".to_vec())).collect())
    }

    fn filled(max_events: u64, max_bytes: u64) -> Log {
        let mut log = Log::after(6);
        for number in 7..10 {
            let appended = log.append(b"event".into(), max_events, max_bytes);
            assert_eq!(appended, StoreReply::Appended(number));
        }
        log
    }

    #[test]
    fn a_reader_learns_that_it_missed_events() {
        let log = filled(9, 99);
        assert_eq!(log.read(0), events(&[7, 8, 9]));
        assert_eq!(log.read(8), events(&[9]));
        assert_eq!(log.read(9), events(&[]));
        for of_another_log in [1, 6, 10, u64::MAX] {
            assert_eq!(log.read(of_another_log), StoreReply::Gone);
        }
        for log in [filled(2, 99), filled(9, 14)] {
            assert_eq!(log.read(0), StoreReply::Gone);
            assert_eq!(log.read(7), events(&[8, 9]));
            assert_eq!(Log::decode(&log.encode()), Some(log));
        }
        let mut full = filled(9, 99);
        assert!(matches!(full.append(vec![0; 100], 9, 99), StoreReply::Failed(_)));
        assert_eq!(full, log);
    }

    #[test]
    fn bytes_that_are_not_a_log_are_refused() {
        let bytes = filled(2, 99).encode();
        for length in (0..bytes.len()).filter(|length| ![16, 37].contains(length)) {
            assert_eq!(Log::decode(&bytes[..length]), None, "{length}");
        }
        let endless = [[1; 8], [0; 8], [2; 8], [0xff; 8]].concat();
        assert_eq!(Log::decode(&endless), None);
    }
}
