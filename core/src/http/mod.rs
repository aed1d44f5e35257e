//! An endpoint: stateless requests, sessions and their streams, and message connections, as one state machine without
//! IO.
//!
//! The contract: after each `handle`, call `poll` until it returns `None`; when `deadline` has come, `handle` a
//! [`EndpointInput::Tick`].

mod admission;
mod admitted;
mod amounts;
#[cfg(feature = "auth")]
mod authorization;
mod challenge;
mod config;
mod connections;
mod content;
mod delivery;
mod ended_sessions;
mod events;
mod exchange;
mod expiry;
mod followed;
mod forwarded;
mod guard;
mod handed_over;
mod io;
mod lifted;
mod logging;
mod opening;
mod other_processes;
mod part;
mod probes;
mod process_message;
mod reader;
mod refusal;
mod reply;
mod requests;
mod routes;
mod sealed_id;
mod session_changes;
mod session_shares;
mod session_values;
mod sessions;
mod shared_exchange;
mod stored;
mod stored_events;
mod streams;
mod sweep;
mod unreadable;
mod unsent;
mod worker_metrics;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

#[cfg(feature = "auth")]
pub use self::authorization::MountPoint;
#[cfg(feature = "auth")]
pub(crate) use self::authorization::Unauthenticated;
pub use self::config::{EndpointConfig, SessionMode};
pub use self::forwarded::Peer;
pub use self::guard::{Arrival, Cors, GuardConfig};
pub use self::io::{EndpointInput, EndpointOutput};
pub use self::part::Part;
pub use self::reader::Reader;
pub use self::refusal::Refused;
pub use self::stored::StoreTicket;
pub use self::worker_metrics::{WorkersReply, WorkersRequest};
pub use self::{
    admission::Admission,
    admitted::{AdmittedHead, AdmittedRequest},
};
use self::{
    exchange::{Exchange, ExchangeOwner},
    expiry::Expiry,
    followed::FollowedStreams,
    handed_over::HandedOver,
    opening::AbsentSessions,
    session_values::StoredValues,
    sessions::Sessions,
    stored::Stored,
    unreadable::Unreadable,
    unsent::Unsent,
    worker_metrics::Collections,
};
pub use crate::engine::{ConnectionId, ExchangeId};
use crate::{
    engine::{
        CallEvent, Delivery, Engine, Load, PeerId, PeerSession, Pump, RunId, Start, TOO_SLOW,
        changed_config, session_config,
    },
    error::Fault,
    metrics::Metrics,
    router::Components,
    session::{
        InboundKey,
        asking::Answers,
        server::{self as session, HttpFacts, OutgoingFrame, SessionConfig},
    },
};

/// The state machine of an endpoint.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    admission: Admission,
    session: Arc<SessionConfig>,
    engine: Engine,
    /// These tables have the same order in each run, so that equal inputs give equal outputs.
    exchanges: FxHashMap<ExchangeId, Exchange>,
    sessions: Sessions,
    absent: AbsentSessions,
    connections: FxHashMap<ConnectionId, Box<PeerSession>>,
    /// The principal and headers of every message connection, in a test.
    connection_facts: Option<Arc<HttpFacts>>,
    outputs: VecDeque<EndpointOutput>,
    next_sweep: Option<Instant>,
    /// The time between two sweeps.
    period: Duration,
    expiry: Expiry,
    is_closing: bool,
    /// `true` if other processes serve the address as well.
    is_shared: bool,
    stored: Stored,
    values: StoredValues,
    unsent: Unsent,
    unreadable: Unreadable,
    followed: FollowedStreams,
    handed_over: HandedOver,
    collections: Collections,
}

impl Endpoint {
    pub fn new(components: Arc<Components>, config: EndpointConfig, start: &Start) -> Self {
        let session = session_config(&components, start);
        Self {
            admission: Admission::new(
                &config,
                &session,
                Arc::clone(&components.routes),
                Arc::clone(&components.server.metrics),
            ),
            period: sweep::period(&config),
            config,
            session,
            engine: Engine::new(components, start),
            exchanges: FxHashMap::default(),
            sessions: Sessions::new(start.seed),
            absent: AbsentSessions::default(),
            connections: FxHashMap::default(),
            connection_facts: None,
            outputs: VecDeque::new(),
            next_sweep: None,
            expiry: Expiry::default(),
            is_closing: false,
            is_shared: false,
            stored: Stored::default(),
            values: StoredValues::default(),
            unsent: Unsent::default(),
            unreadable: Unreadable::default(),
            followed: FollowedStreams::default(),
            handed_over: HandedOver::default(),
            collections: Collections::default(),
        }
    }

