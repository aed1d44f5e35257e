//! Calls under way: the router, handlers that run, tools that may run only so many at once, and questions on the way.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use super::{
    Effect, Run, Start,
    gates::Gates,
    rounds::{Outcome, Rounds},
    running::{Kept, Running, RunningCalls},
    sealing::Sealing,
    state::Binding,
};
use crate::{
    error::Fault,
    protocol::{Inputs, Method, MethodName, Raw, Request, Response, SubscriptionFilter},
    router::{self, Dispatch, Failure, Finish, Job, Offers, Reply},
    session::{
        CallId,
        asking::{self, Answers, AskId, Round},
        server::{Call, CallContext},
    },
};

/// Bytes of unanswered requests at which reading should pause.
const MAX_IN_FLIGHT_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Calls {
    pub(super) offers: Arc<Offers>,
    pub(super) effects: VecDeque<Effect>,
    running: RunningCalls,
    gates: Gates,
    rounds: Rounds,
    sealing: Sealing,
    references: u32,
}

/// What came of a request at once.
#[derive(Debug)]
pub(super) enum Begun {
    Answered(Result<Response, Fault>),
    /// The client listens, to this part of what it asked for.
    Listening(SubscriptionFilter),
    /// A handler runs, or will.
    Started,
}

/// What came of a handler's end.
#[derive(Debug)]
pub(super) enum Finished {
    Answered(Result<Response, Fault>),
    /// These questions go out as requests first; then the handler runs again.
    Asks(Vec<(AskId, Method, Raw)>),
    /// Nobody waits for it any more.
    Forgotten,
}

impl Calls {
    pub(super) fn new(offers: Arc<Offers>, start: &Start) -> Self {
        Self {
            sealing: Sealing::new(&offers.server.request_state_keys, start),
            offers,
            effects: VecDeque::new(),
            running: RunningCalls::default(),
            gates: Gates::default(),
            rounds: Rounds::default(),
            references: 0,
        }
    }

    pub(super) fn begin(&mut self, now: Instant, call: Call) -> Begun {
        let Call { request, mut context } = call;
        match self.answers(now, &request) {
            Ok(answers) => context.answers = answers,
            Err(fault) => return Begun::Answered(Err(fault)),
        }
        let kept = can_be_asked(&context).then(|| request.clone());
        let claims = context.http.as_deref().filter(|_| context.checks_headers);
        match router::dispatch(&self.offers, request, claims.map(|it| &it.headers)) {
            Dispatch::Answer(answer) => Begun::Answered(answer),
            Dispatch::Listen(filter) => Begun::Listening(filter),
            Dispatch::Run(job) => {
                let kept = kept.map(|request| {
                    let (handler, input) = (Arc::clone(&job.handler), job.input.clone());
                    Box::new(Kept { request, handler, input, context: context.clone() })
                });
                self.admit(now, job, context, kept);
                Begun::Started
            }
        }
    }

    pub(super) fn finish(
        &mut self,
        now: Instant,
        call: CallId,
        outcome: Result<Reply, Failure>,
    ) -> Finished {
        let outcome = match outcome {
            Ok(Reply::Questions(questions)) => return self.ask(now, call, &questions),
            outcome => outcome,
        };
        let Some(running) = self.running.remove(call) else { return Finished::Forgotten };
        let answer = outcome.and_then(|reply| running.finish.response(reply));
        let answer = answer.map_err(|failure| self.fault(&running.finish, failure));
        self.leave(now, running.gate);
        Finished::Answered(answer)
    }

