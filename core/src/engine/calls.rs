//! Calls under way: the router, handlers that run, tools that may run only so many at once, and questions on the way.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use super::{
    Effect, Run, Start,
    call_event::Upshot,
    concurrency::{Gates, Ready},
    links::Links,
    notifications::Listeners,
    parking::Parking,
    read_cache::{self, Cache},
    request_state::{Binding, Opened},
    rounds::{Outcome, Rounds, may_return_questions},
    running::{Kept, Running, RunningCalls},
    sealing::Sealing,
    test_mode::TestMode,
    visibility::Judging,
};
use crate::{
    error::Fault,
    protocol::{Inputs, Method, Principal, Question, Raw, Request, Response},
    router::{
        self, Components, Dispatch, Failure, Job, Reply, RequestScope, Resolution, ResultBuilder,
        RoundLimits, Visibility,
    },
    session::{
        CallId,
        asking::{Answers, AskId, Journal},
        server::{Call, CallContext, ListKind},
    },
};

/// Bytes of unanswered requests at which reading should pause.
pub(crate) const MAX_IN_FLIGHT_BYTES: usize = 64 * 1024 * 1024;
/// Running handlers of notifications at which reading should pause.
pub(crate) const MAX_LISTENERS: usize = 1_000;
/// What was told once and is remembered, so that it is not told again.
const MAX_TOLD: usize = 100;

#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) components: Arc<Components>,
    pub(crate) effects: VecDeque<Effect>,
    /// What has to be said to requests other than the one that is being handled.
    pub(crate) replies: VecDeque<(CallId, Result<Response, Fault>)>,
    pub(crate) running: RunningCalls,
    pub(crate) gates: Gates,
    pub(crate) rounds: Rounds,
    pub(crate) parking: Parking,
    pub(crate) links: Links,
    pub(crate) listeners: Listeners,
    pub(crate) sealing: Sealing,
    pub(crate) cache: Cache,
    pub(crate) judging: Judging,
    test_mode: Option<TestMode>,
    references: u32,
    told: HashSet<String>,
}

impl Calls {
    pub(crate) fn new(components: Arc<Components>, start: &Start) -> Self {
        Self {
            sealing: Sealing::new(&components.server.request_state_keys, start),
            components,
            effects: VecDeque::new(),
            replies: VecDeque::new(),
            running: RunningCalls::default(),
            gates: Gates::default(),
            rounds: Rounds::default(),
            parking: Parking::default(),
            links: Links::default(),
            listeners: Listeners::default(),
            cache: Cache::default(),
            judging: Judging::default(),
            test_mode: start.test_mode,
            references: 0,
            told: HashSet::new(),
        }
    }

    pub(crate) fn limits(&self) -> RoundLimits {
        let limits = self.components.server.rounds;
        self.test_mode.map_or(limits, |it| it.limits(limits))
    }

    /// A question as it goes out in a request of its own.
    pub(crate) fn as_request(&self, ask: AskId, question: Question) -> (AskId, Method, Raw) {
        let question = match self.test_mode {
            None => question,
            Some(_) => TestMode::named(question),
        };
        (ask, question.method, question.params)
    }

    pub(crate) fn begin_seeing(
        &mut self,
        now: Instant,
        call: Call,
        visibility: &Visibility,
    ) -> Upshot {
        let Call { request, mut context, raw_params } = call;
        let is_answered = read_cache::brings_answers(&request);
        let round = match self.opened(now, &request, context.principal.as_deref()) {
            Ok(Opened { answers, round }) => {
                context.answers = answers;
                round
            }
            Err(fault) => return Upshot::Answered(Err(fault)),
        };
        let kept = can_be_asked(&context).then(|| request.clone());
        let seeing = RequestScope {
            visibility,
            principal: context.principal.as_deref(),
            headers: context.http.as_deref().map(|it| &it.headers),
            checks_headers: context.checks_headers,
            cursors: self.sealing.keys(),
            raw_params: raw_params.as_ref(),
        };
        match router::dispatch(&self.components, request, seeing) {
            Dispatch::Answer(answer) => Upshot::Answered(answer),
            Dispatch::Listen(filter) => Upshot::Listening(filter),
            Dispatch::Run(job) => {
                if let Some(round) = round.filter(|it| self.parking.suits(*it, &job))
                    && let Some(begun) = self.go_on(now, round, &job, &context)
                {
                    return begun;
                }
                let kept = kept.map(|request| {
                    Box::new(Kept {
                        handler_call: context.call,
                        request,
                        handler: Arc::clone(&job.handler),
                        input: job.input.clone(),
                        middleware_frame: job.middleware_frame.clone(),
                        context: context.clone(),
                        recorded: Journal::default(),
                        brought: Answers::default(),
                        asked: Vec::new(),
                        questions: 0,
                        sent: Vec::new(),
                        round: None,
                    })
                });
                let ready = Ready::Start(job, context, kept);
                if !is_answered {
                    return self.admit_read(now, ready);
                }
                self.admit(now, ready);
                Upshot::Nothing
            }
        }
    }

