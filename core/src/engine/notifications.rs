//! Handlers of notifications that run: nobody waits for their reply, and yet they may ask.

use std::{sync::Arc, time::Instant};

use super::{Effect, Run, calls::Calls};
use crate::{
    error::{Fault, FaultKind, option_name},
    protocol::{Method, MethodName, Question, Raw},
    session::{
        CallId, CallMap,
        asking::{self, AskId, Journal},
        server::CallContext,
    },
    wire::{self, Wire},
};

/// Each has a number, as calls have.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    running: CallMap<Listener>,
    weight: usize,
    /// Questions that they wait for.
    asking: usize,
}

#[derive(Debug)]
struct Listener {
    /// What the notification was spelled in.
    wire: &'static Wire,
    /// Bytes of input that it holds.
    weight: usize,
    /// Which answers did not fit.
    refused: Journal,
    /// What it waits for, and how long.
    asked: Vec<(AskId, Question, Option<Instant>)>,
}

impl Listeners {
    pub(crate) fn len(&self) -> usize {
        self.running.len()
    }

    /// Bytes of input that all of them hold.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether it was one, and is over now.
    pub(crate) fn end(&mut self, handler: CallId) -> bool {
        let ended = self.running.remove(&handler);
        self.weight -= ended.as_ref().map_or(0, |it| it.weight);
        self.asking -= ended.as_ref().map_or(0, |it| it.asked.len());
        ended.is_some()
    }

    /// It asks its client, and waits until then at most.
    pub(crate) fn asks(
        &mut self,
        handler: CallId,
        ask: AskId,
        question: Question,
        until: Option<Instant>,
    ) {
        if let Some(Listener { asked, .. }) = self.running.get_mut(&handler) {
            asked.push((ask, question, until));
            self.asking += 1;
        }
    }

    pub(crate) fn answered(&mut self, handler: CallId, ask: AskId) {
        if let Some(Listener { asked, .. }) = self.running.get_mut(&handler)
            && let Some(at) = asked.iter().position(|(it, ..)| *it == ask)
        {
            asked.swap_remove(at);
            self.asking -= 1;
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.asking == 0 {
            return None;
        }
        self.running.values().flat_map(|it| &it.asked).filter_map(|(_, _, until)| *until).min()
    }

    /// Questions that nobody answers any more.
    fn expire(&mut self, now: Instant) -> Vec<(CallId, AskId)> {
        let is_over = |until: &Option<Instant>| until.is_some_and(|it| it <= now);
        let mut over = Vec::new();
        for (handler, Listener { asked, .. }) in &mut self.running {
            over.extend(
                asked.extract_if(.., |(_, _, until)| is_over(until)).map(|it| (*handler, it.0)),
            );
        }
        self.asking -= over.len();
        over
    }

    /// Whether it may send its client a request; a question that travels in results has none to travel in.
    pub(crate) fn check(&self, handler: CallId, method: Method) -> Result<(), Fault> {
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

    /// What this one asks under this number.
    pub(crate) fn asked(&self, handler: CallId, ask: AskId) -> Option<Question> {
        let mut asked = self.running.get(&handler)?.asked.iter();
        asked.find(|(it, ..)| *it == ask).map(|(_, question, _)| question.clone())
    }

    /// What this one was answered is not what it wanted. Fails where the question is not to be asked again.
    pub(crate) fn refuse(
        &mut self,
        handler: CallId,
        question: &Question,
        problem: &str,
    ) -> Result<(), Fault> {
        let Some(Listener { refused, .. }) = self.running.get_mut(&handler) else { return Ok(()) };
        let tries = refused.tries(question).saturating_add(1);
        refused.refused(question, tries);
        asking::check_retry_limit(question, tries, problem)
    }
}

impl Calls {
    /// Tells who listens to notifications that their clients gave no answer in time.
    pub(crate) fn expire_listeners(&mut self, now: Instant) {
        if self.listeners.deadline().is_none_or(|it| it > now) {
            return;
        }
        let seconds = self.limits().park_ttl.as_secs_f64();
        let option = option_name("park_ttl");
        let problem = format!("the client gave no answer for {seconds} s (option {option})");
        for (call, ask) in self.listeners.expire(now) {
            let outcome = Err(Fault::new(FaultKind::Handler, problem.clone()));
            self.effects.push_back(Effect::Answered { call, ask, outcome });
        }
    }

    /// Whether a handler runs for notifications of this name, as clients spell it.
    pub(crate) fn listens_to(&self, name: &str) -> bool {
        let bare = wire::bare_notification(name);
        self.components.listener(bare.as_ref().map_or(name, |it| it.as_str())).is_some()
    }

    /// Runs who listens to a notification; `false` when nobody does.
    pub(crate) fn notify(
        &mut self,
        method: &MethodName,
        params: Raw,
        context: CallContext,
    ) -> bool {
        let Some(handler) = self.components.listener(method.as_str()) else { return false };
        let weight = context.weight;
        self.listeners.weight += weight;
        let (refused, asked) = (Journal::default(), Vec::new());
        let listener = Listener { wire: context.wire(), weight, refused, asked };
        self.listeners.running.insert(context.call, listener);
        self.effects.push_back(Effect::Run(Run {
            handler: Arc::clone(handler),
            middleware_frame: self.components.middleware_frame_of(method, &params),
            input: String::from(Box::<str>::from(params)),
            context,
            is_notification: true,
        }));
        true
    }
}
