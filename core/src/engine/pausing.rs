//! Handlers that wait for answers to requests of ours: neither their time passes meanwhile nor is their place taken, as
//! with those that are parked, and none waits longer than one of these.

use std::time::{Duration, Instant};

use super::{
    Effect, Run,
    calls::Calls,
    concurrency::{self, Ready},
    running::Running,
};
use crate::{
    error::Fault,
    protocol::Raw,
    session::{CallId, asking::AskId},
};

/// What stands still while a call waits for its client.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// What is left of its time.
    left: Option<Duration>,
    /// The last answer is here: it waits in line for its place.
    is_in_line: bool,
    /// What its handler is told when it has that.
    held: Vec<(AskId, Result<Raw, Fault>)>,
    /// Its handler returned the questions, and runs again with the answers.
    again: Option<Run>,
}

impl Calls {
    /// A call's client is asked by requests, and nothing goes on before it answers.
    pub(crate) fn pause(&mut self, now: Instant, call: CallId) {
        let Some(mut running) = self.take_running(call) else { return };
        let time = running.deadline;
        let left = || time.map(|it| it.saturating_duration_since(now));
        let pause = running
            .pause
            .get_or_insert_with(|| Box::new(Pause { left: left(), ..Pause::default() }));
        // It asked again while it was in line.
        pause.is_in_line = false;
        for (ask, outcome) in std::mem::take(&mut pause.held) {
            self.effects.push_back(Effect::Answered { call, ask, outcome });
        }
        running.deadline = now.checked_add(self.limits().park_ttl);
        let gate = running.gate.take();
        self.running.insert(call, running);
        self.leave(now, gate);
    }

    /// What was asked by a request is answered: with the last answer its handler goes on.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) {
        let waits = self.running.get_mut(call).filter(|it| !it.is_asking());
        let Some(pause) = waits.and_then(|it| it.pause.as_deref_mut()) else {
            return self.effects.push_back(Effect::Answered { call, ask, outcome });
        };
        pause.held.push((ask, outcome));
        self.line_up(now, call);
    }

    /// The questions that a handler returned are answered.
    pub(crate) fn run_again(&mut self, now: Instant, call: CallId, run: Run) {
        if let Some(pause) = self.running.get_mut(call).and_then(|it| it.pause.as_deref_mut()) {
            pause.again = Some(run);
            self.line_up(now, call);
        }
    }

    /// Goes on, or waits until its tool has room.
    fn line_up(&mut self, now: Instant, call: CallId) {
        let Some(running) = self.running.get_mut(call) else { return };
        let Some(pause) = running.pause.as_deref_mut().filter(|it| !it.is_in_line) else { return };
        let Some((name, limit)) = concurrency::limit(&running.result_builder) else {
            return self.take_turn(now, call, None);
        };
        if self.gates.enter(&name, limit, Ready::GoOn(call)).is_some() {
            return self.take_turn(now, call, Some(name));
        }
        pause.is_in_line = true;
        // Its client has done its part.
        running.deadline = None;
    }

    /// A call that waited goes on, in its place.
    pub(crate) fn take_turn(&mut self, now: Instant, call: CallId, gate: Option<String>) {
        let Some(mut running) = self.running.remove(call) else { return self.leave(now, gate) };
        let Pause { left, held, again, .. } = *running.pause.take().unwrap_or_default();
        running.deadline = left.and_then(|it| now.checked_add(it));
        running.gate = gate;
        self.running.insert(call, running);
        for (ask, outcome) in held {
            self.effects.push_back(Effect::Answered { call, ask, outcome });
        }
        self.effects.extend(again.map(Effect::Run));
    }

    /// Takes out a call that is over, or begins something else; it waits in line no longer.
    pub(crate) fn take_running(&mut self, call: CallId) -> Option<Running> {
        let running = self.running.remove(call)?;
        if running.pause.as_ref().is_some_and(|it| it.is_in_line) {
            self.gates.forget(call);
        }
        Some(running)
    }
}
