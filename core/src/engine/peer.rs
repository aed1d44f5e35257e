//! One session among many: its calls have numbers of the whole service's, its frames know the stream they go on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{ConnectionId, Effect, ExchangeId, call_event::Upshot, calls::Calls};
use crate::{
    protocol::{MethodName, Principal, Raw},
    session::{
        CallId, CallMap,
        server::{self as session, About, CallContext, HttpFacts, Output, ServerSession},
    },
};

/// Whose call it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Owner {
    /// A stateless request's.
    Exchange(ExchangeId),
    /// A session's, by its number.
    Session(u64),
    /// A message connection's.
    Connection(ConnectionId),
}

/// Every call under way: whose it is, and what it is called there.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    flights: CallMap<(Owner, CallId)>,
    next: u64,
}

impl Flights {
    pub(crate) fn get(&self, call: CallId) -> Option<(Owner, CallId)> {
        self.flights.get(&call).copied()
    }

    pub(crate) fn end(&mut self, call: CallId) {
        self.flights.remove(&call);
    }

    fn add(&mut self, owner: Owner, local: CallId) -> CallId {
        let call = CallId(self.next);
        self.next += 1;
        self.flights.insert(call, (owner, local));
        call
    }
}

/// What a conversation works with.
pub(crate) struct Scene<'a> {
    pub(crate) now: Instant,
    pub(crate) owner: Owner,
    pub(crate) calls: &'a mut Calls,
    pub(crate) flights: &'a mut Flights,
    /// The HTTP request that is being handled.
    pub(crate) facts: Option<&'a Arc<HttpFacts>>,
}

/// Something to be said.
#[derive(Debug)]
pub(crate) struct Emission {
    /// `None`: the peer as a whole.
    pub(crate) stream: Option<u64>,
    /// `None`: nothing will answer what came on this stream.
    pub(crate) frame: Option<Vec<u8>>,
    /// It is the answer that the stream was for.
    pub(crate) is_reply: bool,
    pub(crate) error: Option<i64>,
    /// While an equal one waits to be sent, it says nothing new.
    pub(crate) is_change: bool,
    /// Where its own stream can't carry it, another must.
    pub(crate) is_asking: bool,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) machine: ServerSession,
    /// Who is at the other end, where that holds for all that comes; else each HTTP request says it.
    pub(crate) principal: Option<Arc<Principal>>,
    /// When the peer said something last.
    heard: Option<Instant>,
    /// By their numbers within the session.
    calls: CallMap<Place>,
    /// Running handlers of notifications: by their numbers within the session, what they are called outside, and the bytes
    /// of what they were given.
    listeners: CallMap<(CallId, usize)>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    global: CallId,
    stream: u64,
    /// Bytes of the request.
    weight: usize,
}

/// What came of one peer and is not done.
pub(crate) struct UnderWay {
    /// Requests that handlers run for.
    pub(crate) calls: usize,
    /// Notifications that handlers run for.
    pub(crate) listeners: usize,
    /// Of all these messages.
    pub(crate) bytes: usize,
}

impl Conversation {
    pub(crate) fn new(machine: ServerSession) -> Self {
        Self {
            machine,
            principal: None,
            heard: None,
            calls: CallMap::default(),
            listeners: CallMap::default(),
        }
    }

