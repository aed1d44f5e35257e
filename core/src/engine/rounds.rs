//! Handlers that wait for answers in a later request (Multi Round-Trip Requests). The client's state contains the name of
//! the round, by which the handler is found.
//!
//! Their number is bounded. A handler that is evicted is replayed when the answers arrive, so a handler that forbids replay
//! is never evicted.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use super::{
    CallEvent, Effect, Engine,
    handler_event::Finished,
    id::{CallId, Origin, RunId},
    questions::{journal, nobody_to_ask},
    request_state::{Binding, Refused, RoundId, Sealed},
    state::{Joined, JoinedKind, Queued, ReplayState, Round, Running, State, Suspended, Wait},
};
use crate::{
    error::{Fault, option_name},
    protocol::{Principal, Question, Request, Response},
    router::{Job, Reply, Resolution, RoundLimits},
    session::{asking::Journal, server::CallContext},
};

/// Bytes that all suspended handlers may hold.
pub(crate) const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Bytes counted for each suspended handler in addition to its input and questions.
const BASE_WEIGHT: usize = 4 * 1024;
/// The number of requests that may join one run.
const MAX_JOINED: usize = 16;
/// The expiry of a handler whose time limit overflows the clock: a century.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The names of rounds, and the order in which handlers were suspended.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The call that waits for a round's answers or runs with them.
    calls: HashMap<RoundId, CallId>,
    /// The calls that wait, the oldest first.
    ages: BTreeMap<u64, CallId>,
    next: u64,
}

impl Rounds {
    /// Adds a call that waits. Returns its place in the order.
    fn add(&mut self, round: RoundId, call: CallId) -> u64 {
        let age = self.next;
        self.next += 1;
        self.calls.insert(round, call);
        self.ages.insert(age, call);
        age
    }

    /// Sets the call that continues with the answers of a round.
    pub(super) fn claim(&mut self, round: RoundId, call: CallId) {
        self.calls.insert(round, call);
    }

    /// Returns the call that waits for this round's answers or runs with them.
    pub(super) fn call(&self, round: RoundId) -> Option<CallId> {
        self.calls.get(&round).copied()
    }

    pub(super) fn forget(&mut self, round: RoundId) {
        self.calls.remove(&round);
    }

    /// Returns the calls whose handlers wait.
    pub(super) fn waiting(&self) -> Vec<CallId> {
        self.ages.values().copied().collect()
    }

    /// Returns whether no name is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.ages.is_empty()
    }
}

impl Engine {
    /// Continues the handler that waits for this round's answers. Returns `None` if the request has to run its handler from
    /// the start.
    pub(super) fn continue_round(
        &mut self,
        now: Instant,
        origin: Origin,
        id: RoundId,
        job: &Job,
        context: &CallContext,
    ) -> Option<CallEvent> {
        let refuse = |engine: &mut Self, why: &str| {
            Some(CallEvent::Answered(Err(engine.refused(Refused::new(why)))))
        };
        let leader = self.rounds.call(id);
        let Some((leader, call)) =
            leader.and_then(|leader| Some((leader, self.calls.get(leader)?)))
        else {
            return match job.result_builder.forbids_replay() {
                true => refuse(self, "its handler is gone, and must not run again"),
                false => None,
            };
        };
        if let State::Suspended(suspended) = &call.state {
            // Middleware around an answer of the core's is not what waits for a registered handler's questions.
            let waiting = &suspended.running.result_builder;
            if waiting.runs_handler() != job.result_builder.runs_handler() {
                return None;
            }
            let weight = call.weight;
            let suspended = self.take_suspended(leader)?;
            self.calls.rebind(suspended.running.run, origin.call);
            self.rounds.claim(id, origin.call);
            return Some(self.bring(now, origin, weight, suspended, context));
        }
        let joined = self.calls.update_running(leader, |running| {
            let has_room = running.joined.len() < MAX_JOINED;
            if has_room {
                running.joined.push(origin.call);
            }
            has_room
        });
        if joined != Some(true) {
            return refuse(self, "too many requests with the same state wait already");
        }
        let kind = JoinedKind::Round(context.clone());
        let state = State::Joined(Box::new(Joined { leader, kind }));
        self.calls.put(origin, context.weight, None, state);
        Some(CallEvent::Nothing)
    }

