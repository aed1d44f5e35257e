//! Log messages to the client: which it wants, and how many it gets (Logging, "Implementation Considerations").

use std::time::{Duration, Instant};

use super::{About, LogPolicy, ServerSession};
use crate::{
    protocol::{LoggingLevel, Method, Raw, json::ObjectWriter},
    session::CallId,
};

/// Messages that one client gets at once, and then one for each period.
const BURST: u32 = 1_000;
const PERIOD: Duration = Duration::from_millis(10);

/// A message for the client's log.
#[derive(Clone, Debug)]
pub struct Log {
    pub level: LoggingLevel,
    pub logger: Option<String>,
    /// JSON.
    pub data: Raw,
}

/// How many messages may be sent now.
#[derive(Debug)]
pub(super) struct LogFlow {
    left: u32,
    /// Since when there was no new one to send.
    since: Option<Instant>,
    /// What listeners to notifications could not tell.
    unsaid: Unsaid,
}

/// Messages that were left out: how many, and the gravest level among them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsaid(u64, Option<LoggingLevel>);

impl Default for LogFlow {
    fn default() -> Self {
        Self { left: BURST, since: None, unsaid: Unsaid::default() }
    }
}

impl LogFlow {
    fn take(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let periods = now.saturating_duration_since(since).as_nanos() / PERIOD.as_nanos();
        if let Ok(periods @ 1..) = u32::try_from(periods) {
            self.left = self.left.saturating_add(periods).min(BURST);
            self.since = Some(since + PERIOD * periods);
        }
        if self.left == BURST {
            self.since = Some(now);
        }
        self.left = match self.left.checked_sub(1) {
            Some(left) => left,
            None => return false,
        };
        true
    }
}

impl Unsaid {
    fn add(&mut self, level: LoggingLevel) {
        *self = Self(self.0 + 1, self.1.max(Some(level)));
    }
}

impl ServerSession {
    /// `call` is a request's, or a listener's to notifications. With `is_behind`, when the peer does not read, it is
    /// left out.
    pub(super) fn send_log(&mut self, now: Instant, call: CallId, log: &Log, is_behind: bool) {
        let about = match self.pending.get_mut(call) {
            Some(_) => About::Call(call),
            None if self.listeners.contains(&call) => About::Peer,
            None => return,
        };
        if self.threshold(about).is_none_or(|it| log.level < it) {
            return;
        }
        if is_behind || !self.logs.take(now) {
            if let Some(unsaid) = self.unsaid(about) {
                unsaid.add(log.level);
            }
            return;
        }
        self.tell_unsaid(about);
        self.write_log(about, log.level, log.logger.as_deref(), log.data.get());
    }

    /// Before anything else is told of a call, its client hears what it did not hear.
    pub(super) fn tell_unsaid(&mut self, about: About) {
        let unsaid = self.unsaid(about).map(std::mem::take);
        let Some(Unsaid(count, Some(level))) = unsaid else { return };
        if self.threshold(about).is_some_and(|it| level >= it) {
            let rate = 1_000 / PERIOD.as_millis();
            let text = format!(
                "{count} log messages were left out: a client gets {BURST} at once, and then {rate} a second as long as it \
                 reads them"
            );
            self.write_log(about, level, None, &format!("\"{text}\""));
        }
    }

    fn unsaid(&mut self, about: About) -> Option<&mut Unsaid> {
        match about {
            About::Call(call) => self.pending.get_mut(call).map(|(_, it)| &mut it.unsaid),
            About::Peer | About::Reply(_) => Some(&mut self.logs.unsaid),
        }
    }

    fn threshold(&mut self, about: About) -> Option<LoggingLevel> {
        let policy = match about {
            About::Call(call) => self.pending.get_mut(call).map(|(_, inbound)| inbound.log),
            About::Peer | About::Reply(_) => None,
        };
        match policy.unwrap_or(LogPolicy::Session) {
            LogPolicy::Request(threshold) => threshold,
            LogPolicy::Session => self.handshake.level(),
        }
    }

    fn write_log(&mut self, about: About, level: LoggingLevel, logger: Option<&str>, data: &str) {
        let mut params = ObjectWriter::with_capacity(64 + data.len());
        params.member("level", &level);
        if let Some(logger) = logger {
            params.member("logger", logger);
        }
        params.raw("data", data);
        self.notify(about, Method::LogMessage, Some(&params.finish()));
    }
}
