//! Requests to the host: what the engine cannot decide by itself.
//!
//! Each belongs to one call, which waits in [`State::AwaitingHost`]. The request ends with the host's reply, with its time
//! limit or with its call, and a reply that comes later is ignored. Without a reply the call continues as if the host had
//! denied everything.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CallEvent, Delivery, Effect, Engine,
    id::{CallId, Origin, Ticket},
    state::{Continuation, State},
};
use crate::{
    error::{Fault, FaultKind},
    router::{Failure, Reply, Visibility},
    session::server::CallContext,
};

/// The maximum number of requests that wait for the host at the same time. Further ones fail at once.
const MAX_HOST_REQUESTS: usize = 10_000;

/// A request to the host, which answers with a [`HostReply`] under the same ticket.
#[derive(Debug)]
pub enum HostRequest {
    /// Asks which of these components, given by kind and key, the caller sees. The answer is [`HostReply::Visible`].
    FilterVisible { context: CallContext, components: Arc<[(&'static str, String)]> },
}

/// The host's reply to a [`HostRequest`].
#[derive(Debug)]
pub enum HostReply {
    /// One answer for each component in question, in order. A component without an answer is hidden.
    Visible(Vec<bool>),
    /// The host has no answer. The text is for the log.
    Failed(String),
}

impl HostReply {
    /// Reads what the host's visibility filter returned: a JSON list of booleans.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn visible(outcome: Result<Reply, Failure>) -> Self {
        let answers = match outcome {
            Ok(Reply::Json(text) | Reply::Result(text) | Reply::Parts(text)) => {
                serde_json::from_str(&text).ok()
            }
            Ok(_) => None,
            Err(failure) => {
                return Self::Failed(format!("the visibility filter failed: {failure:?}"));
            }
        };
        let invalid =
            || Self::Failed("the visibility filter must return a list of booleans".into());
        answers.map_or_else(invalid, Self::Visible)
    }
}

impl Engine {
    /// Sends a request to the host. Its reply goes to the continuation.
    pub(super) fn ask_host(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        request: HostRequest,
        continuation: Continuation,
    ) -> CallEvent {
        if self.calls.tickets() >= MAX_HOST_REQUESTS {
            let problem = format!("more than {MAX_HOST_REQUESTS} requests wait for the host");
            return self.continue_with(now, origin, continuation, HostReply::Failed(problem));
        }
        let ticket = self.await_reply(now, origin, weight, continuation);
        self.effects.push_back(Effect::Host(ticket, Box::new(request)));
        CallEvent::Nothing
    }

    /// Lets a call wait for a reply. Returns the ticket under which it comes.
    pub(super) fn await_reply(
        &mut self,
        now: Instant,
        origin: Origin,
        weight: usize,
        continuation: Continuation,
    ) -> Ticket {
        let ticket = self.calls.issue_ticket(origin.call);
        let deadline = now.checked_add(continuation.time_limit());
        let state = State::AwaitingHost(ticket, continuation);
        self.calls.put(origin, weight, deadline, state);
        ticket
    }

    /// Handles a reply of the host. Returns what the call's session is informed of.
    pub(crate) fn handle_host(
        &mut self,
        now: Instant,
        ticket: Ticket,
        reply: HostReply,
    ) -> Option<Delivery> {
        let call = self.calls.take_ticket(ticket)?;
        self.host_replied(now, call, reply)
    }

    /// Continues a call whose request to the host has reached its time limit.
    pub(super) fn host_expired(&mut self, now: Instant, call: CallId) -> Option<Delivery> {
        let State::AwaitingHost(ticket, continuation) = &self.calls.get(call)?.state else {
            return None;
        };
        let (ticket, limit) = (*ticket, continuation.time_limit().as_secs());
        self.cancel_host(ticket);
        let problem = format!("the host has not answered within {limit} s");
        self.host_replied(now, call, HostReply::Failed(problem))
    }

    /// Informs the host that its reply is not needed any more.
    pub(super) fn cancel_host(&mut self, ticket: Ticket) {
        if self.calls.take_ticket(ticket).is_some() {
            self.effects.push_back(Effect::CancelHost(ticket));
        }
    }

    fn host_replied(&mut self, now: Instant, id: CallId, reply: HostReply) -> Option<Delivery> {
        let entry = self.calls.remove(id)?;
        let origin = entry.origin(id);
        let State::AwaitingHost(_, continuation) = entry.state else { return None };
        let event = self.continue_with(now, origin, continuation, reply);
        origin.deliver_some(event)
    }

    pub(super) fn continue_with(
        &mut self,
        now: Instant,
        origin: Origin,
        continuation: Continuation,
        reply: HostReply,
    ) -> CallEvent {
        match continuation {
            Continuation::Visibility { call, components } => {
                let answers = match reply {
                    HostReply::Visible(answers) => answers,
                    HostReply::Failed(problem) => {
                        self.report(format!("components with a predicate are hidden: {problem}"));
                        Vec::new()
                    }
                };
                self.begin_visible(now, origin, *call, Visibility::resolved(&components, &answers))
            }
            Continuation::Dispatch => {
                let problem = match reply {
                    HostReply::Visible(_) => {
                        "the host answered it with a list of visible components".into()
                    }
                    HostReply::Failed(problem) => problem,
                };
                self.report(format!("a request was not dispatched: {problem}"));
                let message = "Internal error: the request was not dispatched in time";
                CallEvent::Answered(Err(Fault::new(FaultKind::Internal, message)))
            }
        }
    }
}

impl Continuation {
    /// The time limit of the host's reply.
    fn time_limit(&self) -> Duration {
        match self {
            Self::Visibility { .. } | Self::Dispatch => Duration::from_secs(30),
        }
    }
}