    /// Replaces the keys of what clients carry. The first seals from now on, and all of them open.
    pub fn set_state_keys(&mut self, keys: &[Vec<u8>]) {
        self.engine.set_state_keys(keys);
    }

    /// Sets the principal and headers of every message connection.
    #[must_use]
    pub(crate) fn with_facts(mut self, facts: HttpFacts) -> Self {
        self.connection_facts = Some(Arc::new(facts));
        self
    }

    pub fn handle(&mut self, now: Instant, input: EndpointInput<'_>) {
        match input {
            EndpointInput::Request(exchange, request) => {
                self.handle_request(now, exchange, *request);
            }
            EndpointInput::Disconnected(exchange) => self.handle_gone(now, exchange),
            EndpointInput::Lagging(reader, is_lagging) => self.set_lagging(reader, is_lagging),
            EndpointInput::CutSubscriptions(reader) => {
                let input = session::Input::CutSubscriptions(TOO_SLOW);
                match reader {
                    Reader::Exchange(id) => self.pass_to_exchange(now, id, input),
                    Reader::Connection(id) => self.pass_to_connection(now, id, input),
                }
            }
            EndpointInput::Opened(connection, principal, remote) => {
                self.open_connection(connection, principal, remote);
            }
            EndpointInput::ExpiresAt(connection, at) => self.expire_connection_at(connection, at),
            EndpointInput::Message(connection, _) if self.expiry.has_expired(connection) => (),
            EndpointInput::Message(connection, frame) => {
                self.pass_to_connection(now, connection, session::Input::Parsed(frame));
            }
            EndpointInput::TooLong(connection, message) => {
                self.pass_to_connection(now, connection, session::Input::TooLong(message));
            }
            EndpointInput::ConnectionClosed(connection) => self.close_connection(now, connection),
            EndpointInput::EndOfInput(connection) => self.end_input(now, connection),
            EndpointInput::Handler(handler, event) => {
                let is_lagging = event.is_report() && self.is_lagging(handler);
                if let Some(event) = self.store_values_first(now, handler, event)
                    && let Some(delivery) =
                        self.engine.handle_event(now, is_lagging, handler, event)
                {
                    self.deliver_event(now, delivery);
                }
            }
            EndpointInput::LeftValues(handler, left) => self.note_left_values(handler, left),
            EndpointInput::Host(ticket, reply) => {
                if let Some(delivery) = self.engine.handle_host(now, ticket, reply) {
                    self.deliver_event(now, delivery);
                }
            }
            EndpointInput::Computed(computed) => {
                if let Some(delivery) = self.engine.handle_computed(now, *computed) {
                    self.deliver_event(now, delivery);
                }
            }
            EndpointInput::PageDone(page) => self.announce_page(now, page),
            EndpointInput::Published(message) => self.handle_published(now, message),
            EndpointInput::MessagesLost => self.make_up_for_lost_messages(now),
            EndpointInput::MessagesUnreadable(count) => self.note_unreadable(now, count),
            EndpointInput::Stored(ticket, reply) => self.handle_stored(now, ticket, reply),
            EndpointInput::Workers(reply) => self.handle_workers(now, reply),
            EndpointInput::CloseStream(handler, retry) => {
                if let Some((PeerId::Session(number), key)) = self.engine.request_of(handler) {
                    self.let_poll(number, key, retry);
                }
            }
            EndpointInput::Components(components, changed) => {
                if let Some(config) = changed_config(&self.session, &components) {
                    self.session = Arc::clone(&config);
                    self.pass_to_all(now, |()| session::Input::Config(Arc::clone(&config)));
                }
                self.engine.set_components(components, &changed);
                self.announce_lists(now, &changed);
            }
            EndpointInput::Updated(uri) => self.announce_update(now, uri),
            EndpointInput::Tick => self.tick(now),
            EndpointInput::EndStreams => self.end_streams(now),
            EndpointInput::ShutDown => self.shut_down(now),
            EndpointInput::Closed => self.close(now),
        }
        while let Some(late) = self.engine.next_late() {
            self.pass_to_peer(
                now,
                late.peer,
                session::Input::Call(late.key, CallEvent::Answered(late.answer)),
            );
        }
        if self.stored.is_there() {
            self.give_session_values(now);
        }
        self.close_expired();
        self.plan_sweep(now);
    }

