//! Log messages to the client: the level filter and the rate limit (Logging, "Implementation Considerations").

use std::time::{Duration, Instant};

use super::{About, LogPolicy, ServerSession};
use crate::{
    protocol::{LoggingLevel, Method, Raw, json::ObjectWriter},
    session::InboundKey,
};

/// The burst size of the rate limit, and the period after which one more message is allowed.
const BURST: u32 = 1_000;
const PERIOD: Duration = Duration::from_millis(10);
/// The interval between notices about suppressed messages in a session.
const GATHER: Duration = Duration::from_secs(1);

/// A log message for the client.
#[derive(Clone, Debug)]
pub struct Log {
    pub level: LoggingLevel,
    pub logger: Option<String>,
    /// A JSON value.
    pub data: Raw,
}

/// The rate limiter of a session.
#[derive(Debug)]
pub(super) struct LogFlow {
    left: u32,
    /// The time at which the allowance was last increased.
    since: Option<Instant>,
    /// The suppressed messages of the session.
    suppressed: Option<Suppressed>,
    /// The time of the next notice about them.
    pub(super) due: Option<Instant>,
}

/// Suppressed messages: their number and highest level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suppressed(u64, LoggingLevel);

impl Default for LogFlow {
    fn default() -> Self {
        Self { left: BURST, since: None, suppressed: None, due: None }
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

impl Suppressed {
    /// Returns these messages and one more.
    fn and(before: Option<Self>, level: LoggingLevel) -> Self {
        before.map_or(Self(1, level), |Self(count, highest)| Self(count + 1, highest.max(level)))
    }
}

impl ServerSession {
    /// Sends or suppresses a log message. `call` is the number of a request or of a notification handler. With
    /// `is_lagging`, while the peer does not read, the message is suppressed.
    pub(super) fn send_log(&mut self, now: Instant, call: InboundKey, log: &Log, is_lagging: bool) {
        let (about, policy) = match self.pending.get_mut(call) {
            Some((_, inbound)) => (About::Call(call), inbound.log),
            None if self.listeners.contains(&call) => (About::Peer, LogPolicy::Session),
            None => return,
        };
        let threshold = match policy {
            LogPolicy::Request(threshold) => threshold,
            LogPolicy::Session => self.handshake.level(),
        };
        if threshold.is_none_or(|threshold| log.level < threshold) {
            return;
        }
        if is_lagging || !self.logs.take(now) {
            if let (LogPolicy::Request(_), Some((_, inbound))) =
                (policy, self.pending.get_mut(call))
            {
                inbound.suppressed = Some(Suppressed::and(inbound.suppressed, log.level));
            } else {
                self.logs.suppressed = Some(Suppressed::and(self.logs.suppressed, log.level));
                self.logs.due.get_or_insert(now + GATHER);
            }
            return;
        }
        self.write_log(about, log.level, log.logger.as_deref(), log.data.get());
    }

    /// Notifies the session periodically of suppressed messages.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.logs.due.is_none_or(|due| now < due) {
            return;
        }
        self.logs.due = None;
        let threshold = self.handshake.level();
        if let Some(suppressed) = self.logs.suppressed.take() {
            self.report_suppressed(About::Peer, suppressed, threshold);
        }
    }

    /// Notifies a client of suppressed messages: that of a request before its answer, that of a session periodically.
    pub(super) fn report_suppressed(
        &mut self,
        about: About,
        suppressed: Suppressed,
        threshold: Option<LoggingLevel>,
    ) {
        let Suppressed(count, level) = suppressed;
        if threshold.is_some_and(|threshold| level >= threshold) {
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