    /// Whether calls that came on this stream are under way.
    pub(crate) fn is_busy(&self, stream: u64) -> bool {
        self.calls.values().any(|it| it.stream == stream)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// What this peer keeps busy.
    pub(crate) fn under_way(&self) -> UnderWay {
        let calls = self.calls.values().map(|it| it.weight);
        let listeners = self.listeners.values().map(|(_, weight)| *weight);
        UnderWay {
            calls: self.calls.len().saturating_sub(self.machine.listening()),
            listeners: self.listeners.len(),
            bytes: calls.chain(listeners).sum(),
        }
    }

    /// Ends a session of a dialect in which idle ones end, though their connection stays.
    pub(crate) fn expire(&mut self, now: Instant, idle: Duration) {
        let is_over = self.heard.is_some_and(|it| now.duration_since(it) >= idle);
        if is_over && self.is_idle() && self.machine.may_expire() {
            self.machine.handle(session::Input::Expired);
        }
    }

    /// The stream on which a call came.
    pub(crate) fn stream_of(&self, local: CallId) -> Option<u64> {
        self.calls.get(&local).map(|it| it.stream)
    }

    /// Tells the session something; what it brings that belongs to no call belongs to `stream`.
    pub(crate) fn handle(
        &mut self,
        scene: &mut Scene<'_>,
        stream: u64,
        input: session::Input<'_>,
    ) -> Vec<Emission> {
        let done = match &input {
            session::Input::Done(local, _) => self.forget(scene, *local),
            session::Input::Heard(local) => {
                self.listeners.remove(local);
                None
            }
            session::Input::Frame(_)
            | session::Input::Parsed(_)
            | session::Input::TooLong { .. } => {
                self.heard = Some(scene.now);
                None
            }
            _ => None,
        };
        self.machine.handle(input);
        self.drain(scene, done.map_or(stream, |it| it.stream))
    }

    fn drain(&mut self, scene: &mut Scene<'_>, current: u64) -> Vec<Emission> {
        let mut said = Vec::new();
        let mut cancelled = None;
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send(sent) => {
                    let (stream, is_reply) = match sent.about {
                        About::Peer => (None, false),
                        About::Call(local) => {
                            let ended = cancelled.unwrap_or(current);
                            (Some(self.stream_of(local).unwrap_or(ended)), false)
                        }
                        About::Reply(local) => {
                            // Subscriptions end without anybody having said that they are done.
                            local.and_then(|it| self.forget(scene, it));
                            (Some(cancelled.unwrap_or(current)), true)
                        }
                    };
                    said.push(Emission {
                        stream,
                        frame: Some(sent.frame),
                        is_reply,
                        error: sent.error,
                        is_change: sent.is_change,
                        is_asking: sent.is_asking,
                    });
                }
                Output::Silent(local) => {
                    self.forget(scene, local);
                    said.push(Emission {
                        stream: Some(cancelled.unwrap_or(current)),
                        frame: None,
                        is_reply: true,
                        error: None,
                        is_change: false,
                        is_asking: false,
                    });
                }
                Output::Call(call) => self.begin(scene, current, call),
                Output::Cancel(local) => {
                    if let Some(place) = self.forget(scene, local) {
                        cancelled = Some(place.stream);
                        scene.calls.cancel(scene.now, place.global);
                    }
                }
                Output::Answered { call: local, ask, outcome } => {
                    if let Some(call) = self.global(local) {
                        let upshot = scene.calls.answered(scene.now, call, ask, outcome);
                        self.conclude(scene, local, upshot);
                    }
                }
                Output::InvalidAnswer { call: local, ask, problem } => {
                    if let Some(call) = self.global(local) {
                        let upshot = scene.calls.unfit(scene.now, call, ask, &problem);
                        self.conclude(scene, local, upshot);
                    }
                }
                Output::Report(text) => scene.calls.effects.push_back(Effect::Report(text)),
                Output::Detail(text) => scene.calls.effects.push_back(Effect::Detail(text)),
                Output::Notified { method, params, mut context } => {
                    self.introduce(scene, &mut context);
                    self.notify(scene, &method, params, context);
                }
            }
        }
        said
    }

    /// The number by which others know a call, or who listens to a notification.
    fn global(&self, local: CallId) -> Option<CallId> {
        let call = self.calls.get(&local).map(|it| it.global);
        call.or_else(|| self.listeners.get(&local).map(|(global, _)| *global))
    }

    /// What its request does not say itself.
    fn introduce(&self, scene: &Scene<'_>, context: &mut CallContext) {
        context.http = scene.facts.cloned();
        let principal = scene.facts.map_or(&self.principal, |it| &it.principal);
        context.principal.clone_from(principal);
    }

    fn begin(&mut self, scene: &mut Scene<'_>, stream: u64, mut call: session::Call) {
        let local = call.context.call;
        let global = scene.flights.add(scene.owner, local);
        let weight = call.context.weight;
        self.calls.insert(local, Place { global, stream, weight });
        call.context.call = global;
        self.introduce(scene, &mut call.context);
        let upshot = scene.calls.begin(scene.now, call);
        self.conclude(scene, local, upshot);
    }

    fn notify(
        &mut self,
        scene: &mut Scene<'_>,
        method: &MethodName,
        params: Raw,
        mut context: CallContext,
    ) {
        let local = context.call;
        let global = scene.flights.add(scene.owner, local);
        context.call = global;
        let weight = context.weight;
        if scene.calls.notify(method, params, context) {
            self.listeners.insert(local, (global, weight));
        } else {
            scene.flights.end(global);
            self.machine.handle(session::Input::Heard(local));
        }
    }

    fn conclude(&mut self, scene: &mut Scene<'_>, local: CallId, upshot: Upshot) {
        if matches!(upshot, Upshot::Answered(_)) {
            self.forget(scene, local);
        }
        upshot.tell(local, |it| self.machine.handle(it));
    }

    fn forget(&mut self, scene: &mut Scene<'_>, local: CallId) -> Option<Place> {
        let place = self.calls.remove(&local)?;
        scene.flights.end(place.global);
        Some(place)
    }
}
