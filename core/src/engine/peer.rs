//! One peer of the engine: its session, and the streams of its requests. All frames of the peer pass through here.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::{
    Engine,
    id::{CallId, PeerId},
};
use crate::{
    error::Fault,
    log_events::{EventFacts, EventKind, LogEvent},
    metrics::{CallNumber, Outcome},
    protocol::{MethodName, Principal, Raw, Response, TraceIds},
    session::{
        InboundKey,
        server::{
            self as session, About, CallContext, CallEvent, HttpFacts, OutgoingFrame, Output,
            ServerSession,
        },
    },
};

/// The reason of messages that did not become calls.
const INVALID_MESSAGE: &str = "invalid_message";

/// The context in which a session handles one input.
pub(crate) struct Pump<'a> {
    pub(crate) now: Instant,
    pub(crate) engine: &'a mut Engine,
    /// The HTTP request that is being handled.
    pub(crate) facts: Option<&'a Arc<HttpFacts>>,
}

#[derive(Debug)]
pub(crate) struct PeerSession {
    pub(crate) id: PeerId,
    pub(crate) machine: ServerSession,
    /// The principal of all messages of this peer; over HTTP each request has its own instead.
    pub(crate) principal: Option<Arc<Principal>>,
    /// The address that all messages of this peer come from.
    pub(crate) remote: Option<IpAddr>,
    /// `true` if the peer leaves too much unread.
    pub(crate) is_lagging: bool,
    /// The id of its session over HTTP, for logs.
    pub(crate) session_id: Option<Arc<str>>,
    /// `true` once the peer has disconnected, or its session has ended.
    is_closed: bool,
    /// The time of the peer's last message.
    last_seen: Option<Instant>,
    requests: FxHashMap<InboundKey, MessageInProgress>,
    /// Notifications that handlers run for.
    notifications: FxHashMap<InboundKey, MessageInProgress>,
    /// Bytes of these requests and notifications.
    bytes: usize,
}

/// A request or notification of the peer that is being handled.
#[derive(Debug)]
struct MessageInProgress {
    call: CallId,
    stream: u64,
    /// Bytes of the message.
    weight: usize,
    /// The time at which it was read.
    begun: Instant,
    /// `true` if the answer is a stream of changes.
    listens: bool,
    /// The place at which its end is counted.
    number: Option<CallNumber>,
    /// The span that caused the message, as `_meta` names it.
    cause: Option<Box<TraceIds>>,
    /// The HTTP request that contained the message.
    http: Option<Arc<HttpFacts>>,
}

/// The number and bytes of one peer's messages that are being handled.
pub(crate) struct PeerLoad {
    /// Requests that are not answered; subscriptions do not count.
    pub(crate) requests: usize,
    /// Notifications that handlers run for.
    pub(crate) notifications: usize,
    /// Bytes of all these messages.
    pub(crate) bytes: usize,
}

impl PeerSession {
    pub(crate) fn new(id: PeerId, machine: ServerSession) -> Self {
        Self {
            id,
            machine,
            principal: None,
            remote: None,
            is_lagging: false,
            session_id: None,
            is_closed: false,
            last_seen: None,
            requests: FxHashMap::default(),
            notifications: FxHashMap::default(),
            bytes: 0,
        }
    }

    /// Returns whether requests that came on this stream are under way.
    pub(crate) fn is_busy(&self, stream: u64) -> bool {
        self.requests.values().any(|message| message.stream == stream)
    }

