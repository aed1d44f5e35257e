//! Questions of handlers: as requests on their stream, or in the result, while the handler is parked.

use std::time::Instant;

use super::{
    Effect,
    calls::{Begun, Calls, Finished},
    gates::Ready,
    parking::{Claimed, Parked},
    running::{Kept, Running},
    state::{Binding, Refused, RoundId},
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Question, Raw, Response},
    router::{Failure, Finish, Job, Reply},
    session::{
        CallId, CallMap,
        asking::{self, AskId, Round},
        server::CallContext,
    },
};

/// What the handler of one call may ask, however often it runs.
const MAX_QUESTIONS: usize = 100;
const ASKS_ELSEWHERE: &str =
    "only the results of tools, resources and prompts carry questions: ask there";
/// Whoever returns questions is run again from its top by its own wish.
const FORBIDS_AND_RETURNS: &str = "the handler returned a question, though its tool forbids being run again \
     (replay=\"forbid\"): ask with ctx.elicit and its kin, which go on from their line, or drop replay=\"forbid\"";

/// Which request each handler runs for, where it is not the one that began it.
#[derive(Debug, Default)]
pub(super) struct Links(CallMap<CallId>);

impl Links {
    pub(super) fn current(&self, handler: CallId) -> CallId {
        if self.0.is_empty() {
            return handler;
        }
        self.0.get(&handler).copied().unwrap_or(handler)
    }

    /// The same, of a handler that is over.
    pub(super) fn end(&mut self, handler: CallId) -> CallId {
        if self.0.is_empty() {
            return handler;
        }
        self.0.remove(&handler).unwrap_or(handler)
    }

    /// The handler that runs for this request, which is over.
    pub(super) fn end_of(&mut self, call: CallId, running: &Running) -> CallId {
        let handler = running.kept.as_ref().map_or(call, |it| it.handler_call);
        self.0.remove(&handler);
        handler
    }
}

