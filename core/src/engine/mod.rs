//! Calls under way, without IO: one table of them, with an explicit state each, for any number of peers.
//!
//! [`Endpoint`](crate::http::Endpoint) gives it the peers.

mod begin;
mod call;
mod cancel;
mod computation;
mod concurrency;
mod cursors;
mod dispatch;
mod handler_event;
mod host;
mod measured;
mod id;
pub mod key_ring;
mod notifications;
mod peer;
mod questions;
mod read_cache;
pub mod request_state;
mod requests;
mod returned_questions;
mod rounds;
mod routes;
mod sealing;
mod spans;
mod state;
mod subscribed;
mod test_mode;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};

pub use self::call::Load;
pub(crate) use self::peer::{PeerLoad, PeerSession, Pump};
pub(crate) use self::rounds::MAX_BYTES as MAX_SUSPENDED_BYTES;
pub(crate) use self::sealing::derive;
use self::{
    call::CallTable, concurrency::ConcurrencyLimits, read_cache::ReadCache, rounds::Rounds,
    sealing::Sealing,
};
pub use self::{
    computation::{Computation, Computed, MAX_UNDER_LOCK},
    handler_event::HandlerEvent,
    host::{HostReply, HostRequest},
    id::{CallId, ConnectionId, ExchangeId, PeerId, RunId, Ticket},
    sealing::Start,
    spans::{AnswerError, AnsweredRequest, SpanDescription, SpanSubject},
    test_mode::TestMode,
};
pub(crate) use crate::session::server::CallEvent;
use crate::{
    error::Fault,
    log_events::LogEvent,
    protocol::{ClientKey, Implementation, Method, Question, Raw, Response, is_within_share, json},
    router::{Components, Failure, Handler, MiddlewareFrame, RoundLimits},
    session::{
        InboundKey,
        asking::AskId,
        server::{CallContext, ListKind, SessionConfig},
    },
};

/// The reason given for ending the subscriptions of a peer that does not read.
pub(crate) const TOO_SLOW: &str =
    "the client leaves too much unread: listen again, and read what has changed";
/// Bytes of unanswered requests at which reading should pause.
pub(crate) const MAX_IN_FLIGHT_BYTES: usize = 64 * 1024 * 1024;
/// Running handlers of notifications at which reading should pause.
pub(crate) const MAX_NOTIFICATIONS: usize = 1_000;

/// An event of a call, for the session of its peer.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) call: CallId,
    pub(crate) peer: PeerId,
    pub(crate) key: InboundKey,
    pub(crate) event: CallEvent,
}

/// Work for the host, in the order in which the engine decided it.
#[derive(Debug)]
pub enum Effect {
    /// Run this handler and report back that it is done.
    Run(Box<Run>),
    /// Stop this handler: its request was cancelled, or its connection closed.
    Cancel(RunId),
    /// A suspended handler goes on for a new request, in these circumstances.
    Resume { run: RunId, context: Box<CallContext> },
    /// The client's answer to a running handler.
    Answered { run: RunId, ask: AskId, outcome: Box<Result<Raw, Fault>> },
    /// A client subscribed to this resource, which the handler of its template may look after.
    Subscribed { handler: Handler, uri: String },
    /// Answer this request with `EndpointInput::Host`.
    Host(Ticket, Box<HostRequest>),
    /// The reply to this request is not needed any more.
    CancelHost(Ticket),
    /// A request was answered without a handler. Only hosts that trace get it ([`Traces`](crate::router::Traces)).
    Span(Box<AnsweredRequest>),
    /// An event for the log; `to_string` returns its text. Hosts of a driver get those that are about errors in the server's own
    /// code, whose details callers do not get. The driver writes the others.
    Log(Box<LogEvent>),
}

/// A handler to be run, with its input and context.
#[derive(Debug)]
pub struct Run {
    /// The number under which the handler reports.
    pub id: RunId,
    pub handler: Handler,
    /// The handler's input: a JSON object.
    pub input: String,
    pub context: CallContext,
    /// True for a notification, which has no answer.
    pub is_notification: bool,
    /// Middleware is to be run around the handler.
    pub middleware_frame: Option<Box<MiddlewareFrame>>,
    /// The subject of its span, if the host traces.
    pub subject: Option<Box<SpanSubject>>,
}

