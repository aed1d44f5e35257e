//! Calls that end before their handler: cancelled, expired, or stopped at shutdown.

use std::time::Instant;

use super::{
    CallEvent, Delivery, Effect, Engine,
    call::Call,
    id::{CallId, Origin, RunId},
    state::{JoinedKind, Queued, Running, State},
};
use crate::{router::Failure, session::server::CallContext};

impl Engine {
    /// Ends a call whose request was cancelled, or whose connection closed.
    pub(crate) fn cancel(&mut self, now: Instant, id: CallId) {
        // The answer with its questions is not delivered yet, so nobody can bring answers.
        if let Some(run) = self.remove_suspended(id) {
            return self.stop(run);
        }
        let Some(call) = self.calls.remove(id) else { return };
        let Call { weight, deadline, .. } = call;
        match call.state {
            State::AwaitingHost(ticket, _) => self.cancel_host(ticket),
            State::Notified(notified) => self.stop(notified.run),
            State::Routed(routed) => self.stop(routed.run),
            State::Joined(joined) => {
                self.calls.update_running(joined.leader, |running| {
                    running.joined.retain(|call| *call != id);
                });
            }
            State::Running(running) => self.give_up(now, id, (weight, deadline), running),
            State::Suspended(suspended) => {
                self.give_up(now, id, (weight, None), suspended.running);
            }
            State::Queued(queued) => match *queued {
                Queued::Start(start) => {
                    if let Some((tool, _)) = start.job.result_builder.concurrency() {
                        self.concurrency.forget(&tool, id);
                    }
                }
                Queued::Answered(suspended) => {
                    self.leave_line(id, &suspended.running);
                    self.give_up(now, id, (weight, None), suspended.running);
                }
                Queued::Resumed(mut suspended, _) => {
                    self.leave_line(id, &suspended.running);
                    match self.promote_round(&mut suspended.running) {
                        Some((next, context)) => {
                            self.admit_resumed(now, next, weight, suspended, context);
                        }
                        None => self.end(&suspended.running),
                    }
                }
            },
        }
    }

    /// Ends the next call whose deadline has come. Returns `None` if no deadline has come.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Delivery> {
        while let Some(id) = self.calls.expired(now) {
            match &self.calls.get(id)?.state {
                State::Notified(_) => self.expire_questions(now, id),
                State::AwaitingHost(..) => {
                    if let Some(delivery) = self.host_expired(now, id) {
                        return Some(delivery);
                    }
                }
                State::Suspended(suspended) if suspended.has_answered() => {
                    if let Some(run) = self.remove_suspended(id) {
                        self.stop(run);
                    }
                }
                state => {
                    let is_waiting = matches!(state, State::Suspended(_));
                    if let Some((origin, running)) = self.take_running(id) {
                        return Some(self.time_out(now, origin, running, is_waiting));
                    }
                }
            }
        }
        None
    }

    /// Stops handlers that wait for a later request, because none will be accepted.
    pub(crate) fn stop_suspended(&mut self) {
        self.is_stopping = true;
        for call in self.rounds.waiting() {
            if let Some(run) = self.remove_suspended(call) {
                self.stop(run);
            }
        }
    }

    /// Stops a handler, if it has not ended.
    pub(super) fn stop(&mut self, run: RunId) {
        if self.calls.end_run(run) {
            self.effects.push_back(Effect::Cancel(run));
        }
    }

    fn time_out(
        &mut self,
        now: Instant,
        origin: Origin,
        mut running: Running,
        is_waiting: bool,
    ) -> Delivery {
        let failure = match is_waiting {
            true => Failure::Unanswered(self.limits().suspended_ttl.as_secs_f64()),
            false => {
                Failure::TimedOut(running.timeout.map_or(0.0, |timeout| timeout.as_secs_f64()))
            }
        };
        let fault = self.fault(&running.result_builder, failure);
        self.stop(running.run);
        let answer = Err(fault);
        self.deliver_answer(now, origin.call, &mut running, &answer);
        self.leave(now, running.slot);
        origin.deliver(CallEvent::Answered(answer))
    }

    /// Ends a handler whose request was cancelled, or binds it to another request that waits for the same answer.
    fn give_up(
        &mut self,
        now: Instant,
        call: CallId,
        (weight, deadline): (usize, Option<Instant>),
        mut running: Running,
    ) {
        self.promote_read(now, call, &mut running);
        if let Some((next, context)) = self.promote_round(&mut running) {
            self.rebind(next.call, &mut running, context);
            self.calls.put(next, weight, deadline, State::Running(running));
        } else {
            self.end(&running);
            self.leave(now, running.slot);
        }
    }

    /// Removes one of the requests that joined a handler's round, for the handler to continue with; the others join it.
    fn promote_round(&mut self, running: &mut Running) -> Option<(Origin, CallContext)> {
        let (next, context) = loop {
            let id = running.joined.pop()?;
            let Some(entry) = self.calls.remove(id) else { continue };
            let origin = entry.origin(id);
            if let State::Joined(joined) = entry.state
                && let JoinedKind::Round(context) = joined.kind
            {
                break (origin, context);
            }
        };
        for other in &running.joined {
            self.calls.update(*other, |call| {
                if let State::Joined(joined) = &mut call.state {
                    joined.leader = next.call;
                }
            });
        }
        if let Some(round) = running.replay.as_ref().and_then(|replay| replay.round) {
            self.rounds.claim(round, next.call);
        }
        self.calls.rebind(running.run, next.call);
        Some((next, context))
    }

    /// Stops a handler whose request was cancelled.
    fn end(&mut self, running: &Running) {
        if let Some(round) = running.replay.as_ref().and_then(|replay| replay.round) {
            self.rounds.forget(round);
        }
        self.stop(running.run);
    }
}
