//! Which request each handler runs for, and what becomes of it when that is answered or given up.

use std::time::Instant;

use super::{
    Effect, calls::Calls, concurrency::Ready, parking::Parked, request_state::RoundId,
    running::Running,
};
use crate::{
    error::Fault,
    protocol::Response,
    session::{CallId, CallMap, server::CallContext},
};

/// Which request each handler runs for, where it is not the one that began it.
#[derive(Debug, Default)]
pub(crate) struct Links(CallMap<CallId>);

impl Links {
    pub(crate) fn current(&self, handler: CallId) -> CallId {
        if self.0.is_empty() {
            return handler;
        }
        self.0.get(&handler).copied().unwrap_or(handler)
    }

    /// The same, of a handler that is over.
    pub(crate) fn end(&mut self, handler: CallId) -> CallId {
        if self.0.is_empty() {
            return handler;
        }
        self.0.remove(&handler).unwrap_or(handler)
    }

    /// The handler that runs for this request, which is over.
    pub(crate) fn end_of(&mut self, call: CallId, running: &Running) -> CallId {
        let handler = running.kept.as_ref().map_or(call, |it| it.handler_call);
        self.0.remove(&handler);
        handler
    }
}

impl Calls {
    /// From now on a handler runs for this request.
    pub(crate) fn relink(&mut self, handler: CallId, running: &mut Running, context: CallContext) {
        let Some(kept) = running.kept.as_mut() else { return };
        self.links.0.insert(handler, context.call);
        kept.brought = context.answers.clone();
        kept.context = CallContext { answers: kept.context.answers.clone(), ..context };
        let told = CallContext { call: handler, ..kept.context.clone() };
        self.effects.push_back(Effect::Resume { call: handler, context: told });
    }

    /// A handler finished while its request waited in line: it has no need of a turn.
    pub(crate) fn skip_line(&mut self, handler: CallId) {
        let Some((parked, context)) = self.gates.take_resuming(handler) else { return };
        let mut running = parked.running;
        let call = context.call;
        if let Some(kept) = running.kept.as_mut() {
            kept.context = CallContext { answers: kept.context.answers.clone(), ..context };
        }
        self.links.0.insert(handler, call);
        self.running.insert(call, running);
    }

    /// What came of a run is the answer to all requests that wait for it.
    pub(crate) fn conclude(&mut self, running: &Running, answer: &Result<Response, Fault>) {
        let Some(round) = running.kept.as_ref().and_then(|it| it.round) else { return };
        for call in self.parking.release(round) {
            self.replies.push_back((call, answer.clone()));
        }
    }

    /// The request that a handler runs for was given up. Another that waits for the same takes its place.
    pub(crate) fn give_up(&mut self, now: Instant, call: CallId, mut running: Running) {
        let handler = self.links.end_of(call, &running);
        let round = running.kept.as_ref().and_then(|it| it.round);
        if let Some(next) = round.and_then(|it| self.parking.promote(it)) {
            let call = next.call;
            self.relink(handler, &mut running, next);
            self.running.insert(call, running);
            return;
        }
        self.end(handler, round);
        self.leave(now, running.gate);
    }

    /// The same, where it still waited in line.
    pub(crate) fn give_up_turn(&mut self, now: Instant, parked: Box<Parked>) {
        let round = parked.running.kept.as_ref().and_then(|it| it.round);
        if let Some(next) = round.and_then(|it| self.parking.promote(it)) {
            return self.admit(now, Ready::Resume(parked, next));
        }
        self.end(parked.handler, round);
    }

    /// Nobody wants this handler's answer any more.
    fn end(&mut self, handler: CallId, round: Option<RoundId>) {
        if let Some(round) = round {
            self.parking.release(round);
        }
        self.effects.push_back(Effect::Cancel(handler));
    }
}
