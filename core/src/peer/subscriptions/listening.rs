//! Subscriptions since 2026-07-28: one long-running request each, repeated when it breaks.

use std::time::{Duration, Instant};

use super::{Interests, Output, Purpose, State, SubscriptionKey, Subscriptions};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Method, Raw, SubscriptionFilter, SubscriptionsListenRequestParams, json},
    session::client::RequestKey,
};

/// The delay before a broken subscription is re-established; it doubles with each attempt.
const MIN_WAIT: Duration = Duration::from_millis(500);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The maximum number of consecutive failed attempts, which take about three minutes.
const MAX_ATTEMPTS: u32 = 10;
/// A subscription that lived this long resets the number of failed attempts.
const MIN_SUBSCRIPTION_LIFETIME: Duration = Duration::from_secs(5);

impl Subscriptions {
    pub(super) fn listen(
        &mut self,
        now: Instant,
        key: SubscriptionKey,
        interests: &Interests,
        timeout: Option<Duration>,
    ) -> State {
        let params =
            SubscriptionsListenRequestParams { notifications: interests.filter(), meta: None };
        let params = json::to_raw(&params).get().to_owned();
        let request = self.request(Purpose::Listen(key), Method::Listen, params, None);
        State::Asking { request, due: timeout.and_then(|timeout| now.checked_add(timeout)) }
    }

    pub(super) fn listen_again(&mut self, now: Instant, key: SubscriptionKey) {
        let Some(entry) = self.open.get(&key) else { return };
        let (interests, timeout) = (entry.interests.clone(), entry.settings.timeout);
        let state = self.listen(now, key, &interests, timeout);
        if let Some(entry) = self.open.get_mut(&key) {
            entry.state = state;
        }
    }

    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        request: RequestKey,
        kept: &SubscriptionFilter,
    ) {
        let Some(Purpose::Listen(key)) = self.requests.get(&request) else { return };
        let key = *key;
        let Some(entry) = self.open.get_mut(&key) else { return };
        if let Some(left_out) = entry.interests.left_out(kept) {
            let message = format!(
                "the server does not notify {left_out}: it did not acknowledge that part of the subscription"
            );
            return self.end(key, Some(Error::new(ErrorKind::Unsupported, message)));
        }
        if matches!(entry.state, State::Asking { .. }) {
            entry.state = State::Listening { request, since: now };
            self.opened(key);
        }
    }

    pub(super) fn listen_ended(
        &mut self,
        now: Instant,
        key: SubscriptionKey,
        outcome: Result<Raw, Error>,
    ) {
        let Some(entry) = self.open.get_mut(&key) else { return };
        if let State::Listening { since, .. } = entry.state
            && now.saturating_duration_since(since) >= MIN_SUBSCRIPTION_LIFETIME
        {
            entry.attempts = 0;
        }
        match outcome {
            Err(error) => self.failed(now, key, error),
            Ok(_) if entry.settings.outlives_end => {
                let message = "the server ended the subscription";
                self.failed(now, key, Error::new(ErrorKind::Lost, message));
            }
            Ok(_) => {
                if !entry.is_open {
                    self.outputs.push_back(Output::Opened(key));
                }
                self.end(key, None);
            }
        }
    }

    /// Schedules another attempt, or ends the subscription if the error is permanent or the attempts are used up.
    pub(super) fn failed(&mut self, now: Instant, key: SubscriptionKey, mut error: Error) {
        let Some(entry) = self.open.get_mut(&key) else { return };
        let may_pass =
            matches!(error.kind, ErrorKind::Lost | ErrorKind::Connect | ErrorKind::Timeout)
                || (entry.settings.outlives_end && error.kind == ErrorKind::Cancelled);
        if !may_pass || !(entry.is_open || entry.settings.outlives_end) {
            return self.end(key, Some(error));
        }
        if entry.attempts >= MAX_ATTEMPTS {
            error.message = format!(
                "the subscription failed and could not be re-established: {}",
                error.message
            );
            return self.end(key, Some(error));
        }
        tracing::debug!(%error, attempts = entry.attempts, "a subscription failed and will be re-established");
        let wait = MIN_WAIT.saturating_mul(1 << entry.attempts).min(MAX_WAIT);
        entry.attempts += 1;
        entry.state = State::Broken { until: now + wait };
    }
}
