//! Requests that touch components which not everybody sees: the shell's visibility filter is asked first.

use std::time::{Duration, Instant};

use super::{
    Engine,
    call_event::{CallEvent, Delivery},
    id::{CallId, Origin},
    state::{AwaitingHost, State},
};
use crate::router::{Failure, Reply};

/// How long the filter may take. After that everything in question is hidden.
pub(super) const FILTER_TIMEOUT: Duration = Duration::from_secs(30);

impl<H: Clone> Engine<H> {
    /// Goes on with a request for which the filter has answered. Fails closed: what it does not name stays hidden.
    pub(super) fn filtered(
        &mut self,
        now: Instant,
        id: CallId,
        outcome: Result<Reply, Failure>,
    ) -> Option<Delivery> {
        let entry = self.calls.remove(id)?;
        let State::AwaitingHost(awaiting) = entry.state else { return None };
        let AwaitingHost { run, call, unresolved } = *awaiting;
        self.calls.end_run(run);
        let verdict = match outcome {
            Ok(verdict) => Some(verdict),
            Err(failure) => {
                self.report(format!("the visibility filter failed: {failure:?}"));
                None
            }
        };
        let visibility = unresolved.resolved(verdict);
        let (peer, key) = (entry.peer, entry.key);
        let event = self.begin_visible(now, Origin { call: id, peer, key }, call, &visibility);
        (!matches!(event, CallEvent::Nothing)).then_some(Delivery { call: id, peer, key, event })
    }

    /// Stops a filter whose time is over, and goes on as if it had named nothing.
    pub(super) fn filter_expired(&mut self, now: Instant, id: CallId) -> Option<Delivery> {
        let State::AwaitingHost(awaiting) = &self.calls.get(id)?.state else { return None };
        self.stop(awaiting.run);
        self.filtered(now, id, Err(Failure::TimedOut(FILTER_TIMEOUT.as_secs_f64())))
    }
}