/// The answer to a request other than the one that is being handled.
#[derive(Debug)]
pub(crate) struct LateAnswer {
    pub(crate) peer: PeerId,
    pub(crate) key: InboundKey,
    pub(crate) answer: Result<Response, Fault>,
}

/// All calls of any number of peers. A [`PeerSession`] drives it for each of them.
#[derive(Debug)]
pub(crate) struct Engine {
    components: Arc<Components>,
    calls: CallTable,
    concurrency: ConcurrencyLimits,
    rounds: Rounds,
    read_cache: ReadCache,
    sealing: Sealing,
    test_mode: Option<TestMode>,
    effects: VecDeque<Effect>,
    computations: VecDeque<Computation>,
    late: VecDeque<LateAnswer>,
    /// Numbers questions that the engine asks for handlers which returned them.
    next_ask: u64,
    references: u32,
    is_stopping: bool,
    /// Texts that were reported once, and are not again.
    reported: HashSet<String>,
}

impl Engine {
    pub(crate) fn new(components: Arc<Components>, start: &Start) -> Self {
        Self {
            sealing: Sealing::new(
                &components.server.info.name,
                &components.server.request_state_keys,
                start,
            ),
            components,
            calls: CallTable::default(),
            concurrency: ConcurrencyLimits::default(),
            rounds: Rounds::default(),
            read_cache: ReadCache::default(),
            test_mode: start.test_mode,
            effects: VecDeque::new(),
            computations: VecDeque::new(),
            late: VecDeque::new(),
            next_ask: 0,
            references: 0,
            is_stopping: false,
            reported: HashSet::new(),
        }
    }

    /// Replaces the keys of what clients carry.
    pub(crate) fn set_state_keys(&mut self, keys: &[Vec<u8>]) {
        self.sealing.set_keys(keys);
    }

    /// Replaces what the server offers; `changed` are the lists that differ.
    pub(crate) fn set_components(&mut self, components: Arc<Components>, changed: &[ListKind]) {
        if changed.contains(&ListKind::Resources) {
            self.read_cache.clear();
        }
        self.components = components;
    }

    /// Forgets what was read of the resource with this URI.
    pub(crate) fn forget_reads(&mut self, uri: &str) {
        self.read_cache.forget(uri);
    }

    /// Forgets what was read of every resource.
    pub(crate) fn forget_all_reads(&mut self) {
        self.read_cache.clear();
    }

    pub(crate) fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub(crate) fn next_computation(&mut self) -> Option<Computation> {
        self.computations.pop_front()
    }

    /// The next answer to a request other than the one that is being handled.
    pub(crate) fn next_late(&mut self) -> Option<LateAnswer> {
        self.late.pop_front()
    }

    /// The call that a handler runs for.
    pub(crate) fn request_of(&self, run: RunId) -> Option<(PeerId, InboundKey)> {
        let call = self.calls.get(self.calls.call_of(run)?)?;
        Some((call.peer, call.key))
    }

    /// The number and bytes of all calls.
    pub(crate) fn load(&self) -> Load {
        self.calls.load()
    }

