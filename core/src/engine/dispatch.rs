//! The dispatch of requests whose checks may take long: schema checks, URI matching and copies take time in proportion to
//! the request, and patterns with look-around may take more.

use std::{sync::Arc, time::Instant};

use super::{
    CallEvent, Computation, Delivery, Engine, HostReply,
    begin::Opening,
    id::{Origin, Ticket},
    key_ring::KeyRing,
    request_state::RoundId,
    state::{Continuation, State, Wait},
};
use crate::{
    protocol::{Question, Raw, Request},
    router::{self, Components, Dispatch, Visibility},
};

/// The dispatch of one request.
#[derive(Debug)]
pub(super) struct DispatchJob {
    components: Arc<Components>,
    request: Request,
    raw_params: Option<Raw>,
    visibility: Visibility,
    cursors: KeyRing,
    opening: Box<Opening>,
    /// The open questions of the handler that the request continues.
    questions: Vec<Question>,
}

/// The result of a [`DispatchJob`].
#[derive(Debug)]
pub(super) struct Dispatched {
    pub(super) dispatch: Dispatch,
    pub(super) opening: Box<Opening>,
}

impl DispatchJob {
    /// Returns the answer to the request, or the handler run that computes it. Answers to the open questions are checked, so
    /// that the engine need not do it.
    pub(super) fn run(self) -> Dispatched {
        let Self { components, request, raw_params, visibility, cursors, opening, questions } =
            self;
        for question in &questions {
            opening.context.answers.check(question);
        }
        let scope = opening.scope(&visibility, &cursors, raw_params.as_ref());
        Dispatched { dispatch: router::dispatch(&components, request, scope), opening }
    }
}

impl Engine {
    /// Dispatches a request outside the lock.
    pub(super) fn dispatch_outside(
        &mut self,
        now: Instant,
        origin: Origin,
        request: Request,
        raw_params: Option<Raw>,
        visibility: Visibility,
        opening: Opening,
    ) -> CallEvent {
        let weight = opening.context.weight;
        let questions = opening.round.map(|round| self.open_questions(round)).unwrap_or_default();
        let job = DispatchJob {
            components: Arc::clone(&self.components),
            request,
            raw_params,
            visibility,
            cursors: self.sealing.keys().clone(),
            opening: Box::new(opening),
            questions,
        };
        let ticket = self.await_reply(now, origin, weight, Continuation::Dispatch);
        self.computations.push_back(Computation::dispatch(ticket, job));
        CallEvent::Nothing
    }

    /// Handles the dispatch of a request. Returns the event for the session of its call.
    pub(super) fn handle_dispatched(
        &mut self,
        now: Instant,
        ticket: Ticket,
        dispatched: Dispatched,
    ) -> Option<Delivery> {
        let id = self.calls.take_ticket(ticket)?;
        let entry = self.calls.remove(id)?;
        let origin = entry.origin(id);
        let State::AwaitingHost(_, continuation) = entry.state else { return None };
        let event = match continuation {
            Continuation::Dispatch => {
                self.begin_dispatched(now, origin, *dispatched.opening, dispatched.dispatch)
            }
            other @ Continuation::Visibility { .. } => {
                let problem = "the host answered with the dispatch of another request".into();
                self.continue_with(now, origin, other, HostReply::Failed(problem))
            }
        };
        origin.deliver_some(event)
    }

    /// Returns the questions of the handler that waits for the answers of this round.
    fn open_questions(&self, round: RoundId) -> Vec<Question> {
        let call = self.rounds.call(round).and_then(|call| self.calls.get(call));
        match call.map(|call| &call.state) {
            Some(State::Suspended(suspended)) => match &suspended.wait {
                Wait::Round(round) => {
                    round.open.iter().map(|(_, question)| question.clone()).collect()
                }
                Wait::Requests(_) => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}
