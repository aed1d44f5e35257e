//! The handlers of routes: each answers one HTTP request, and has no MCP client.

use std::sync::Arc;

use http::Response;

use super::{
    CallEvent, Delivery, Effect, Engine, Run,
    computation::{Computation, MAX_UNDER_LOCK},
    id::{CallId, Origin, PeerId, RunId},
    state::{Routed, State},
};
use crate::{
    router::{Failure, Reply, Route},
    session::{InboundKey, server::CallContext},
};

impl Engine {
    /// Runs the handler of a route, whose response is [`CallEvent::Responded`].
    pub(crate) fn begin_route(
        &mut self,
        peer: PeerId,
        route: &Arc<Route>,
        input: String,
        context: CallContext,
    ) -> CallId {
        let call = self.calls.number();
        let run = self.calls.begin_run(call);
        // A request for a route is the only one of its peer.
        let origin = Origin { call, peer, key: InboundKey(0), client: context.client_key() };
        let routed = Routed { run, route: Arc::clone(route) };
        self.calls.put(origin, context.weight, None, State::Routed(routed));
        self.effects.push_back(Effect::Run(Box::new(Run {
            id: run,
            handler: Arc::clone(&route.handler),
            input,
            context,
            is_notification: false,
            middleware_frame: None,
            subject: None,
        })));
        call
    }

    pub(super) fn is_route(&self, call: CallId) -> bool {
        matches!(self.calls.get(call).map(|call| &call.state), Some(State::Routed(_)))
    }

    /// Handles the outcome of a route's handler. A long reply is converted outside the lock.
    pub(super) fn route_done(
        &mut self,
        run: RunId,
        outcome: Result<Reply, Failure>,
    ) -> Option<Delivery> {
        match outcome {
            Ok(reply) if reply.bytes() > MAX_UNDER_LOCK => {
                self.computations.push_back(Computation::respond(run, reply));
                None
            }
            outcome => self.respond(run, outcome.and_then(Route::response)),
        }
    }

    /// Ends the run of a route's handler with its response.
    pub(super) fn respond(
        &mut self,
        run: RunId,
        outcome: Result<Response<Vec<u8>>, Failure>,
    ) -> Option<Delivery> {
        let call = self.calls.call_of(run)?;
        self.calls.end_run(run);
        let entry = self.calls.remove(call)?;
        let origin = entry.origin(call);
        let State::Routed(Routed { route, .. }) = entry.state else { return None };
        let response = outcome.unwrap_or_else(|failure| {
            let reference = self.next_reference();
            let (response, report) = route.failed(failure, &reference);
            if let Some(text) = report {
                self.log_report(text, reference, None);
            }
            response
        });
        Some(origin.deliver(CallEvent::Responded(Box::new(response))))
    }
}