    /// Returns the time at which [`expire`](Self::expire) is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.calls.deadline()
    }

    /// Returns the maximum number of suspended handlers.
    pub(crate) fn suspended_limit(&self) -> usize {
        self.limits().suspended_limit
    }

    /// Returns whether nothing of any call is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.concurrency.is_empty() && self.rounds.is_empty()
    }

    /// Returns whether so much is unanswered that a shell should stop reading.
    pub(crate) fn is_full(&self) -> bool {
        self.is_heavy() || self.load().notifications > MAX_NOTIFICATIONS
    }

    /// Returns whether unanswered requests and notifications hold too many bytes.
    pub(crate) fn is_heavy(&self) -> bool {
        self.load().bytes > MAX_IN_FLIGHT_BYTES
    }

    /// Returns whether a client has less than its share of what may be unanswered, so that it is served although others
    /// hold more. Their requests and bytes together stay below twice the limits.
    pub(crate) fn leaves_room_to(&self, client: Option<ClientKey>, max_requests: usize) -> bool {
        let Some(client) = client else { return false };
        let (all, own) = (self.load(), self.calls.load_of(client));
        let clients = self.calls.clients() + usize::from(own == Load::default());
        // One request more, of at least one byte.
        is_within_share(max_requests, clients, own.requests + 1, all.requests + 1)
            && is_within_share(MAX_IN_FLIGHT_BYTES, clients, own.bytes + 1, all.bytes + 1)
    }

    /// Seals a text for one purpose, so that clients can carry it. Returns its nonce and the sealed bytes.
    pub(crate) fn seal(&mut self, purpose: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.sealing.seal_text(purpose, text)
    }

    /// Opens what was sealed for this purpose by a process with the same keys.
    pub(crate) fn unseal(&self, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.sealing.keys().open(purpose, sealed)
    }

    /// Returns the keys with which a store is sealed, and a secret for it that nothing else has.
    #[cfg(feature = "http")]
    pub(crate) fn store_keys(&self) -> (key_ring::KeyRing, [u8; 32]) {
        self.sealing.store_keys()
    }

    /// Returns the beginning of all names in a store that servers of this name share.
    #[cfg(feature = "http")]
    pub(crate) fn scope(&self) -> String {
        self.sealing.keys().scope()
    }

    /// Returns the time in seconds since 1970.
    pub(crate) fn unix(&self, now: Instant) -> u64 {
        self.sealing.unix(now)
    }

    /// Returns a number that other processes, and earlier ones, do not have.
    pub(crate) fn process(&self) -> u64 {
        self.sealing.process()
    }

    /// Returns the lists that the server declares in its answer to `initialize`.
    pub(crate) fn declared_lists(&self) -> Vec<ListKind> {
        self.components.declared_lists()
    }

    fn limits(&self) -> RoundLimits {
        let limits = self.components.server.rounds;
        self.test_mode.map_or(limits, |mode| mode.limits(limits))
    }

    /// A question as it goes out in a request of its own.
    fn as_request(&self, ask: AskId, question: Question) -> (AskId, Method, Raw) {
        let question = match self.test_mode {
            None => question,
            Some(_) => TestMode::named(question),
        };
        (ask, question.method, question.params)
    }

    pub(crate) fn log(&mut self, event: LogEvent) {
        self.effects.push_back(Effect::Log(Box::new(event)));
    }

    fn report(&mut self, text: impl Into<String>) {
        self.log(LogEvent::problem(text));
    }

    /// Returns whether the server stops, so that it cuts calls.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Returns the name of the server.
    pub(crate) fn server_name(&self) -> &str {
        &self.components.server.info.name
    }
}

/// The reply to a request that no handler will ever answer, as when a handler was dropped.
pub fn abandoned() -> Failure {
    Failure::Exception {
        kind: "abandoned".into(),
        message: "the handler ended without an answer".into(),
        traceback: String::new(),
    }
}

pub(crate) fn session_config(components: &Components, start: &Start) -> Arc<SessionConfig> {
    Arc::new(SessionConfig {
        server_info: server_info(&components.server.info),
        revisions: components.server.revisions.clone(),
        dialects: components.server.dialects.clone(),
        replaced: components.replaced(),
        routed: components.routed(),
        seed: derive(&start.seed, "session", 0),
    })
}

/// The configuration of sessions for these components, where it differs from `config`.
pub(crate) fn changed_config(
    config: &SessionConfig,
    components: &Components,
) -> Option<Arc<SessionConfig>> {
    let (replaced, routed) = (components.replaced(), components.routed());
    let is_same = replaced == config.replaced && routed == config.routed;
    (!is_same).then(|| Arc::new(SessionConfig { replaced, routed, ..config.clone() }))
}

fn server_info(info: &Implementation) -> String {
    let mut text = String::new();
    json::push(&mut text, info);
    text
}
