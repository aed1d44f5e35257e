//! Log messages that anybody can cause as often as they like.

use std::{collections::HashMap, fmt, hash::Hash, panic::Location};

/// The shortest time between two messages of one kind, in seconds.
const PAUSE: u64 = 10;

/// Decides when a message is written, for each kind of message: by default, each place in the code that asks.
#[derive(Debug)]
pub(crate) struct LogLimit<K = &'static Location<'static>>(HashMap<K, Written>);

#[derive(Debug)]
struct Written {
    /// The time of the last message, in seconds since 1970.
    last: u64,
    left_out: usize,
}

/// The number of messages that were left out since the last one, as the end of the next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct LeftOut(usize);

impl<K> Default for LogLimit<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

#[cfg(any(feature = "auth", feature = "client", feature = "http"))]
impl LogLimit {
    /// Returns what to write at the end of the message of this place; `None` if it is to be left out. The time is in seconds
    /// since 1970.
    #[track_caller]
    pub(crate) fn due(&mut self, unix: u64) -> Option<LeftOut> {
        self.due_for(Location::caller(), unix)
    }
}

impl<K: Eq + Hash> LogLimit<K> {
    /// Returns what to write at the end of a message of this kind; `None` if it is to be left out. There must be few kinds.
    pub(crate) fn due_for(&mut self, kind: K, unix: u64) -> Option<LeftOut> {
        let Some(written) = self.0.get_mut(&kind) else {
            self.0.insert(kind, Written { last: unix, left_out: 0 });
            return Some(LeftOut(0));
        };
        // A clock that was set back ends the pause.
        if (written.last..written.last + PAUSE).contains(&unix) {
            written.left_out += 1;
            return None;
        }
        written.last = unix;
        Some(LeftOut(std::mem::take(&mut written.left_out)))
    }
}

#[cfg(feature = "server")]
impl LeftOut {
    pub(crate) fn count(self) -> usize {
        self.0
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            number => write!(f, " (and {number} times more since the last such message)"),
        }
    }
}

#[cfg(all(test, any(feature = "auth", feature = "client", feature = "http")))]
mod tests {
    use super::*;

    #[test]
    fn a_place_writes_once_in_ten_seconds_and_tells_how_often_it_did_not() {
        let mut limit = LogLimit::default();
        let mut one = |unix| limit.due(unix).map(|left_out| left_out.to_string());
        assert_eq!(one(100).as_deref(), Some(""));
        assert_eq!((one(100), one(109)), (None, None));
        assert_eq!(one(110).as_deref(), Some(" (and 2 times more since the last such message)"));
        assert_eq!(one(119), None);
        assert!(one(50).is_some(), "the clock was set back");
        assert!(limit.due(50).is_some(), "another place");
    }
}
