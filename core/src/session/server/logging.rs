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
/// How long a session gathers what it was not told.
const GATHER: Duration = Duration::from_secs(1);

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
    /// What a session was not told, whoever wanted to tell it.
    unsaid: Unsaid,
    /// When it is told so.
    due: Option<Instant>,
}

/// Messages that were left out: how many, and the gravest level among them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsaid(u64, Option<LoggingLevel>);

impl Default for LogFlow {
    fn default() -> Self {
        Self { left: BURST, since: None, unsaid: Unsaid::default(), due: None }
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
    /// When [`Input::Tick`](super::Input) is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.logs.due
    }

    /// `call` is a request's, or a listener's to notifications. With `is_lagging`, when the peer does not read, it is
    /// left out.
    pub(super) fn send_log(&mut self, now: Instant, call: CallId, log: &Log, is_lagging: bool) {
        let (about, policy) = match self.pending.get_mut(call) {
            Some((_, inbound)) => (About::Call(call), inbound.log),
            None if self.listeners.contains(&call) => (About::Peer, LogPolicy::Session),
            None => return,
        };
        let threshold = match policy {
            LogPolicy::Request(threshold) => threshold,
            LogPolicy::Session => self.handshake.level(),
        };
        if threshold.is_none_or(|it| log.level < it) {
            return;
        }
        if is_lagging || !self.logs.take(now) {
            if let (LogPolicy::Request(_), Some((_, inbound))) =
                (policy, self.pending.get_mut(call))
            {
                inbound.unsaid.add(log.level);
            } else {
                self.logs.unsaid.add(log.level);
                self.logs.due.get_or_insert(now + GATHER);
            }
            return;
        }
        self.write_log(about, log.level, log.logger.as_deref(), log.data.get());
    }

    /// A session hears now and then what it was not told.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.logs.due.is_none_or(|it| now < it) {
            return;
        }
        self.logs.due = None;
        let unsaid = std::mem::take(&mut self.logs.unsaid);
        let threshold = self.handshake.level();
        self.tell_unsaid(About::Peer, unsaid, threshold);
    }

    /// A request that asked for log messages itself hears before its answer what it was not told.
    pub(super) fn end_log(&mut self, call: CallId) {
        let Some((_, inbound)) = self.pending.get_mut(call) else { return };
        if let LogPolicy::Request(threshold) = inbound.log {
            let unsaid = std::mem::take(&mut inbound.unsaid);
            self.tell_unsaid(About::Call(call), unsaid, threshold);
        }
    }

    fn tell_unsaid(&mut self, about: About, unsaid: Unsaid, threshold: Option<LoggingLevel>) {
        let Unsaid(count, Some(level)) = unsaid else { return };
        if threshold.is_some_and(|it| level >= it) {
            let rate = 1_000 / PERIOD.as_millis();
            let text = format!(
                "{count} log messages were left out: a client gets {BURST} at once, and then {rate} a second as long as it \
                 reads them"
            );
            self.write_log(about, level, None, &format!("\"{text}\""));
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