    /// Returns whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns whether its session is at rest.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.requests.is_empty() && self.notifications.is_empty() && self.machine.is_at_rest()
    }

    pub(crate) fn load(&self) -> PeerLoad {
        PeerLoad {
            requests: self.requests.len().saturating_sub(self.machine.listening()),
            notifications: self.notifications.len(),
            bytes: self.bytes,
        }
    }

    /// Ends an idle session of a dialect whose sessions expire while their connection stays open.
    pub(crate) fn expire(&mut self, now: Instant, idle: Duration) {
        let is_over = self.last_seen.is_some_and(|last_seen| now.duration_since(last_seen) >= idle);
        if is_over && self.is_idle() && self.machine.may_expire() {
            self.machine.handle(session::Input::Expired);
        }
    }

    /// Returns the stream of a request.
    pub(crate) fn stream_of(&self, key: InboundKey) -> Option<u64> {
        self.requests.get(&key).map(|message| message.stream)
    }

    /// Passes an input to the session, the resulting calls to the engine, and frames to `send`, with the stream to write
    /// to or `None` for the peer as a whole. Messages that belong to no request go to `stream`.
    #[inline]
    pub(crate) fn handle(
        &mut self,
        pump: &mut Pump<'_>,
        stream: u64,
        input: session::Input<'_>,
        mut send: impl FnMut(Option<u64>, OutgoingFrame),
    ) {
        let done = match &input {
            session::Input::Call(key, CallEvent::Answered(answer)) => {
                self.answered(pump, *key, answer)
            }
            session::Input::Call(key, CallEvent::Listening(_)) => {
                self.listening(pump, *key);
                None
            }
            session::Input::Closed => {
                self.is_closed = true;
                None
            }
            session::Input::Call(key, CallEvent::NotificationDone) => {
                self.forget_notification(*key);
                None
            }
            session::Input::Frame(_) | session::Input::Parsed(_) | session::Input::TooLong(_) => {
                self.last_seen = Some(pump.now);
                None
            }
            _ => None,
        };
        self.machine.handle(input);
        self.drain(pump, done.map_or(stream, |message| message.stream), &mut send);
    }

    /// Passes the calls of what the session has handled to the engine. Messages that belong to no request go to `current`.
    #[inline]
    pub(crate) fn drain(
        &mut self,
        pump: &mut Pump<'_>,
        current: u64,
        emit: &mut impl FnMut(Option<u64>, OutgoingFrame),
    ) {
        // The streams of calls that end here, for what is still sent about them.
        let mut ended: Vec<(InboundKey, u64)> = Vec::new();
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Send(sent) => {
                    if let (About::Reply(None), Some(code)) = (sent.about, sent.error) {
                        self.log_invalid(pump, code);
                    }
                    let stream = self.stream_about(pump, sent.about, &ended, current);
                    emit(stream, sent);
                }
                Output::Call(call) => self.begin(pump, current, call),
                Output::Cancel(key) => {
                    if let Some(message) = self.forget(key) {
                        message.count(pump, Outcome::Cancelled);
                        if self.is_closed {
                            self.log_cut(pump, &message);
                        }
                        ended.push((key, message.stream));
                        pump.engine.cancel(pump.now, message.call);
                    }
                }
                Output::Answered { call: key, ask, outcome } => {
                    if let Some(call) = self.call(key) {
                        let event = pump.engine.answered(pump.now, call, ask, outcome);
                        let over = self.apply(pump, key, event);
                        ended.extend(over.map(|message| (key, message.stream)));
                    }
                }
                Output::AnswerReceived { call: key, ask, answer } => {
                    if let Some(call) = self.call(key) {
                        let event = pump.engine.answer_received(pump.now, call, ask, answer);
                        let over = self.apply(pump, key, event);
                        ended.extend(over.map(|message| (key, message.stream)));
                    }
                }
                Output::Subscribed(uris) => pump.engine.subscribed(uris),
                Output::Log(key, event) => self.log_about(pump, key, *event),
                Output::Notified { key, method, params, mut context } => {
                    self.add_http_context(pump, &mut context);
                    self.notify(pump, key, &method, params, context);
                }
            }
        }
    }

    /// Returns the stream for a frame, and forgets the request that a reply ends. `ended` are the streams of requests that
    /// were forgotten before.
    fn stream_about(
        &mut self,
        pump: &mut Pump<'_>,
        about: About,
        ended: &[(InboundKey, u64)],
        current: u64,
    ) -> Option<u64> {
        let (key, stream) = match about {
            About::Peer => return None,
            About::Reply(None) => return Some(current),
            About::Call(key) => (key, self.stream_of(key)),
            // The session alone knows when a subscription ends.
            About::Reply(Some(key)) => {
                let message = self.forget(key);
                if message.as_ref().is_some_and(|message| message.listens) {
                    self.log_stream_end(pump);
                }
                (key, message.map(|message| message.stream))
            }
        };
        let before = || ended.iter().find(|entry| entry.0 == key).map(|entry| entry.1);
        Some(stream.or_else(before).unwrap_or(current))
    }

    /// Returns the call of a request or notification.
    fn call(&self, key: InboundKey) -> Option<CallId> {
        let message = self.requests.get(&key).or_else(|| self.notifications.get(&key));
        message.map(|message| message.call)
    }

    /// Adds the parts of the context that the message does not contain.
    fn add_http_context(&self, pump: &Pump<'_>, context: &mut CallContext) {
        context.http = pump.facts.cloned();
        let (principal, remote) = match pump.facts {
            Some(facts) => (&facts.principal, facts.remote),
            None => (&self.principal, self.remote),
        };
        context.principal.clone_from(principal);
        context.remote = remote;
    }

    fn begin(&mut self, pump: &mut Pump<'_>, stream: u64, mut call: session::Call) {
        let (key, weight) = (call.key, call.context.weight);
        self.add_http_context(pump, &mut call.context);
        let number = pump.engine.call_number(&call);
        let cause = call.context.cause.clone();
        let (call, event) = pump.engine.begin(pump.now, self.id, call);
        let message = MessageInProgress {
            stream,
            weight,
            number,
            cause,
            ..MessageInProgress::new(pump, call)
        };
        match &event {
            CallEvent::Answered(answer) => {
                message.count_answer(pump, answer);
                if let Err(fault) = answer {
                    self.log_fault(pump, key, None, &message, fault);
                }
            }
            event => {
                self.requests.insert(key, message);
                self.bytes += weight;
                if matches!(event, CallEvent::Listening(_)) {
                    self.listening(pump, key);
                }
            }
        }
        self.machine.handle(session::Input::Call(key, event));
    }

    fn notify(
        &mut self,
        pump: &mut Pump<'_>,
        key: InboundKey,
        method: &MethodName,
        params: Raw,
        context: CallContext,
    ) {
        let (weight, cause) = (context.weight, context.cause.clone());
        let Some(call) = pump.engine.notify(self.id, key, method, params, context) else {
            let done = session::Input::Call(key, CallEvent::NotificationDone);
            return self.machine.handle(done);
        };
        let message = MessageInProgress { weight, cause, ..MessageInProgress::new(pump, call) };
        self.notifications.insert(key, message);
        self.bytes += weight;
    }

    /// Passes an event of a call to the session. Returns what is known of the call if that ends it.
    fn apply(
        &mut self,
        pump: &mut Pump<'_>,
        key: InboundKey,
        event: CallEvent,
    ) -> Option<MessageInProgress> {
        let message = match &event {
            CallEvent::Answered(answer) => self.answered(pump, key, answer),
            _ => None,
        };
        self.machine.handle(session::Input::Call(key, event));
        message
    }

    /// Counts the end of a request, and logs it if its answer is an error. Returns what is known of the request.
    #[inline]
    fn answered(
        &mut self,
        pump: &mut Pump<'_>,
        key: InboundKey,
        answer: &Result<Response, Fault>,
    ) -> Option<MessageInProgress> {
        let message = self.forget(key)?;
        message.count_answer(pump, answer);
        if let Err(fault) = answer {
            let duration = pump.now.saturating_duration_since(message.begun);
            self.log_fault(pump, key, Some(duration), &message, fault);
        }
        Some(message)
    }

    /// Counts a subscription when it begins, because its end says nothing about the server.
    #[cold]
    fn listening(&mut self, pump: &mut Pump<'_>, key: InboundKey) {
        if let Some(message) = self.requests.get_mut(&key) {
            message.count(pump, Outcome::Ok);
            message.number = None;
        }
        self.log_listening(pump, key);
    }

    /// Logs that a request is answered with an error. `duration`: the time that it took, unless it was answered at once.
    #[cold]
    fn log_fault(
        &self,
        pump: &mut Pump<'_>,
        key: InboundKey,
        duration: Option<Duration>,
        message: &MessageInProgress,
        fault: &Fault,
    ) {
        let Some((id, method, client)) = self.machine.request(key) else { return };
        let mut facts = EventFacts {
            duration,
            trace: message.trace_ids(),
            request_id: Some(id.clone()),
            client: client.name(),
            ..EventFacts::default()
        };
        if let Some(reference) = &fault.reference {
            self.add_caller(pump, &mut facts);
            return pump.engine.complete_failure(reference, facts);
        }
        let Some(event) = LogEvent::for_fault(fault, method) else { return };
        facts.component.clone_from(&event.facts.component);
        self.log(pump, event.with(facts));
    }

    /// Logs that a message of the peer did not become a call. What is wrong with it may quote it, so only the code is logged.
    #[cold]
    fn log_invalid(&self, pump: &mut Pump<'_>, code: i64) {
        let detail = format!("the message is not valid here (error {code})");
        pump.engine.metrics().refused(INVALID_MESSAGE);
        self.log(pump, LogEvent::new(EventKind::CallRejected, detail).because(INVALID_MESSAGE));
    }

    /// Logs that the answer to a stateless HTTP request is a stream of changes from now on.
    #[cold]
    fn log_listening(&mut self, pump: &mut Pump<'_>, key: InboundKey) {
        let PeerId::Exchange(_) = self.id else { return };
        if let Some(message) = self.requests.get_mut(&key) {
            message.listens = true;
        }
        let mut event = LogEvent::new(EventKind::StreamOpened, "");
        event.facts.client = self.machine.request(key).and_then(|(.., client)| client.name());
        self.log(pump, event);
    }

    /// Logs the end of such a stream.
    #[cold]
    fn log_stream_end(&self, pump: &mut Pump<'_>) {
        let (reason, detail) = match (self.is_closed, pump.engine.is_stopping()) {
            (_, true) => ("server_stopped", "the server stopped"),
            (true, false) => ("client_left", "its client left"),
            (false, false) => ("complete", "it is complete"),
        };
        self.log(pump, LogEvent::new(EventKind::StreamClosed, detail).because(reason));
    }

    /// Logs that a handler is stopped because of the end of its peer.
    #[cold]
    fn log_cut(&self, pump: &mut Pump<'_>, message: &MessageInProgress) {
        if message.listens {
            return self.log_stream_end(pump);
        }
        let Some(handler) = pump.engine.handler_facts(message.call) else { return };
        let (reason, detail) = match self.id {
            _ if pump.engine.is_stopping() => ("server_stopped", "the server stopped"),
            PeerId::Session(_) => ("session_ended", "its session ended"),
            PeerId::Exchange(_) | PeerId::Connection(_) => ("client_left", "its client left"),
        };
        let facts = EventFacts {
            client: self.machine.client().and_then(|(_, client)| client.name()),
            duration: Some(pump.now.saturating_duration_since(message.begun)),
            trace: message.trace_ids(),
            ..handler
        };
        self.log(pump, LogEvent::new(EventKind::CallCut, detail).because(reason).with(facts));
    }

    /// Logs an event of the peer; about this request, if it is about one.
    #[cold]
    fn log_about(&self, pump: &mut Pump<'_>, key: Option<InboundKey>, mut event: LogEvent) {
        if let Some(message) = key.and_then(|key| self.requests.get(&key)) {
            let handler = pump.engine.handler_facts(message.call);
            event.facts.component = handler.and_then(|handler| handler.component);
            event.facts.duration = Some(pump.now.saturating_duration_since(message.begun));
            event.facts.trace = message.trace_ids();
        }
        self.log(pump, event);
    }

    /// Logs an event of the peer, with what is known of the peer.
    #[cold]
    fn log(&self, pump: &mut Pump<'_>, mut event: LogEvent) {
        self.add_caller(pump, &mut event.facts);
        pump.engine.log(event);
    }

    /// Adds what is known of the peer.
    fn add_caller(&self, pump: &Pump<'_>, facts: &mut EventFacts) {
        if let Some(http) = pump.facts {
            facts.principal.clone_from(&http.principal);
            facts.remote = http.remote;
            facts.session.clone_from(&http.session_id);
        } else {
            facts.principal.clone_from(&self.principal);
            facts.remote = self.remote;
        }
        if facts.session.is_none() {
            facts.session.clone_from(&self.session_id);
        }
    }

    fn forget(&mut self, key: InboundKey) -> Option<MessageInProgress> {
        let message = self.requests.remove(&key)?;
        self.bytes -= message.weight;
        Some(message)
    }

    fn forget_notification(&mut self, key: InboundKey) {
        if let Some(message) = self.notifications.remove(&key) {
            self.bytes -= message.weight;
        }
    }
}

impl MessageInProgress {
    /// Creates a message, which has just been read, of a call about which nothing else is known.
    fn new(pump: &Pump<'_>, call: CallId) -> Self {
        Self {
            call,
            stream: 0,
            weight: 0,
            begun: pump.now,
            listens: false,
            number: None,
            cause: None,
            http: pump.facts.cloned(),
        }
    }

    /// Returns the ids of the trace and of the span that caused the message.
    fn trace_ids(&self) -> Option<TraceIds> {
        self.cause.as_deref().copied().or_else(|| self.http.as_ref()?.trace_ids())
    }

    /// Counts the end of a request that gets this answer.
    #[inline]
    fn count_answer(&self, pump: &Pump<'_>, answer: &Result<Response, Fault>) {
        if self.number.is_some() {
            self.count(pump, Outcome::of_answer(answer));
        }
    }

    /// Counts the end of a request.
    #[inline]
    fn count(&self, pump: &Pump<'_>, outcome: Outcome) {
        if let Some(number) = self.number {
            let duration = pump.now.saturating_duration_since(self.begun);
            pump.engine.metrics().ended(number, outcome, duration);
        }
    }
}