    /// A handler is over. Gives the call that this is about now.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        handler: CallId,
        outcome: Result<Reply, Failure>,
    ) -> (CallId, Upshot) {
        // Its own side stopped it: when the answers come, it is run again.
        if matches!(outcome, Err(Failure::Cancelled)) && self.parking.abandon(handler) {
            return (handler, Upshot::Nothing);
        }
        if let Some(parked) = self.parking.get_mut(handler) {
            parked.outcome = Some(match outcome {
                Ok(Reply::Questions(questions)) => {
                    let may = may_return_questions(&parked.running.result_builder);
                    may.map(|()| Reply::Questions(questions))
                }
                outcome => outcome,
            });
            return (handler, Upshot::Nothing);
        }
        self.skip_line(handler);
        let call = self.links.end(handler);
        let outcome = match self.judged(now, call, outcome) {
            Ok(upshot) => return (call, upshot),
            Err(outcome) => outcome,
        };
        let outcome = match outcome {
            Ok(Reply::Questions(questions)) => {
                match self
                    .running
                    .get(call)
                    .map_or(Ok(()), |it| may_return_questions(&it.result_builder))
                {
                    Ok(()) => return (call, self.ask_back(now, call, &questions)),
                    Err(failure) => Err(failure),
                }
            }
            outcome => outcome,
        };
        let Some(running) = self.take_running(call) else { return (call, Upshot::Nothing) };
        let answer = match outcome.and_then(|reply| running.result_builder.resolve(reply)) {
            Ok(Resolution::Answer(answer)) => answer,
            Ok(Resolution::Listen(filter)) => {
                self.leave(now, running.gate);
                return (call, Upshot::Listening(filter));
            }
            Err(failure) => Err(self.fault(&running.result_builder, failure)),
        };
        self.check_meta(&running.result_builder, &answer);
        self.conclude(&running, &answer);
        self.share(now, call, &answer);
        self.leave(now, running.gate);
        (call, Upshot::Answered(answer))
    }

    /// A question was answered: some handler goes on, unless the whole call has come to its end with this.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) -> Upshot {
        let kept = self.running.kept(call);
        match self.rounds.answered(call, ask, outcome, kept) {
            Outcome::Elsewhere(outcome) => {
                self.listeners.answered(call, ask);
                match self.record(call, ask, outcome.as_ref().ok()) {
                    true => self.hear(now, call, ask, outcome),
                    false => self.effects.push_back(Effect::Answered { call, ask, outcome }),
                }
                Upshot::Nothing
            }
            Outcome::Waiting => Upshot::Nothing,
            Outcome::Complete(run) => {
                self.run_again(now, call, run);
                Upshot::Nothing
            }
            Outcome::Failed(fault) => {
                let Some(running) = self.running.remove(call) else { return Upshot::Nothing };
                self.leave(now, running.gate);
                Upshot::Answered(Err(fault))
            }
        }
    }

    /// What the server offers from now on, and which lists that changes.
    pub(crate) fn set_components(&mut self, components: Arc<Components>, changed: &[ListKind]) {
        if changed.contains(&ListKind::Resources) {
            self.cache.clear();
        }
        self.components = components;
    }

    /// Nobody waits for this call any more.
    pub(crate) fn cancel(&mut self, now: Instant, call: CallId) {
        if self.judging.forget(call) {
            return self.effects.push_back(Effect::Cancel(call));
        }
        if self.leave_read(now, call) {
            return;
        }
        self.rounds.forget(call);
        if self.parking.leave(call) {
            return;
        }
        match self.take_running(call) {
            Some(running) => self.give_up(now, call, running),
            None => {
                if let Some(Ready::Resume(parked, _)) = self.gates.forget(call) {
                    self.give_up_turn(now, parked);
                }
            }
        }
    }

    /// Takes out the next call that ran out of time, and stops it.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(CallId, Fault)> {
        for handler in self.parking.expire(now) {
            self.effects.push_back(Effect::Cancel(handler));
        }
        self.expire_listeners(now);
        let (call, running) = self.running.expired(now)?;
        self.rounds.forget(call);
        let failure = match running.pause {
            Some(_) => Failure::Unanswered(self.limits().park_ttl.as_secs_f64()),
            None => Failure::TimedOut(running.timeout.map_or(0.0, |it| it.as_secs_f64())),
        };
        let fault = self.fault(&running.result_builder, failure);
        self.effects.push_back(Effect::Cancel(self.links.end_of(call, &running)));
        self.conclude(&running, &Err(fault.clone()));
        self.share(now, call, &Err(fault.clone()));
        self.leave(now, running.gate);
        Some((call, fault))
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let all = [self.running.deadline(), self.parking.deadline(), self.listeners.deadline()];
        all.into_iter().flatten().min()
    }

    /// Handlers that run, or wait in line, and requests that wait for one.
    pub(crate) fn in_flight(&self) -> usize {
        self.running.len()
            + self.gates.len()
            + self.parking.joined()
            + self.cache.joined()
            + self.judging.len()
    }

    /// Of these, those that only an answer of their client's lets go on.
    pub(crate) fn asking(&self) -> usize {
        self.running.asking() + self.rounds.len()
    }

    /// Whether so many bytes are unanswered that a shell should stop reading.
    pub(crate) fn is_full(&self) -> bool {
        self.is_heavy() || self.listeners.len() > MAX_LISTENERS
    }

    /// Whether they are so many bytes.
    pub(crate) fn is_heavy(&self) -> bool {
        let waiting = self.gates.weight() + self.cache.weight() + self.judging.weight();
        let listening = self.listeners.weight();
        self.running.weight() + waiting + listening > MAX_IN_FLIGHT_BYTES
    }

    /// What the client brought back: answers of earlier rounds, and those that came with this request.
    fn opened(
        &mut self,
        now: Instant,
        request: &Request,
        principal: Option<&Principal>,
    ) -> Result<Opened, Fault> {
        let Some(inputs) = request.inputs() else { return Ok(Opened::default()) };
        if let Inputs { responses: None, state: None } = inputs {
            return Ok(Opened::default());
        }
        let Some(binding) = Binding::of(request, principal) else { return Ok(Opened::default()) };
        let limits = &self.limits();
        let opened = self.sealing.open(now, &binding, inputs, limits);
        opened.map_err(|refused| self.refused(refused))
    }

    /// Runs a job now, or when its tool has room.
    pub(crate) fn admit(&mut self, now: Instant, ready: Ready) {
        match ready.limit() {
            None => self.start(now, ready, None),
            Some((name, limit)) => {
                if let Some(ready) = self.gates.enter(&name, limit, ready) {
                    self.start(now, ready, Some(name));
                }
            }
        }
    }

    fn start(&mut self, now: Instant, ready: Ready, gate: Option<String>) {
        let (job, context, kept) = match ready {
            Ready::Start(job, context, kept) => (job, context, kept),
            Ready::Resume(parked, context) => return self.resume(now, *parked, context, gate),
            Ready::GoOn(call) => return self.take_turn(now, call, gate),
        };
        let Job { handler, input, result_builder, timeout, middleware_frame } = job;
        let wire = context.wire();
        let deadline = timeout.and_then(|it| now.checked_add(it));
        let weight = input.len().max(context.weight);
        let pause = None;
        let running =
            Running { result_builder, gate, timeout, deadline, pause, weight, wire, kept };
        self.running.insert(context.call, running);
        self.effects.push_back(Effect::Run(Run {
            handler,
            input,
            context,
            is_notification: false,
            middleware_frame,
        }));
    }

    pub(crate) fn fault(&mut self, result_builder: &ResultBuilder, failure: Failure) -> Fault {
        let failure = failure.checked();
        self.references = self.references.wrapping_add(1);
        let reference = match &failure {
            Failure::Exception { .. } => format!("{}-{:x}", self.sealing.tag(), self.references),
            _ => String::new(),
        };
        let (fault, report) =
            result_builder.fault(failure, self.components.server.debug, &reference);
        self.effects.extend(report.map(|it| Effect::Report(it.text)));
        fault
    }

    /// Tells of keys in a result's `_meta` that the specification has no room for, once for each.
    fn check_meta(&mut self, result_builder: &ResultBuilder, answer: &Result<Response, Fault>) {
        let Some(meta) = answer.as_ref().ok().and_then(Response::meta) else { return };
        for problem in router::meta_problems(&meta) {
            let text = format!("{} answered with _meta: {problem}", result_builder.place());
            if self.told.len() < MAX_TOLD && self.told.insert(text.clone()) {
                self.effects.push_back(Effect::Report(text));
            }
        }
    }

    pub(crate) fn leave(&mut self, now: Instant, gate: Option<String>) {
        if let Some(name) = gate
            && let Some(next) = self.gates.leave(&name)
        {
            self.start(now, next, Some(name));
        }
    }
}

/// Whether the client declared anything that it can be asked. Most have not, and their calls need not be kept.
fn can_be_asked(context: &CallContext) -> bool {
    let declared = context.client.capabilities.as_ref().map_or("", |it| it.get());
    ["elicitation", "sampling", "roots"].iter().any(|it| declared.contains(it))
}
