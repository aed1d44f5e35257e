//! Handlers that are parked, and go on for the request that brings their answers.

use std::time::Instant;

use super::{
    Effect,
    call_event::Upshot,
    calls::Calls,
    concurrency::Ready,
    parking::{Claimed, Parked},
    questions::{journal, nobody_to_ask},
    request_state::{Binding, Refused, RoundId, Sealed},
    running::{Kept, Running},
};
use crate::{
    error::{Fault, option_name},
    protocol::{Question, Response},
    router::{Job, Reply},
    session::{CallId, asking::Journal, server::CallContext},
};

impl Calls {
    /// A request brings answers to a round: its handler goes on. `None`: it has to run from its top.
    pub(crate) fn go_on(
        &mut self,
        now: Instant,
        round: RoundId,
        job: &Job,
        context: &CallContext,
    ) -> Option<Upshot> {
        match self.parking.claim(round, context) {
            Claimed::Waiting(parked) => Some(self.bring(now, round, parked, context)),
            Claimed::Joined => Some(Upshot::Nothing),
            Claimed::Crowded => {
                let refused = Refused::new("too many requests with the same state wait already");
                Some(Upshot::Answered(Err(self.refused(refused))))
            }
            Claimed::Unknown if job.result_builder.forbids_replay() => {
                let refused = Refused::new("its handler is gone, and must not run again");
                Some(Upshot::Answered(Err(self.refused(refused))))
            }
            Claimed::Unknown => None,
        }
    }

    /// A parked handler goes on, for this request.
    pub(crate) fn resume(
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
            debug_assert!(!matches!(outside, Upshot::Asks(_)));
        }
        if is_ready {
            self.wait(now, handler, blocks);
        }
    }

    /// Asks the client in the answer to this call, and keeps the handler until the answers come.
    pub(crate) fn park(
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
        let state = self.state_of(now, kept, (Some(round), journal));
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
    ) -> Upshot {
        let Some(kept) = parked.running.kept.as_mut() else {
            return Upshot::Answered(Err(nobody_to_ask()));
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
            return self.ask_back(now, call, &questions);
        }
        if let Some(outcome) = parked.outcome.take() {
            let result_builder = &parked.running.result_builder;
            let answer = outcome.and_then(|reply| result_builder.response(reply));
            let answer = answer.map_err(|failure| self.fault(result_builder, failure));
            self.conclude(&parked.running, &answer);
            return Upshot::Answered(answer);
        }
        if !parked.open.is_empty() {
            return Upshot::Answered(self.send_round(now, parked));
        }
        self.admit(now, Ready::Resume(parked, context.clone()));
        Upshot::Nothing
    }

    /// Nobody will come back for handlers that wait.
    pub(crate) fn unpark(&mut self) {
        for handler in self.parking.clear() {
            self.effects.push_back(Effect::Cancel(handler));
        }
    }

    /// A handler that waits for its answers, or with them for its turn.
    pub(crate) fn waiting(&mut self, handler: CallId) -> Option<&mut Parked> {
        match self.gates.resuming(handler) {
            Some(parked) => Some(parked),
            None => self.parking.get_mut(handler),
        }
    }

    /// What the client of a call is to bring back with its answers.
    pub(crate) fn state_of(
        &mut self,
        now: Instant,
        kept: &Kept,
        contents: (Option<RoundId>, Journal),
    ) -> Option<String> {
        let limits = self.limits();
        let binding = Binding::of(&kept.request, kept.context.principal.as_deref())?;
        let name = binding.name();
        let Sealed { state, is_cut } = self.sealing.seal(now, binding, contents, &limits)?;
        if is_cut {
            let (limit, option) = (limits.max_state, option_name("max_request_state"));
            self.effects.push_back(Effect::Report(format!(
                "what {name} was answered and did is longer than {limit} bytes (option {option}), so its client \
                 does not carry it: should the handler have to run again, it asks and does all of it once more"
            )));
        }
        Some(state)
    }

    pub(crate) fn refused(&mut self, refused: Refused) -> Fault {
        self.effects.push_back(Effect::Report(refused.report));
        refused.fault
    }
}