    /// Returns the number of the process in which the handler waits that a request brings answers to.
    pub(crate) fn process_of_round(
        &self,
        now: Instant,
        request: &Request,
        principal: Option<&Principal>,
    ) -> Option<u64> {
        self.round_of(now, request, principal).map(|round| round.process())
    }

    /// Returns whether the handler that a request brings answers to waits here, or runs with them.
    pub(crate) fn has_round(
        &self,
        now: Instant,
        request: &Request,
        principal: Option<&Principal>,
    ) -> bool {
        let round = self.round_of(now, request, principal);
        round.is_some_and(|round| self.rounds.call(round).is_some())
    }

    fn round_of(
        &self,
        now: Instant,
        request: &Request,
        principal: Option<&Principal>,
    ) -> Option<RoundId> {
        let inputs = request.inputs().filter(|inputs| inputs.state.is_some())?;
        let binding = Binding::from_request(request, principal)?;
        self.sealing.open(now, &binding, inputs, &self.limits()).ok()?.round
    }

    /// Answers this call with the handler's questions and suspends the handler until the answers arrive. `blocks`: it holds
    /// a thread while it waits.
    pub(super) fn wait_for_round(&mut self, now: Instant, call: CallId, blocks: bool) {
        let Some(entry) = self.calls.get(call) else { return };
        let (weight, deadline) = (entry.weight, entry.deadline);
        let Some((origin, mut running)) = self.take_running(call) else { return };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let slot = running.slot.take();
        let open = running.replay.as_mut().map(|replay| std::mem::take(&mut replay.asked));
        let round = Round { open: open.unwrap_or_default(), blocks, ..Round::default() };
        let answer = self.send_round(now, origin, weight, (running, left), round);
        self.leave(now, slot);
        self.answer_late(origin, answer);
    }

    /// Resumes a handler that has its answers, or queues it if its tool is at its limit.
    pub(super) fn admit_resumed(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        suspended: Suspended,
        context: CallContext,
    ) {
        match suspended.running.result_builder.concurrency() {
            None => self.resume(now, origin, weight, suspended, context, None),
            Some((tool, limit)) => {
                if self.concurrency.enter(&tool, limit, origin.call) {
                    return self.resume(now, origin, weight, suspended, context, Some(tool));
                }
                let queued = Queued::Resumed(suspended, context);
                self.calls.put(origin, weight, None, State::Queued(Box::new(queued)));
            }
        }
    }

    /// Resumes a suspended handler on behalf of this request.
    pub(super) fn resume(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        suspended: Suspended,
        context: CallContext,
        slot: Option<String>,
    ) {
        let Suspended { mut running, left, wait } = suspended;
        let (run, call) = (running.run, origin.call);
        running.slot = slot;
        let deadline = left.and_then(|left| now.checked_add(left));
        self.rebind(call, &mut running, context);
        self.calls.put(origin, weight, deadline, State::Running(running));
        let Wait::Round(Round { answered, later, is_ready, blocks, .. }) = wait else { return };
        for (ask, answer) in answered {
            self.answer(run, ask, answer);
        }
        for (ask, question) in later {
            // A revision with rounds carries questions in results.
            let outside = self.ask(now, call, run, ask, question);
            debug_assert!(!matches!(outside, CallEvent::Asks(_)));
        }
        if is_ready {
            self.wait(now, call, blocks);
        }
    }