    /// A question was answered: some handler goes on, unless the whole call has come to its end with this.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        outcome: Result<Raw, Fault>,
    ) -> Finished {
        match self.rounds.answered(call, ask, outcome) {
            Outcome::Elsewhere(outcome) => {
                self.effects.push_back(Effect::Answered { call, ask, outcome });
                Finished::Forgotten
            }
            Outcome::Waiting => Finished::Forgotten,
            Outcome::Complete(run) => {
                self.running.keep_answers(call, &run.context.answers);
                self.effects.push_back(Effect::Run(run));
                Finished::Forgotten
            }
            Outcome::Failed(fault) => {
                let Some(running) = self.running.remove(call) else { return Finished::Forgotten };
                self.leave(now, running.gate);
                Finished::Answered(Err(fault))
            }
        }
    }

    /// Nobody waits for this call any more.
    pub(super) fn cancel(&mut self, now: Instant, call: CallId) {
        self.rounds.forget(call);
        match self.running.remove(call) {
            Some(running) => {
                self.effects.push_back(Effect::Cancel(call));
                self.leave(now, running.gate);
            }
            None => self.gates.forget(call),
        }
    }

    /// Takes out the next call that ran out of time, and stops it.
    pub(super) fn expire(&mut self, now: Instant) -> Option<(CallId, Fault)> {
        let (call, running) = self.running.expired(now)?;
        self.rounds.forget(call);
        let seconds = running.timeout.map_or(0.0, |it| it.as_secs_f64());
        let fault = self.fault(&running.finish, Failure::TimedOut(seconds));
        self.effects.push_back(Effect::Cancel(call));
        self.leave(now, running.gate);
        Some((call, fault))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.running.deadline()
    }

    /// Handlers that run, or wait in line.
    pub(super) fn in_flight(&self) -> usize {
        self.running.len() + self.gates.len()
    }

    /// Whether so many bytes are unanswered that a shell should stop reading.
    pub(super) fn is_full(&self) -> bool {
        self.running.weight() + self.gates.weight() > MAX_IN_FLIGHT_BYTES
    }

    /// Runs who listens to a notification.
    pub(super) fn notify(&mut self, method: &MethodName, params: Raw, context: CallContext) {
        if let Some(handler) = self.offers.listener(method.as_str()) {
            self.effects.push_back(Effect::Run(Run {
                handler: Arc::clone(handler),
                input: String::from(Box::<str>::from(params)),
                context,
                is_notification: true,
            }));
        }
    }

    /// What the client has answered in earlier rounds, and with this request.
    fn answers(&mut self, now: Instant, request: &Request) -> Result<Answers, Fault> {
        let (Request::CallTool { inputs, .. }
        | Request::ReadResource { inputs, .. }
        | Request::GetPrompt { inputs, .. }) = request
        else {
            return Ok(Answers::default());
        };
        let Inputs { responses: None, state: None } = inputs else {
            let Some(binding) = Binding::of(request, None) else { return Ok(Answers::default()) };
            return self.sealing.open(now, &binding, inputs).map_err(|refused| {
                self.effects.push_back(Effect::Report(refused.report));
                refused.fault
            });
        };
        Ok(Answers::default())
    }

    /// A handler returned questions: they are the answer, or go out as requests.
    fn ask(&mut self, now: Instant, call: CallId, questions: &str) -> Finished {
        let Some(mut running) = self.running.remove(call) else { return Finished::Forgotten };
        let kept = running.kept.take();
        let (answers, capabilities) = match &kept {
            Some(kept) => (kept.context.answers.clone(), kept.context.client.capabilities.as_ref()),
            None => (Answers::default(), None),
        };
        match (asking::round(questions, &answers, capabilities, running.wire), kept) {
            (Err(fault), _) => {
                self.leave(now, running.gate);
                Finished::Answered(Err(fault))
            }
            (Ok(Round::Ask(requests)), kept) => {
                self.leave(now, running.gate);
                let binding = kept.and_then(|it| Binding::of(&it.request, None));
                let journal = answers.journal(&requests);
                let state = binding.and_then(|it| self.sealing.seal(now, it, journal));
                Finished::Answered(Ok(Response::InputRequired { requests, state }))
            }
            (Ok(Round::Request(requests)), Some(kept)) => {
                let asks = self.rounds.begin(call, &kept, requests);
                let deadline = running.timeout.and_then(|it| now.checked_add(it));
                self.running.insert(call, Running { kept: Some(kept), ..running }, deadline);
                Finished::Asks(asks)
            }
            (Ok(Round::Request(_)), None) => {
                self.leave(now, running.gate);
                Finished::Answered(Err(Fault::invalid_params("the client can't be asked")))
            }
        }
    }

    /// Runs a job now, or when its tool has room.
    fn admit(&mut self, now: Instant, job: Job, context: CallContext, kept: Option<Box<Kept>>) {
        let waits = match &job.finish {
            Finish::Tool(offer) => offer.concurrency.map(|limit| (offer.tool.name.clone(), limit)),
            _ => None,
        };
        match waits {
            None => self.start(now, (job, context, kept), None),
            Some((name, limit)) => {
                if let Some(waiting) = self.gates.enter(&name, limit, (job, context, kept)) {
                    self.start(now, waiting, Some(name));
                }
            }
        }
    }

    fn start(
        &mut self,
        now: Instant,
        (job, context, kept): (Job, CallContext, Option<Box<Kept>>),
        gate: Option<String>,
    ) {
        let Job { handler, input, finish, timeout } = job;
        let wire = context.wire();
        self.running.insert(
            context.call,
            Running { finish, gate, timeout, weight: input.len(), wire, kept },
            timeout.and_then(|it| now.checked_add(it)),
        );
        self.effects.push_back(Effect::Run(Run {
            handler,
            input,
            context,
            is_notification: false,
        }));
    }

    fn fault(&mut self, finish: &Finish, failure: Failure) -> Fault {
        self.references = self.references.wrapping_add(1);
        let reference = match &failure {
            Failure::Exception { .. } => format!("{}-{:x}", self.sealing.tag(), self.references),
            _ => String::new(),
        };
        let (fault, report) = finish.fault(failure, self.offers.server.debug, &reference);
        self.effects.extend(report.map(|it| Effect::Report(it.text)));
        fault
    }

    fn leave(&mut self, now: Instant, gate: Option<String>) {
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
