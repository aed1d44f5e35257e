//! Requests that touch offers which not everybody sees: the shell's judge is asked first.

use std::time::Instant;

use super::{Effect, Run, call_event::Upshot, calls::Calls};
use crate::{
    router::{Failure, Reply, UnresolvedComponents, Visibility},
    session::{CallId, CallMap, server::Call},
};

/// Requests that wait for the judge.
#[derive(Debug, Default)]
pub(crate) struct Judging {
    calls: CallMap<(Call, UnresolvedComponents)>,
    weight: usize,
}

impl Calls {
    /// Begins what a request asks for, as soon as it is known what there is for whoever sent it.
    pub(crate) fn begin(&mut self, now: Instant, call: Call) -> Upshot {
        let Some(unresolved) = self.components.unresolved(&call.request) else {
            return self.begin_seeing(now, call, &Visibility::public());
        };
        let Some(judge) = self.components.visibility_filter().cloned() else {
            return self.begin_seeing(now, call, &Visibility::public());
        };
        self.effects.push_back(Effect::Run(Run {
            handler: judge,
            input: unresolved.question(call.context.principal.as_deref()),
            context: call.context.clone(),
            is_notification: false,
            middleware_frame: None,
        }));
        self.judging.weight += call.context.weight;
        self.judging.calls.insert(call.context.call, (call, unresolved));
        Upshot::Nothing
    }

    /// Gives what comes of a request, if it was for this that the judge was asked.
    pub(crate) fn judged(
        &mut self,
        now: Instant,
        id: CallId,
        outcome: Result<Reply, Failure>,
    ) -> Result<Upshot, Result<Reply, Failure>> {
        let Some((call, unresolved)) = self.judging.take(id) else { return Err(outcome) };
        let verdict = match outcome {
            Ok(verdict) => Some(verdict),
            Err(failure) => {
                let text = format!("who sees what could not be found out: {failure:?}");
                self.effects.push_back(Effect::Report(text));
                None
            }
        };
        let visibility = unresolved.resolved(verdict);
        Ok(self.begin_seeing(now, call, &visibility))
    }
}

impl Judging {
    /// Nobody waits for this call any more. Whether it waited for the judge.
    pub(crate) fn forget(&mut self, call: CallId) -> bool {
        self.take(call).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Bytes of input that wait.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn take(&mut self, call: CallId) -> Option<(Call, UnresolvedComponents)> {
        if self.calls.is_empty() {
            return None;
        }
        let taken = self.calls.remove(&call)?;
        self.weight -= taken.0.context.weight;
        Some(taken)
    }
}