    /// Binds a handler to another request.
    pub(super) fn rebind(&mut self, call: CallId, running: &mut Running, context: CallContext) {
        let Some(replay) = running.replay.as_mut() else { return };
        replay.brought = context.answers.clone();
        replay.go_on_for(context);
        self.calls.rebind(running.run, call);
        let context = replay.context.clone();
        self.effects.push_back(Effect::Resume { run: running.run, context: Box::new(context) });
    }

    /// Removes a suspended handler. Returns its run.
    pub(super) fn remove_suspended(&mut self, call: CallId) -> Option<RunId> {
        let suspended = self.take_suspended(call)?;
        if let Wait::Round(round) = &suspended.wait {
            self.rounds.forget(round.id);
        }
        Some(suspended.running.run)
    }

    /// Seals the state that the client of a call sends back with its answers.
    pub(super) fn sealed_state(
        &mut self,
        now: Instant,
        replay: &ReplayState,
        contents: (Option<RoundId>, Journal),
    ) -> Option<String> {
        let limits = self.limits();
        let binding = Binding::from_request(&replay.request, replay.context.principal.as_deref())?;
        let name = binding.name();
        let Sealed { state, is_cut } = self.sealing.seal(now, binding, contents, &limits)?;
        if is_cut {
            let (limit, option) = (limits.max_state, option_name("max_request_state"));
            self.report(format!(
                "what {name} was answered and did is longer than {limit} bytes (option {option}), so its client \
                 does not carry it: should the handler have to run again, it asks and does all of it once more"
            ));
        }
        Some(state)
    }

    /// Returns whether one more handler could be suspended, possibly by evicting another. `blocks`: it holds a thread.
    pub(super) fn has_room(&self, blocks: bool) -> bool {
        let (limits, load) = (self.limits(), self.load());
        let is_free = load.suspended < limits.suspended_limit
            && load.suspended_bytes < MAX_BYTES
            && (!blocks || load.suspended_threads < limits.suspended_threads);
        is_free || (limits.suspended_limit > 0 && self.oldest(blocks).is_some())
    }

    /// Suspends a handler and returns the answer with its open questions.
    fn send_round(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        (mut running, left): (Running, Option<Duration>),
        round: Round,
    ) -> Result<Response, Fault> {
        let requests: Vec<_> = round.open.iter().map(|(_, question)| question.clone()).collect();
        let id = self.sealing.round();
        let Some(replay) = running.replay.as_ref() else { return Err(nobody_to_ask()) };
        let journal = journal(replay).asking(&requests);
        let state = self.sealed_state(now, replay, (Some(id), journal));
        let answer = Ok(Response::InputRequired { requests, state });
        self.deliver_answer(now, origin.call, &mut running, &answer);
        let age = self.rounds.add(id, origin.call);
        let blocks = round.blocks;
        let round = Round { id, age, weight: weight_of(&running, &round), ..round };
        let limits = self.limits();
        let until = now.checked_add(limits.suspended_ttl).unwrap_or_else(|| now + FOR_EVER);
        let suspended = Suspended { running, left, wait: Wait::Round(round) };
        self.calls.put(origin, weight, Some(until), State::Suspended(Box::new(suspended)));
        self.make_room(&limits, blocks);
        answer
    }

    /// Evicts the oldest handlers until the others are within the limits.
    fn make_room(&mut self, limits: &RoundLimits, blocks: bool) {
        loop {
            let load = self.load();
            let too_many =
                load.suspended > limits.suspended_limit || load.suspended_bytes > MAX_BYTES;
            let too_many_threads = blocks && load.suspended_threads > limits.suspended_threads;
            if !too_many && !too_many_threads {
                return;
            }
            let Some(call) = self.oldest(too_many_threads && !too_many) else { return };
            if let Some(run) = self.remove_suspended(call) {
                self.stop(run);
            }
        }
    }