    pub fn poll(&mut self) -> Option<EndpointOutput> {
        if self.has_taken_over() {
            self.send_to_other_processes();
        }
        let output = self.outputs.pop_front();
        if output.is_some() {
            return output;
        }
        let effect = self.engine.next_effect().map(EndpointOutput::Effect);
        effect.or_else(|| Some(EndpointOutput::Compute(Box::new(self.engine.next_computation()?))))
    }

    /// Returns the time when [`EndpointInput::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        let own = [self.next_sweep, self.expiry.next];
        let of_store = [self.values.deadline(), self.unreadable.deadline()];
        own.into_iter().chain(of_store).flatten().chain(self.engine.deadline()).min()
    }

    /// Returns the number of requests that are not answered yet, without streams of changes.
    pub fn in_flight(&self) -> usize {
        self.engine.load().requests
    }

    /// Returns whether so much is unanswered, by count or by bytes, that no more messages should be read.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn is_full(&self) -> bool {
        let limit = self.config.max_in_flight;
        // Calls that wait for a client's answer would never end if the answer were not read.
        let is_crowded = || self.in_flight() >= limit + self.engine.load().asking;
        self.in_flight() >= limit && is_crowded() || self.engine.is_full()
    }

    /// Returns the configuration of sessions, which [`AdmittedRequest::lift`] takes.
    pub(crate) fn session_config(&self) -> &Arc<SessionConfig> {
        &self.session
    }

    /// Returns the store of what outlives the process.
    #[cfg(feature = "http")]
    pub(crate) fn store(&self) -> Option<&crate::store::SharedStore> {
        self.config.store.as_ref()
    }

    /// Returns the keys with which a store is sealed, a secret for it, and the beginning of all names in it.
    #[cfg(feature = "http")]
    pub(crate) fn store_keys(&self) -> (crate::engine::key_ring::KeyRing, [u8; 32], String) {
        let (keys, seed) = self.engine.store_keys();
        (keys, seed, self.engine.scope())
    }

    /// Returns a number that other processes do not have.
    #[doc(hidden)] // For the drivers and the tests.
    pub fn process(&self) -> u64 {
        self.engine.process()
    }

    /// Returns the number of sessions in memory.
    #[doc(hidden)] // For the tests.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns whether the session with this id is in memory.
    #[doc(hidden)] // For the tests.
    pub fn holds_session(&self, id: &str) -> bool {
        self.sessions.has(id)
    }

    /// Returns the checks that every HTTP request has to pass first.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Returns the name of the server.
    pub(crate) fn server_name(&self) -> &str {
        self.engine.server_name()
    }

    /// Returns the numbers of the server.
    #[doc(hidden)] // For the drivers and the tests.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.admission.0.metrics
    }

    /// Returns the names of the components whose handlers run.
    pub(crate) fn running(&self) -> Vec<String> {
        self.engine.running()
    }

    /// Returns the answers that came with the requests of a running handler.
    pub(crate) fn brought_answers(&self, run: RunId) -> Vec<Answers> {
        self.engine.brought_answers(run)
    }

    /// The number and bytes of all calls.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn load(&self) -> Load {
        self.engine.load()
    }

    /// Returns whether nothing of any call is kept. Subscriptions are not calls: their handler has ended.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn keeps_no_call(&self) -> bool {
        self.engine.is_empty()
    }

    /// Passes an event of a call to its session. A question that no stream can carry fails at once.
    fn deliver_event(&mut self, now: Instant, delivery: Delivery) {
        let Delivery { call, peer, key, event } = delivery;
        let event = match event {
            CallEvent::Responded(response) => return self.respond_to(peer, *response),
            event => event,
        };
        if let CallEvent::Asks(asks) = &event
            && let Err(fault) = self.check_reach(peer, key)
        {
            for (ask, ..) in asks {
                let event = self.engine.answered(now, call, *ask, Err(fault.clone()));
                self.deliver_event(now, Delivery { call, peer, key, event });
            }
            return;
        }
        self.pass_to_peer(now, peer, session::Input::Call(key, event));
    }

    /// Errors if the peer can't be asked while this request is pending.
    fn check_reach(&mut self, peer: PeerId, key: InboundKey) -> Result<(), Fault> {
        let is_there = match peer {
            PeerId::Exchange(id) => self.exchanges.contains_key(&id),
            PeerId::Session(number) => return self.has_way_to_ask(number, key),
            PeerId::Connection(id) => self.connections.contains_key(&id),
        };
        is_there.then_some(()).ok_or_else(session::disconnected)
    }

    fn pass_to_peer(&mut self, now: Instant, peer: PeerId, input: session::Input<'_>) {
        match peer {
            PeerId::Exchange(exchange) => self.pass_to_exchange(now, exchange, input),
            PeerId::Session(session) => self.pass_to_session(now, session, input),
            PeerId::Connection(connection) => self.pass_to_connection(now, connection, input),
        }
    }

    /// Passes an input to all peers that a change may concern.
    fn pass_to_all<'a>(&mut self, now: Instant, input: impl Fn(()) -> session::Input<'a>) {
        self.pass_to_listeners(now, &input);
        for session in self.sessions.all() {
            self.pass_to_session(now, session, input(()));
        }
        for connection in self.connections.keys().copied().collect::<Vec<_>>() {
            self.pass_to_connection(now, connection, input(()));
        }
    }

    /// Passes an input to the peers whose requests are subscriptions.
    fn pass_to_listeners<'a>(&mut self, now: Instant, input: impl Fn(()) -> session::Input<'a>) {
        let listens = |peer: &PeerSession| peer.machine.listens();
        let listening: Vec<ExchangeId> = self
            .exchanges
            .iter()
            .filter(|(_, exchange)| {
                matches!(&exchange.owner, ExchangeOwner::Modern(peer) if listens(peer))
            })
            .map(|(exchange, _)| *exchange)
            .collect();
        for exchange in listening {
            self.pass_to_exchange(now, exchange, input(()));
        }
    }

    fn pass_to_exchange(&mut self, now: Instant, id: ExchangeId, input: session::Input<'_>) {
        // Removed while it is in use, because most often it ends here.
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        let ExchangeOwner::Modern(peer) = &mut exchange.owner else {
            self.exchanges.insert(id, exchange);
            return;
        };
        let mut pump = Pump { now, engine: &mut self.engine, facts: None };
        let mut sent = Vec::new();
        peer.handle(&mut pump, 0, input, |_, frame| sent.push(frame));
        if !self.deliver(now, id, &mut exchange, sent) {
            self.exchanges.insert(id, exchange);
        }
    }

    fn pass_to_session(&mut self, now: Instant, number: u64, input: session::Input<'_>) {
        self.with_session(now, number, u64::MAX, None, Some(input));
    }

    /// Passes an input that came on one of its streams to a session, and delivers the output. With `None` the session has read
    /// it.
    fn with_session(
        &mut self,
        now: Instant,
        number: u64,
        stream: u64,
        facts: Option<&Arc<HttpFacts>>,
        input: Option<session::Input<'_>>,
    ) {
        let Some(mut session) = self.sessions.take(number) else { return };
        let mut pump = Pump { now, engine: &mut self.engine, facts };
        let mut sent: Vec<(Option<u64>, OutgoingFrame)> = Vec::new();
        let mut emit = |to, frame| sent.push((to, frame));
        match input {
            Some(input) => session.peer.handle(&mut pump, stream, input, emit),
            None => session.peer.drain(&mut pump, stream, &mut emit),
        }
        if self.stored.is_there() {
            self.share_changes(now, &mut session);
        }
        for (to, frame) in sent {
            self.deliver_in_session(now, &mut session, to, frame);
        }
        session.touched = now;
        self.sweep_at(session.peer.machine.deadline());
        self.sessions.put(session);
    }
}
