//! Handlers of notifications that run: nobody waits for their reply, and yet they may ask.

use std::sync::Arc;

use super::{Effect, Run, calls::Calls};
use crate::{
    error::{Fault, FaultKind},
    protocol::{Method, MethodName, Raw},
    session::{CallId, CallMap, asking, server::CallContext},
    wire::Wire,
};

/// Each has a number, as calls have.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    running: CallMap<Listener>,
    weight: usize,
}

#[derive(Debug)]
struct Listener {
    /// What the notification was spelled in.
    wire: &'static Wire,
    /// Bytes of input that it holds.
    weight: usize,
}

impl Listeners {
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Bytes of input that all of them hold.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether it was one, and is over now.
    pub(super) fn end(&mut self, handler: CallId) -> bool {
        let ended = self.running.remove(&handler);
        self.weight -= ended.as_ref().map_or(0, |it| it.weight);
        ended.is_some()
    }

    /// Whether it may send its client a request; a question that travels in results has none to travel in.
    pub(super) fn check(&self, handler: CallId, method: Method) -> Result<(), Fault> {
        match self.running.get(&handler) {
            Some(Listener { wire, .. }) if asking::travels_inside(method, wire) => Err(Fault::new(
                FaultKind::Handler,
                format!(
                    "a handler of notifications can't ask in {}: questions travel in the results of requests there, so \
                     ask in a tool, a resource or a prompt",
                    wire.name()
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl Calls {
    /// Runs who listens to a notification; `false` when nobody does.
    pub(super) fn notify(
        &mut self,
        method: &MethodName,
        params: Raw,
        context: CallContext,
    ) -> bool {
        let Some(handler) = self.offers.listener(method.as_str()) else { return false };
        let weight = params.get().len();
        self.listeners.weight += weight;
        self.listeners.running.insert(context.call, Listener { wire: context.wire(), weight });
        self.effects.push_back(Effect::Run(Run {
            handler: Arc::clone(handler),
            input: String::from(Box::<str>::from(params)),
            context,
            is_notification: true,
            passage: None,
        }));
        true
    }
}