    /// Returns the oldest handler that may be replayed; with `blocking`, of those that hold a thread.
    fn oldest(&self, blocking: bool) -> Option<CallId> {
        let may_leave = |call: &&CallId| match self.calls.get(**call).map(|call| &call.state) {
            Some(State::Suspended(suspended)) => match &suspended.wait {
                Wait::Round(round) => {
                    !suspended.running.result_builder.forbids_replay()
                        && (!blocking || round.blocks)
                }
                Wait::Requests(_) => false,
            },
            _ => false,
        };
        self.rounds.ages.values().find(may_leave).copied()
    }

    /// Gives a handler the answers of a request. Missing and invalid ones are asked for again.
    fn bring(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        suspended: Suspended,
        context: &CallContext,
    ) -> CallEvent {
        let Suspended { mut running, left, wait: Wait::Round(mut round) } = suspended else {
            return CallEvent::Nothing;
        };
        let Some(replay) = running.replay.as_mut() else {
            return CallEvent::Answered(Err(nobody_to_ask()));
        };
        replay.round = Some(round.id);
        for (ask, question) in std::mem::take(&mut round.open) {
            let Question { key, method, params } = &question;
            if let Some(answer) = context.answers.get(key, *method, params.get()) {
                replay.recorded.answered(&question, answer.clone());
                round.answered.push((ask, Ok(answer)));
                continue;
            }
            let problem = context.answers.problem(&question);
            match problem.map_or(Ok(()), |problem| replay.refuse(&question, problem)) {
                Ok(()) => round.open.push((ask, question)),
                Err(fault) => round.answered.push((ask, Err(fault))),
            }
        }
        match round.outcome.take() {
            Some(Ok(Finished::Reply(Reply::Questions(questions)))) => {
                replay.go_on_for(context.clone());
                self.calls.put(origin, weight, None, State::Running(running));
                let asked = self.ask_back(now, origin.call, &questions);
                return asked.map_or(CallEvent::Nothing, |delivery| delivery.event);
            }
            Some(outcome) => {
                let builder = &running.result_builder;
                let answer = match outcome.and_then(|finished| finished.resolve(builder)) {
                    Ok(Resolution::Answer(answer)) => answer,
                    Ok(Resolution::Listen(filter)) => return CallEvent::Listening(filter),
                    Err(failure) => Err(self.fault(builder, failure)),
                };
                self.deliver_answer(now, origin.call, &mut running, &answer);
                return CallEvent::Answered(answer);
            }
            None => (),
        }
        if !round.open.is_empty() {
            let answer = self.send_round(now, origin, weight, (running, left), round);
            return CallEvent::Answered(answer);
        }
        let suspended = Suspended { running, left, wait: Wait::Round(round) };
        self.admit_resumed(now, origin, weight, suspended, context.clone());
        CallEvent::Nothing
    }

    /// Removes a handler that waits for a round.
    fn take_suspended(&mut self, call: CallId) -> Option<Suspended> {
        let is_suspended = matches!(
            &self.calls.get(call)?.state,
            State::Suspended(suspended) if suspended.has_answered()
        );
        if !is_suspended {
            return None;
        }
        let State::Suspended(suspended) = self.calls.remove(call)?.state else { return None };
        if let Wait::Round(round) = &suspended.wait {
            self.rounds.ages.remove(&round.age);
        }
        Some(*suspended)
    }
}

impl ReplayState {
    /// Replaces the request that the handler runs for.
    pub(super) fn go_on_for(&mut self, context: CallContext) {
        self.context = CallContext { answers: self.context.answers.clone(), ..context };
    }
}

/// Returns the bytes that a suspended handler holds.
fn weight_of(running: &Running, round: &Round) -> usize {
    let questions: usize = round.open.iter().map(|(_, question)| question.params.get().len()).sum();
    // The request is kept beside the input that was made of it.
    let replay = running.replay.as_ref().map_or(0, |replay| {
        replay.input.len()
            + replay.context.weight.max(replay.input.len())
            + replay.recorded.weight()
    });
    BASE_WEIGHT + questions + replay
}
