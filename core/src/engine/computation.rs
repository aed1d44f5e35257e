//! Computations that the driver runs outside its lock, because other peers must not wait for them. They take time in proportion
//! to a large message or reply, or as many steps as a pattern with look-around may take.

use std::time::Instant;

use http::Response;

use super::{
    CallEvent, Delivery, Engine,
    dispatch::{DispatchJob, Dispatched},
    handler_event::Finished,
    id::{CallId, RunId, Ticket},
};
use crate::{
    protocol::Raw,
    router::{Failure, Reply, Resolution, ResultBuilder, Route},
    session::asking::{AskId, ReceivedAnswer},
};

/// Bytes of a message or reply up to which the driver handles it under its lock, because taking the lock again costs more.
pub const MAX_UNDER_LOCK: usize = 64 * 1024;

/// A computation that may take long. [`run`](Self::run) needs no lock and changes nothing.
#[derive(Debug)]
pub struct Computation(Kind);

#[derive(Debug)]
enum Kind {
    Dispatch(Ticket, DispatchJob),
    /// The conversion of a handler's reply into the answer.
    Resolve(RunId, ResultBuilder, Reply),
    /// The conversion of the reply of a route's handler into the response.
    Respond(RunId, Reply),
    /// The check of a client's answer to a question.
    CheckAnswer(CallId, AskId, ReceivedAnswer),
}

/// The result of a [`Computation`].
#[derive(Debug)]
pub struct Computed(Outcome);

#[derive(Debug)]
enum Outcome {
    Dispatched(Ticket, Dispatched),
    Resolved(RunId, Result<Resolution, Failure>),
    Responded(RunId, Result<Response<Vec<u8>>, Failure>),
    AnswerChecked(CallId, AskId, Result<Raw, String>),
}

impl Computation {
    /// Computes the result, which is passed to the engine. It is boxed, because inputs of an endpoint are moved often.
    pub fn run(self) -> Box<Computed> {
        Box::new(Computed(match self.0 {
            Kind::Dispatch(ticket, job) => Outcome::Dispatched(ticket, job.run()),
            Kind::Resolve(run, builder, reply) => Outcome::Resolved(run, builder.resolve(reply)),
            Kind::Respond(run, reply) => Outcome::Responded(run, Route::response(reply)),
            Kind::CheckAnswer(call, ask, answer) => {
                Outcome::AnswerChecked(call, ask, answer.check())
            }
        }))
    }
}

impl Computation {
    pub(super) fn dispatch(ticket: Ticket, job: DispatchJob) -> Self {
        Self(Kind::Dispatch(ticket, job))
    }

    pub(super) fn respond(run: RunId, reply: Reply) -> Self {
        Self(Kind::Respond(run, reply))
    }

    /// Returns the ticket under which the request waits, if this is a dispatch.
    #[doc(hidden)] // For tests.
    pub fn ticket(&self) -> Option<Ticket> {
        match self.0 {
            Kind::Dispatch(ticket, _) => Some(ticket),
            Kind::Resolve(..) | Kind::Respond(..) | Kind::CheckAnswer(..) => None,
        }
    }

    /// Returns the run whose reply is converted, if this is a conversion.
    #[doc(hidden)] // For tests.
    pub fn resolves(&self) -> Option<RunId> {
        match self.0 {
            Kind::Resolve(run, ..) | Kind::Respond(run, ..) => Some(run),
            Kind::Dispatch(..) | Kind::CheckAnswer(..) => None,
        }
    }
}

impl Engine {
    /// Handles the result of a computation. Returns the event for the session of its call.
    pub(crate) fn handle_computed(&mut self, now: Instant, computed: Computed) -> Option<Delivery> {
        match computed.0 {
            Outcome::Dispatched(ticket, dispatched) => {
                self.handle_dispatched(now, ticket, dispatched)
            }
            Outcome::Resolved(run, outcome) => {
                let call = self.calls.call_of(run)?;
                self.finish(now, call, run, outcome.map(Finished::Resolved))
            }
            Outcome::Responded(run, outcome) => self.respond(run, outcome),
            Outcome::AnswerChecked(call, ask, checked) => {
                let origin = self.calls.get(call)?.origin(call);
                let event = self.answer_checked(now, call, ask, checked);
                origin.deliver_some(event)
            }
        }
    }

    /// Handles a client's answer to a question that was sent as a request.
    pub(crate) fn answer_received(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        answer: ReceivedAnswer,
    ) -> CallEvent {
        if answer.len() <= MAX_UNDER_LOCK {
            return self.answer_checked(now, call, ask, answer.check());
        }
        self.computations.push_back(Computation(Kind::CheckAnswer(call, ask, answer)));
        CallEvent::Nothing
    }

    /// Begins the conversion of a handler's reply outside the lock, if it may take long; returns other replies.
    pub(super) fn resolve_outside(
        &mut self,
        call: CallId,
        run: RunId,
        reply: Reply,
    ) -> Option<Reply> {
        let is_large = reply.bytes() > MAX_UNDER_LOCK;
        if matches!(reply, Reply::Questions(_)) || !(is_large || self.components.checks_slowly()) {
            return Some(reply);
        }
        let builder = match self.calls.running(call).map(|running| &running.result_builder) {
            Some(builder) if is_large || builder.checks_slowly() => builder.clone(),
            _ => return Some(reply),
        };
        self.computations.push_back(Computation(Kind::Resolve(run, builder, reply)));
        None
    }

    fn answer_checked(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        checked: Result<Raw, String>,
    ) -> CallEvent {
        match checked {
            Ok(answer) => self.answered(now, call, ask, Ok(answer)),
            Err(problem) => self.invalid_answer(now, call, ask, &problem),
        }
    }
}
