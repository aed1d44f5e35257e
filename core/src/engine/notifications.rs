//! Handlers of notifications, which have no answer and may ask their client.

use std::time::Instant;

use super::{
    CallEvent, Delivery, Effect, Engine, Run,
    id::{CallId, Origin, PeerId, RunId},
    state::{Notified, State},
};
use crate::{
    error::{Fault, FaultKind, option_name},
    protocol::{Method, MethodName, Question, Raw},
    session::{
        InboundKey,
        asking::{self, AskId, Journal},
        server::CallContext,
    },
    wire,
};

const NO_CLIENT: &str =
    "a route has no client that could be asked: ask in a tool, a resource or a prompt";

impl Engine {
    /// Returns whether a handler is registered for notifications of this name, as clients spell it.
    pub(crate) fn listens_to(&self, name: &str) -> bool {
        let bare = wire::bare_notification(name);
        self.components.listener(bare.as_ref().map_or(name, |bare| bare.as_str())).is_some()
    }

    /// Runs the handler of a notification. Returns `None` if no handler is registered.
    pub(crate) fn notify(
        &mut self,
        peer: PeerId,
        key: InboundKey,
        method: &MethodName,
        params: Raw,
        context: CallContext,
    ) -> Option<CallId> {
        let handler = self.components.listener(method.as_str())?.clone();
        let call = self.calls.number();
        let run = self.calls.begin_run(call);
        let (rejected, asked) = (Journal::default(), Vec::new());
        let notified = Notified { run, wire: context.wire(), rejected, asked };
        let origin = Origin { call, peer, key, client: context.client_key() };
        self.calls.put(origin, context.weight, None, State::Notified(Box::new(notified)));
        self.effects.push_back(Effect::Run(Box::new(Run {
            id: run,
            handler,
            middleware_frame: self.components.middleware_frame_of(method, &params),
            input: String::from(Box::<str>::from(params)),
            context,
            is_notification: true,
            subject: None,
        })));
        Some(call)
    }

    pub(super) fn end_notification(&mut self, call: CallId, run: RunId) -> Option<Delivery> {
        self.calls.end_run(run);
        let entry = self.calls.remove(call)?;
        let origin = entry.origin(call);
        Some(origin.deliver(CallEvent::NotificationDone))
    }

    /// Errors if the handler of a notification asks a question that only results can carry, or a route's handler asks one.
    pub(super) fn check_notified(&self, call: CallId, method: Method) -> Result<(), Fault> {
        match self.calls.get(call).map(|call| &call.state) {
            Some(State::Notified(notified)) if asking::travels_inside(method, notified.wire) => {
                Err(Fault::new(
                    FaultKind::Handler,
                    format!(
                        "a handler of notifications can't ask in {}: questions travel in the results of requests there, so \
                         ask in a tool, a resource or a prompt",
                        notified.wire.name()
                    ),
                ))
            }
            Some(State::Routed(_)) => Err(Fault::new(FaultKind::Handler, NO_CLIENT)),
            _ => Ok(()),
        }
    }

    /// Asks the client for the handler of a notification, which waits no longer than `suspended_ttl`.
    pub(super) fn notified_asks(
        &mut self,
        now: Instant,
        call: CallId,
        ask: AskId,
        question: Question,
    ) {
        let until = now.checked_add(self.limits().suspended_ttl);
        self.update_notified(call, |notified| notified.asked.push((ask, question, until)));
    }

    pub(super) fn notified_answered(&mut self, call: CallId, ask: AskId) {
        self.update_notified(call, |notified| notified.asked.retain(|(asked, ..)| *asked != ask));
    }

    /// Rejects an answer for the handler of a notification. Errors if the question must not be asked again.
    pub(super) fn notified_rejects(
        &mut self,
        call: CallId,
        question: &Question,
        problem: &str,
    ) -> Result<(), Fault> {
        let tries = self.update_notified(call, |notified| {
            let tries = notified.rejected.tries(question).saturating_add(1);
            notified.rejected.refused(question, tries);
            tries
        });
        tries.map_or(Ok(()), |tries| asking::check_retry_limit(question, tries, problem))
    }

    /// Ends the expired questions of a notification's handler.
    pub(super) fn expire_questions(&mut self, now: Instant, call: CallId) {
        let is_over = |until: &Option<Instant>| until.is_some_and(|end| end <= now);
        let expired = self.update_notified(call, |notified| {
            let over = notified.asked.extract_if(.., |(_, _, until)| is_over(until));
            let over: Vec<AskId> = over.map(|(ask, ..)| ask).collect();
            (notified.run, over)
        });
        let Some((run, over)) = expired else { return };
        let seconds = self.limits().suspended_ttl.as_secs_f64();
        let option = option_name("suspended_ttl");
        let problem = format!("the client gave no answer for {seconds} s (option {option})");
        for ask in over {
            self.answer(run, ask, Err(Fault::new(FaultKind::Handler, problem.clone())));
        }
    }

    fn update_notified<R>(
        &mut self,
        call: CallId,
        change: impl FnOnce(&mut Notified) -> R,
    ) -> Option<R> {
        let changed = self.calls.update(call, |call| {
            let State::Notified(notified) = &mut call.state else { return None };
            let result = change(notified);
            call.deadline = notified.asked.iter().filter_map(|(_, _, until)| *until).min();
            Some(result)
        });
        changed.flatten()
    }
}
