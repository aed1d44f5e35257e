//! Events on their way to the program's `tracing` subscriber.

use super::{EventKind, LogEvent};
use crate::log_limit::{LeftOut, LogLimit};

/// Writes the events of one server. Equal events that anybody can cause are written once in ten seconds.
#[derive(Debug, Default)]
pub(crate) struct EventLog(LogLimit<(EventKind, &'static str)>);

impl EventLog {
    /// Returns how many equal events were left out, if this one is to be written. The time is in seconds since 1970.
    pub(crate) fn due(&mut self, event: &LogEvent, unix: u64) -> Option<LeftOut> {
        match event.declaration().is_limited {
            true => self.0.due_for((event.kind, event.reason), unix),
            false => Some(LeftOut::default()),
        }
    }
}

impl LogEvent {
    /// Returns whether the program's subscriber wants such events.
    pub(crate) fn is_enabled(&self) -> bool {
        self.kind.is_enabled()
    }

    /// Gives the event to the program's subscriber.
    pub(crate) fn write(&self, left_out: LeftOut) {
        self.kind.write(&format!("{self}{left_out}"), &self.values(left_out.count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_one_line_for_each_reason_and_the_next_one_counts_it() {
        let mut log = EventLog::default();
        let refused = |reason| LogEvent::new(EventKind::HttpRefused, "no").because(reason);
        let (host, origin) = (refused("host"), refused("origin"));
        assert_eq!(log.due(&host, 100), Some(LeftOut::default()));
        assert_eq!(log.due(&origin, 100), Some(LeftOut::default()), "another reason");
        assert!((0..1_000).all(|_| log.due(&host, 109).is_none()));
        let left_out = log.due(&host, 110).unwrap_or_default();
        assert_eq!(left_out.count(), 1_000);
        assert_eq!(host.values(left_out.count()).left_out, Some(1_000));
        let rejected = LogEvent::new(EventKind::CallRejected, "no").because("unknown_tool");
        assert!((0..5).all(|_| log.due(&rejected, 110).is_some()), "who debugs wants to see all");
    }
}