impl Calls {
    /// A running handler asks: what has to go out as a request of its call's, if it is not settled otherwise.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        handler: CallId,
        ask: AskId,
        question: Question,
    ) -> Option<(CallId, Question)> {
        if let Some(parked) = self.waiting(handler) {
            match parked.later.len() < MAX_QUESTIONS {
                true => parked.later.push((ask, question)),
                false => self.tell(handler, ask, Err(too_many())),
            }
            return None;
        }
        if let Err(fault) = self.listeners.check(handler, question.method) {
            self.tell(handler, ask, Err(fault));
            return None;
        }
        let call = self.links.current(handler);
        self.keep_apart(now, call);
        match self.known(call, &question) {
            Ok(None) => (),
            Ok(Some(answer)) => {
                self.tell(handler, ask, Ok(answer));
                return None;
            }
            Err(fault) => {
                self.tell(handler, ask, Err(fault));
                return None;
            }
        }
        if let Some(Err(fault)) = self.running.kept(call).map(|it| it.count(1)) {
            self.tell(handler, ask, Err(fault));
            return None;
        }
        let travels_inside = self
            .running
            .get(call)
            .is_some_and(|it| asking::travels_inside(question.method, it.wire));
        if travels_inside {
            if let Err(fault) = self.ask_inside(call, ask, question) {
                self.tell(handler, ask, Err(fault));
            }
            return None;
        }
        if let Some(kept) = self.running.kept(call) {
            kept.sent.push((ask, question.clone()));
        } else {
            let until = now.checked_add(self.limits().park_ttl);
            self.listeners.asks(call, ask, question.clone(), until);
        }
        Some((call, self.as_request(question)))
    }

    /// What a running handler was answered is not what it wanted, because of this problem: it asks once more.
    pub(super) fn ask_again(
        &mut self,
        now: Instant,
        handler: CallId,
        ask: AskId,
        question: Question,
        problem: &str,
    ) -> Option<(CallId, Question)> {
        match self.refuse(handler, &question, problem) {
            Ok(()) => self.ask(now, handler, ask, question),
            Err(fault) => {
                self.tell(handler, ask, Err(fault));
                None
            }
        }
    }

    /// What was answered to a question that went out as a request does not fit it, because of this problem: it goes out
    /// again, or is settled with that.
    pub(super) fn unfit(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        problem: &str,
    ) -> Finished {
        let kept = self.running.get(call).and_then(|it| it.kept.as_deref());
        let sent = kept.and_then(|it| it.sent.iter().find(|(sent, _)| *sent == ask));
        let question = sent.map(|(_, question)| question.clone());
        let question = question.or_else(|| self.rounds.asked(call, ask));
        let Some(question) = question.or_else(|| self.listeners.asked(call, ask)) else {
            return Finished::Forgotten;
        };
        match self.refuse(call, &question, problem) {
            Ok(()) => {
                let Question { method, params, .. } = self.as_request(question);
                Finished::Asks(vec![(ask, method, params)])
            }
            Err(fault) => self.answered(now, call, ask, Err(fault)),
        }
    }

    /// What was answered to a handler's question counts no more. Fails where it is not to be asked again.
    fn refuse(&mut self, handler: CallId, question: &Question, problem: &str) -> Result<(), Fault> {
        match self.kept(handler) {
            Some(kept) => kept.refuse(question, problem),
            None => self.listeners.refuse(handler, question, problem),
        }
    }

    /// A handler has asked all that it wants to ask now. `blocks`: it holds a thread while it waits.
    pub(super) fn wait(&mut self, now: Instant, handler: CallId, blocks: bool) {
        if let Some(parked) = self.waiting(handler) {
            parked.is_ready = !parked.later.is_empty();
            return;
        }
        let call = self.links.current(handler);
        if self.running.kept(call).is_none_or(|it| it.asked.is_empty()) {
            if self.running.get(call).is_some_and(Running::is_asking) {
                self.pause(now, call);
            }
            return;
        }
        if self.lacks_room(call, blocks) {
            let asked = self.running.kept(call).map(|it| std::mem::take(&mut it.asked));
            for (ask, _) in asked.unwrap_or_default() {
                self.tell(handler, ask, Err(crowded()));
            }
            return;
        }
        if let Some(running) = self.running.remove(call) {
            let answer = self.park(now, running, blocks);
            self.replies.push_back((call, answer));
        }
    }

    /// A question that went out as a request is settled. Whether its handler may wait for that.
    pub(super) fn record(&mut self, call: CallId, ask: AskId, answer: Option<&Raw>) -> bool {
        let Some(kept) = self.running.kept(call) else { return false };
        let Some(at) = kept.sent.iter().position(|(sent, _)| *sent == ask) else { return false };
        let (_, question) = kept.sent.swap_remove(at);
        if let Some(answer) = answer {
            kept.recorded.answered(&question, answer.clone());
        }
        true
    }

    /// A step of a handler's is done, and is not to be done again.
    pub(super) fn step(&mut self, handler: CallId, key: &str, value: Raw) {
        if let Some(kept) = self.kept(handler) {
            kept.recorded.done(key, value);
        }
    }

    /// What is kept of the call that a handler runs for, or waits for.
    fn kept(&mut self, handler: CallId) -> Option<&mut Kept> {
        let call = self.links.current(handler);
        match self.waiting(handler).is_some() {
            true => self.waiting(handler)?.running.kept.as_deref_mut(),
            false => self.running.kept(call),
        }
    }

    /// A request brings answers to a round: its handler goes on. `None`: it has to run from its top.
    pub(super) fn go_on(
        &mut self,
        now: Instant,
        round: RoundId,
        job: &Job,
        context: &CallContext,
    ) -> Option<Begun> {
        match self.parking.claim(round, context) {
            Claimed::Waiting(parked) => Some(self.bring(now, round, parked, context)),
            Claimed::Joined => Some(Begun::Started),
            Claimed::Crowded => {
                let refused = Refused::new("too many requests with the same state wait already");
                Some(Begun::Answered(Err(self.refused(refused))))
            }
            Claimed::Unknown if job.finish.forbids_replay() => {
                let refused = Refused::new("its handler is gone, and must not run again");
                Some(Begun::Answered(Err(self.refused(refused))))
            }
            Claimed::Unknown => None,
        }
    }

    /// A parked handler goes on, for this request.
    pub(super) fn resume(
        &mut self,
        now: Instant,
        parked: Parked,
        context: CallContext,
        gate: Option<String>,
    ) {
        let Parked { handler, mut running, answered, later, is_ready, left, blocks, .. } = parked;
        let call = context.call;
        running.gate = gate;
        running.deadline = left.and_then(|it| now.checked_add(it));
        self.relink(handler, &mut running, context);
        self.running.insert(call, running);
        for (ask, answer) in answered {
            self.tell(handler, ask, answer);
        }
        for (ask, question) in later {
            // Whoever is parked speaks a revision whose questions travel inside results.
            let outside = self.ask(now, handler, ask, question);
            debug_assert!(outside.is_none());
        }
        if is_ready {
            self.wait(now, handler, blocks);
        }
    }

    /// A handler finished while its request waited in line: it has no need of a turn.
    pub(super) fn skip_line(&mut self, handler: CallId) {
        let Some((parked, context)) = self.gates.take_resuming(handler) else { return };
        let mut running = parked.running;
        let call = context.call;
        if let Some(kept) = running.kept.as_mut() {
            kept.context = CallContext { answers: kept.context.answers.clone(), ..context };
        }
        self.links.0.insert(handler, call);
        self.running.insert(call, running);
    }

    /// A handler returned questions: they are the answer, or go out as requests.
    pub(super) fn ask_back(&mut self, now: Instant, call: CallId, questions: &str) -> Finished {
        self.keep_apart(now, call);
        let Some(mut running) = self.take_running(call) else { return Finished::Forgotten };
        running.pause = None;
        let Some(mut kept) = running.kept.take() else {
            let round = asking::round(questions, &asking::Answers::default(), None, running.wire);
            self.leave(now, running.gate);
            return Finished::Answered(Err(round.err().unwrap_or_else(nobody_to_ask)));
        };
        let capabilities = kept.context.client.capabilities.as_ref();
        let answers = match kept.recorded.weight() {
            0 => kept.context.answers.clone(),
            _ => asking::Answers::new(None, journal(&kept)),
        };
        let round = asking::round(questions, &answers, capabilities, running.wire);
        let round = round.and_then(|round| match &round {
            Round::Request(requests) => kept.count(requests.len()).map(|()| round),
            Round::Ask(_) => Ok(round),
        });
        let round = round.and_then(|round| {
            let (Round::Ask(open) | Round::Request(open)) = &round;
            open.iter().try_for_each(|it| kept.context.answers.may_ask(it)).map(|()| round)
        });
        match round {
            Err(fault) => {
                running.kept = Some(kept);
                self.conclude(&running, &Err(fault.clone()));
                self.leave(now, running.gate);
                Finished::Answered(Err(fault))
            }
            Ok(Round::Ask(requests)) => {
                let known = answers.journal().asking(&requests);
                let limits = self.limits();
                let binding = Binding::of(&kept.request, kept.context.principal.as_deref());
                let state =
                    binding.and_then(|it| self.sealing.seal(now, it, (None, known), &limits));
                let answer = Ok(Response::InputRequired { requests, state });
                running.kept = Some(kept);
                self.conclude(&running, &answer);
                self.leave(now, running.gate);
                Finished::Answered(answer)
            }
            Ok(Round::Request(requests)) => {
                let asks = self.rounds.begin(call, &kept, requests);
                let asks = asks.into_iter().map(|(ask, question)| {
                    let Question { method, params, .. } = self.as_request(question);
                    (ask, method, params)
                });
                let asks = asks.collect();
                // Its next run has the whole time, as if the answers had come with another request.
                running.deadline = running.timeout.and_then(|it| now.checked_add(it));
                kept.sent.clear();
                running.kept = Some(kept);
                self.running.insert(call, running);
                self.pause(now, call);
                Finished::Asks(asks)
            }
        }
    }

    /// What came of a run is the answer to all requests that wait for it.
    pub(super) fn conclude(&mut self, running: &Running, answer: &Result<Response, Fault>) {
        let Some(round) = running.kept.as_ref().and_then(|it| it.round) else { return };
        for call in self.parking.release(round) {
            self.replies.push_back((call, answer.clone()));
        }
    }

    /// The request that a handler runs for was given up. Another that waits for the same takes its place.
    pub(super) fn give_up(&mut self, now: Instant, call: CallId, mut running: Running) {
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
    pub(super) fn give_up_turn(&mut self, now: Instant, parked: Box<Parked>) {
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

    /// Nobody will come back for handlers that wait.
    pub(super) fn unpark(&mut self) {
        for handler in self.parking.clear() {
            self.effects.push_back(Effect::Cancel(handler));
        }
    }

    /// A handler that waits for its answers, or with them for its turn.
    pub(super) fn waiting(&mut self, handler: CallId) -> Option<&mut Parked> {
        match self.gates.resuming(handler) {
            Some(parked) => Some(parked),
            None => self.parking.get_mut(handler),
        }
    }

    pub(super) fn refused(&mut self, refused: Refused) -> Fault {
        self.effects.push_back(Effect::Report(refused.report));
        refused.fault
    }

    /// The answer, where it is known already.
    fn known(&mut self, call: CallId, question: &Question) -> Result<Option<Raw>, Fault> {
        let Some(kept) = self.running.kept(call) else { return Ok(None) };
        let other = || {
            let key = &question.key;
            let problem = format!("two questions have the key {key:?}: give each a key of its own");
            Fault::new(FaultKind::Handler, problem)
        };
        if let Some(answer) = kept.recorded.get(question).map_err(|_| other())? {
            return Ok(Some(answer.clone()));
        }
        let open = kept.asked.iter().chain(&kept.sent);
        if open.into_iter().any(|(_, it)| it.key == question.key) {
            return Err(other());
        }
        match kept.context.answers.get(&question.key, question.method, question.params.get()) {
            Some(answer) => Ok(Some(answer)),
            None => kept.context.answers.may_ask(question).map(|()| None),
        }
    }

    /// Puts a question into the round to come.
    fn ask_inside(&mut self, call: CallId, ask: AskId, question: Question) -> Result<(), Fault> {
        let Some(running) = self.running.get(call) else { return Err(nobody_to_ask()) };
        if !running.finish.may_ask() {
            return Err(Fault::new(FaultKind::Handler, ASKS_ELSEWHERE));
        }
        let capabilities = running.kept.as_ref();
        let capabilities = capabilities.and_then(|it| it.context.client.capabilities.as_ref());
        asking::check(&question, capabilities, running.wire)?;
        if self.lacks_room(call, false) {
            return Err(crowded());
        }
        let Some(kept) = self.running.kept(call) else { return Err(nobody_to_ask()) };
        kept.asked.push((ask, question));
        Ok(())
    }

    /// Whether this call's handler could not wait, and must not run twice. `blocks`: it holds a thread while it waits.
    fn lacks_room(&self, call: CallId, blocks: bool) -> bool {
        self.running.get(call).is_some_and(|it| it.finish.forbids_replay())
            && !self.parking.has_room(&self.limits(), blocks)
    }

    /// Asks the client in the answer to this call, and keeps the handler until the answers come.
    fn park(
        &mut self,
        now: Instant,
        mut running: Running,
        blocks: bool,
    ) -> Result<Response, Fault> {
        let Some(kept) = running.kept.as_mut() else { return Err(nobody_to_ask()) };
        let open = std::mem::take(&mut kept.asked);
        let handler = kept.handler_call;
        let parked = Parked {
            handler,
            left: running.deadline.map(|it| it.saturating_duration_since(now)),
            open,
            answered: Vec::new(),
            later: Vec::new(),
            is_ready: false,
            outcome: None,
            blocks,
            running,
        };
        self.links.end(handler);
        let gate = parked.running.gate.clone();
        let answer = self.send_round(now, Box::new(parked));
        self.leave(now, gate);
        answer
    }

    /// The answer that asks what is open, under a name by which the handler is found again.
    fn send_round(&mut self, now: Instant, mut parked: Box<Parked>) -> Result<Response, Fault> {
        let limits = self.limits();
        let requests: Vec<_> = parked.open.iter().map(|(_, it)| it.clone()).collect();
        let round = self.sealing.round();
        let Some(kept) = parked.running.kept.as_mut() else { return Err(nobody_to_ask()) };
        let journal = journal(kept).asking(&requests);
        let state = Binding::of(&kept.request, kept.context.principal.as_deref())
            .and_then(|it| self.sealing.seal(now, it, (Some(round), journal), &limits));
        let answer = Ok(Response::InputRequired { requests, state });
        self.conclude(&parked.running, &answer);
        if let Some(kept) = parked.running.kept.as_mut() {
            kept.round = None;
        }
        for handler in self.parking.park(now, &limits, round, parked) {
            self.effects.push_back(Effect::Cancel(handler));
        }
        answer
    }

    /// Gives a parked handler the answers that a request brought. What is missing, or does not fit, is asked again.
    fn bring(
        &mut self,
        now: Instant,
        round: RoundId,
        mut parked: Box<Parked>,
        context: &CallContext,
    ) -> Begun {
        let Some(kept) = parked.running.kept.as_mut() else {
            return Begun::Answered(Err(nobody_to_ask()));
        };
        kept.round = Some(round);
        for (ask, question) in std::mem::take(&mut parked.open) {
            let Question { key, method, params } = &question;
            if let Some(answer) = context.answers.get(key, *method, params.get()) {
                kept.recorded.answered(&question, answer.clone());
                parked.answered.push((ask, Ok(answer)));
                continue;
            }
            let problem = context.answers.problem(&question);
            match problem.map_or(Ok(()), |it| kept.refuse(&question, it)) {
                Ok(()) => parked.open.push((ask, question)),
                Err(fault) => parked.answered.push((ask, Err(fault))),
            }
        }
        if let Some(Ok(Reply::Questions(questions))) = &parked.outcome {
            let (questions, call) = (questions.clone(), context.call);
            kept.context = CallContext { answers: kept.context.answers.clone(), ..context.clone() };
            self.running.insert(call, parked.running);
            return match self.ask_back(now, call, &questions) {
                Finished::Answered(answer) => Begun::Answered(answer),
                Finished::Listening(filter) => Begun::Listening(filter),
                Finished::Asks(_) | Finished::Forgotten => Begun::Started,
            };
        }
        if let Some(outcome) = parked.outcome.take() {
            let finish = &parked.running.finish;
            let answer = outcome.and_then(|reply| finish.response(reply));
            let answer = answer.map_err(|failure| self.fault(finish, failure));
            self.conclude(&parked.running, &answer);
            return Begun::Answered(answer);
        }
        if !parked.open.is_empty() {
            return Begun::Answered(self.send_round(now, parked));
        }
        self.admit(now, Ready::Resume(parked, context.clone()));
        Begun::Started
    }

    /// From now on a handler runs for this request.
    fn relink(&mut self, handler: CallId, running: &mut Running, context: CallContext) {
        let Some(kept) = running.kept.as_mut() else { return };
        self.links.0.insert(handler, context.call);
        kept.context = CallContext { answers: kept.context.answers.clone(), ..context };
        let told = CallContext { call: handler, ..kept.context.clone() };
        self.effects.push_back(Effect::Resume { call: handler, context: told });
    }

    fn tell(&mut self, handler: CallId, ask: AskId, outcome: Result<Raw, Fault>) {
        self.effects.push_back(Effect::Answered { call: handler, ask, outcome });
    }
}

impl Kept {
    /// A handler that asks in a loop has to end.
    fn count(&mut self, questions: usize) -> Result<(), Fault> {
        self.questions += questions;
        if self.questions <= MAX_QUESTIONS {
            return Ok(());
        }
        Err(too_many())
    }

    /// What was answered to this question is no answer to it, because of this problem: it is forgotten. Fails where the
    /// question is not to be asked again.
    fn refuse(&mut self, question: &Question, problem: &str) -> Result<(), Fault> {
        let earlier = self.recorded.tries(question).max(self.context.answers.tries(question));
        let tries = earlier.saturating_add(1);
        self.context.answers.strike(question, problem);
        self.recorded.refused(question, tries);
        asking::again(question, tries, problem)
    }
}

/// Whether a handler may answer with questions.
pub(super) fn may_return_questions(finish: &Finish) -> Result<(), Failure> {
    match (finish.may_ask(), finish.forbids_replay()) {
        (false, _) => Err(Failure::NotSupported(ASKS_ELSEWHERE.into())),
        (true, true) => Err(Failure::NotSupported(FORBIDS_AND_RETURNS.into())),
        (true, false) => Ok(()),
    }
}

fn too_many() -> Fault {
    Fault::new(
        FaultKind::Handler,
        format!(
            "a call may ask its client {MAX_QUESTIONS} questions, and this one has asked them all"
        ),
    )
}

fn crowded() -> Fault {
    Fault::new(
        FaultKind::Handler,
        "too many handlers wait for answers, and this tool must not run twice: try again later",
    )
}

/// All that a handler knows by now.
fn journal(kept: &Kept) -> asking::Journal {
    kept.context.answers.journal().then(&kept.recorded)
}

fn nobody_to_ask() -> Fault {
    Fault::new(FaultKind::Handler, "the client is gone, or can't be asked")
}
