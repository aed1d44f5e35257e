//! Sessions that clients opened with `initialize` over HTTP, and the streams of each.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use super::{
    ExchangeId, PeerId, PeerSession, StoreTicket,
    events::{self, EventLog},
    sealed_id::SessionId,
    session_shares::SessionShares,
};
use crate::{
    protocol::{ClientKey, Id, Principal, Raw, json},
    session::{
        InboundKey,
        server::{HttpFacts, ListKind, ServerSession},
    },
};

/// The maximum number of messages that wait for a stream.
const MAX_UNDELIVERED: usize = 256;
/// The maximum size of these messages in bytes, if there are several.
const MAX_UNDELIVERED_BYTES: usize = 1024 * 1024;
/// The size of the `clientInfo` and capabilities of all clients, in bytes, above which sessions are evicted.
const MAX_IDENTITY_BYTES: usize = 64 * 1024 * 1024;
/// The number of sessions at rest that stay in memory, so that their next requests find them there.
const MAX_RESTING: usize = 512;
/// The maximum number of stored events of one stream.
pub(super) const MAX_EVENTS: usize = 256;
/// The maximum size of the stored events of one session, in bytes.
pub(super) const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// The sessions of one endpoint that are in memory.
#[derive(Debug)]
pub(super) struct Sessions {
    by_number: FxHashMap<u64, Box<Session>>,
    numbers: HashMap<Arc<str>, u64, RandomState>,
    shares: SessionShares,
    /// The number of sessions from which on those at rest are removed.
    prune_at: usize,
    /// The size of the `clientInfo` and capabilities of all clients, in bytes.
    identity_bytes: usize,
    /// The secret from which unguessable ids are derived.
    seed: [u8; 32],
    next: u64,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) id: Arc<str>,
    /// The identity that opened it; for any other it does not exist (Security Best Practices, "Session Hijacking").
    owner: Option<String>,
    /// The client that it is counted for.
    client: Option<ClientKey>,
    /// True if its id says all that there is of it while it is at rest.
    is_whole: bool,
    /// True if it was restored from its id.
    pub(super) is_restored: bool,
    /// The lists that may have changed while it was not in memory.
    pub(super) missed: Vec<ListKind>,
    /// The size of the client's `clientInfo` and capabilities, in bytes.
    weight: usize,
    pub(super) peer: PeerSession,
    /// The time of the client's last request, or of the end of its last stream.
    pub(super) touched: Instant,
    /// The operation that stores the last change that the client made to it, for other processes.
    pub(super) changing: Option<StoreTicket>,
    /// The one stream that carries everything, for the HTTP+SSE transport of 2024-11-05.
    pub(super) legacy_sse: Option<ExchangeId>,
    /// True if the client has opened a GET stream before.
    pub(super) has_listened: bool,
    streams: Vec<Stream>,
    undelivered: VecDeque<Undelivered>,
    /// The number of the next message that waits for a stream.
    next_undelivered: u64,
    undelivered_bytes: usize,
    log: Option<Box<EventLog>>,
    next_stream: u64,
}

/// A message that waits for a stream.
#[derive(Debug)]
struct Undelivered {
    number: u64,
    frame: Vec<u8>,
    is_change: bool,
}

/// The result of keeping a message.
pub(super) struct Kept {
    /// The number of the message; `None` if an equal one was kept already.
    pub(super) message: Option<u64>,
    /// `true` if an older message was dropped.
    pub(super) is_full: bool,
}

/// The stream of one POST or GET.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u64,
    /// The connected request; `None` without one.
    pub(super) exchange: Option<ExchangeId>,
    /// True if the connected request is a GET.
    by_get: bool,
    /// True if events were sent on it, so that its answer is an event as well.
    pub(super) is_streaming: bool,
    /// True if its client goes on with it in another process.
    pub(super) is_followed: bool,
    /// The id of the request that it answers, for other processes.
    pub(super) request: Option<Id>,
}

/// Returns whether a stream answers no request. The number shows that also after the stream was closed.
pub(super) fn is_standalone(stream: u64) -> bool {
    stream % 2 == 1
}

impl Sessions {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self {
            by_number: FxHashMap::default(),
            numbers: HashMap::default(),
            shares: SessionShares::default(),
            prune_at: 2 * MAX_RESTING,
            identity_bytes: 0,
            seed,
            next: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns whether no other session fits in.
    pub(super) fn is_full(&self, max: usize) -> bool {
        self.by_number.len() >= max || self.identity_bytes > MAX_IDENTITY_BYTES
    }

    /// Returns the session to evict when there is no room for another one of this client: of a client with more sessions, or
    /// else of this one, the one that has been idle for longest. Where no other is left, it may have a stream, whose client can
    /// open it again; one with a request under way is kept.
    pub(super) fn expendable(&self, newcomer: Option<ClientKey>) -> Option<u64> {
        let longest_idle = |may_be_chosen: fn(&Session) -> bool| {
            let found = self.oldest_of_each(may_be_chosen);
            let mut clients = self.shares.eviction_candidates(newcomer);
            clients.find_map(|client| found.get(&client).copied())
        };
        longest_idle(Session::is_idle).or_else(|| longest_idle(|session| session.peer.is_idle()))
    }

    /// Removes the sessions at rest that were not touched since this time; all of them for `None`.
    pub(super) fn drop_resting(&mut self, since: Option<Instant>) {
        let is_over = |session: &Session| {
            since.is_none_or(|since| session.touched < since) && session.is_at_rest()
        };
        let over = self.by_number.values().filter(|session| is_over(session));
        let over: Vec<_> = over.map(|session| session.number).collect();
        for number in over {
            self.remove(number);
        }
    }

    /// Removes the sessions at rest but those touched last.
    fn prune(&mut self) {
        let resting = self.by_number.values().filter(|session| session.is_at_rest());
        let mut resting: Vec<_> =
            resting.map(|session| (session.touched, session.number)).collect();
        resting.sort_unstable();
        for (_, number) in resting.iter().rev().skip(MAX_RESTING) {
            self.remove(*number);
        }
        self.prune_at = self.by_number.len() + MAX_RESTING;
    }

    fn remove(&mut self, number: u64) {
        if let Some(session) = self.take(number) {
            self.forget(&session);
        }
    }

    /// Returns the session of each client that was not touched for longest, of those that may be chosen.
    fn oldest_of_each(
        &self,
        may_be_chosen: impl Fn(&Session) -> bool,
    ) -> HashMap<Option<ClientKey>, u64> {
        let mut found: HashMap<_, (Instant, u64)> = HashMap::new();
        for session in self.by_number.values().filter(|session| may_be_chosen(session)) {
            let this = (session.touched, session.number);
            found
                .entry(session.client)
                .and_modify(|oldest| *oldest = this.min(*oldest))
                .or_insert(this);
        }
        found.into_iter().map(|(client, (_, number))| (client, number)).collect()
    }

    /// Creates a session, which is not in the table until it is put there.
    pub(super) fn create(
        &mut self,
        now: Instant,
        id: SessionId,
        machine: ServerSession,
        facts: &HttpFacts,
    ) -> Box<Session> {
        if self.by_number.len() >= self.prune_at {
            self.prune();
        }
        let number = self.next;
        self.next += 1;
        let client = facts.client_key();
        self.shares.add(client);
        self.numbers.insert(Arc::clone(&id.text), number);
        let mut peer = PeerSession::new(PeerId::Session(number), machine);
        peer.session_id = Some(Arc::clone(&id.text));
        Box::new(Session {
            number,
            id: id.text,
            owner: facts.principal.as_deref().map(Principal::identity),
            client,
            is_whole: id.is_whole,
            is_restored: false,
            missed: Vec::new(),
            weight: 0,
            peer,
            touched: now,
            changing: None,
            legacy_sse: None,
            has_listened: false,
            streams: Vec::new(),
            undelivered: VecDeque::new(),
            next_undelivered: 0,
            undelivered_bytes: 0,
            log: None,
            next_stream: 0,
        })
    }

    /// Creates a session that is restored from its id, with a number of its first stream that is new; `missed` are the lists that may
    /// have changed in the meantime.
    pub(super) fn restore(
        &mut self,
        now: Instant,
        id: SessionId,
        machine: ServerSession,
        facts: &HttpFacts,
        (first_number, missed): (u64, Vec<ListKind>),
    ) -> Box<Session> {
        let session = self.create(now, id, machine, facts);
        // The ids of events that were sent before must not be used again.
        Box::new(Session { is_restored: true, missed, next_stream: first_number, ..*session })
    }

    /// Returns an id that can't be guessed, for a session that exists in this process only.
    pub(super) fn random_id(&self) -> SessionId {
        SessionId::random(self.secret("id"))
    }

    /// Returns a large number of which a restored session can count on without meeting one that it used before.
    pub(super) fn fresh_number(&self) -> u64 {
        let [first, second, third, fourth, fifth, ..] = self.secret("number");
        u64::from_be_bytes([0, 0, 0, first, second, third, fourth, fifth])
    }

    /// Derives a secret for the next session.
    fn secret(&self, purpose: &str) -> [u8; 32] {
        let secret = Sha256::new().chain_update(self.seed).chain_update(self.next.to_le_bytes());
        secret.chain_update(purpose).finalize().into()
    }

    /// Returns whether a session with this id is in memory.
    pub(super) fn has(&self, id: &str) -> bool {
        self.numbers.contains_key(id)
    }

    /// Returns the number of the session with this id if this principal has opened it. Sessions of the HTTP+SSE transport
    /// are found with `legacy_sse` only, because they answer on their own stream.
    pub(super) fn number(
        &self,
        id: &str,
        owner: Option<&Principal>,
        legacy_sse: bool,
    ) -> Option<u64> {
        let number = self.numbers.get(id).copied()?;
        let session = self.by_number.get(&number)?;
        let is_its_own = session.owner == owner.map(Principal::identity);
        (is_its_own && session.legacy_sse.is_some() == legacy_sse).then_some(number)
    }

    /// Returns the number of the session with this id, for any principal.
    pub(super) fn number_of(&self, id: &str) -> Option<u64> {
        self.numbers.get(id).copied()
    }

    /// Removes a session to work with it; it must be put back.
    pub(super) fn take(&mut self, number: u64) -> Option<Box<Session>> {
        self.by_number.remove(&number)
    }

    pub(super) fn put(&mut self, session: Box<Session>) {
        self.by_number.insert(session.number, session);
    }

    /// Counts what the client of a new session says about itself.
    pub(super) fn weigh(&mut self, number: u64) {
        if let Some(session) = self.by_number.get_mut(&number) {
            self.identity_bytes -= session.weight;
            session.weight = session.peer.machine.identity_size();
            self.identity_bytes += session.weight;
        }
    }

    /// Ends a session that was taken out.
    pub(super) fn forget(&mut self, session: &Session) {
        self.shares.remove(session.client);
        self.identity_bytes -= session.weight;
        self.numbers.remove(&session.id);
        if self.numbers.capacity() > 1024 && self.numbers.len() * 4 < self.numbers.capacity() {
            self.numbers.shrink_to_fit();
            self.by_number.shrink_to_fit();
        }
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Session> {
        self.by_number.get_mut(&number).map(|session| &mut **session)
    }

    /// Returns the exchange that carries what is sent about a request of a session.
    pub(super) fn exchange_of(&self, number: u64, key: InboundKey) -> Option<ExchangeId> {
        let session = self.by_number.get(&number)?;
        let stream = session.peer.stream_of(key)?;
        let own = session.streams.iter().find(|candidate| candidate.number == stream);
        session.legacy_sse.or_else(|| own.and_then(|stream| stream.exchange))
    }

    pub(super) fn all(&self) -> Vec<u64> {
        self.by_number.keys().copied().collect()
    }

    /// Returns the sessions that have been idle for this time.
    pub(super) fn idle(&self, now: Instant, for_: Duration) -> Vec<u64> {
        let is_idle =
            |session: &Session| session.is_idle() && now.duration_since(session.touched) >= for_;
        self.by_number
            .values()
            .filter(|session| is_idle(session))
            .map(|session| session.number)
            .collect()
    }
}

impl Stream {
    fn new(number: u64, exchange: Option<ExchangeId>, by_get: bool) -> Self {
        Self { number, exchange, by_get, is_streaming: by_get, is_followed: false, request: None }
    }
}

impl Session {
    /// Opens a stream for one HTTP request.
    pub(super) fn open(&mut self, exchange: ExchangeId, standalone: bool) -> u64 {
        let number = self.next_stream * 2 + u64::from(standalone);
        self.next_stream += 1;
        self.has_listened |= standalone;
        let exchange = Some(exchange);
        self.streams.push(Stream::new(number, exchange, standalone));
        number
    }

    pub(super) fn stream(&mut self, number: u64) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.number == number)
    }

    /// Returns the stream for messages that belong to no request: the one opened last, never several (2025-11-25, Transports,
    /// "Multiple Connections").
    pub(super) fn standalone(&self) -> Option<u64> {
        self.streams
            .iter()
            .rev()
            .find(|stream| is_standalone(stream.number) && stream.exchange.is_some())
            .map(|stream| stream.number)
    }

    /// Returns the number of GETs that are connected to streams, without the one that another GET for this stream would
    /// replace.
    pub(super) fn listening(&self, but_for: Option<u64>) -> usize {
        let counts = |stream: &&Stream| {
            stream.by_get && stream.exchange.is_some() && Some(stream.number) != but_for
        };
        self.streams.iter().filter(counts).count()
    }

    /// Returns whether a GET is connected to this stream.
    pub(super) fn is_got(&self, number: u64) -> bool {
        let is_it = |stream: &&Stream| stream.number == number;
        let found = self.streams.iter().find(is_it);
        found.is_some_and(|stream| stream.by_get && stream.exchange.is_some())
    }

    pub(super) fn exchanges(&self) -> Vec<ExchangeId> {
        self.streams.iter().filter_map(|stream| stream.exchange).chain(self.legacy_sse).collect()
    }

    /// Disconnects the request of a stream.
    pub(super) fn detach(&mut self, number: u64) {
        let is_busy = self.peer.is_busy(number);
        if let Some(stream) = self.stream(number) {
            stream.exchange = None;
            // Stored events can be resumed without an entry here; the answer to a call needs one.
            if !is_busy {
                self.close(number);
            }
        }
    }

    /// Ends a complete stream.
    pub(super) fn close(&mut self, number: u64) {
        self.streams.retain(|stream| stream.number != number);
        if self.streams.is_empty() {
            self.streams.shrink_to_fit();
        }
        if let Some(log) = &mut self.log {
            log.finish(number);
        }
    }

    /// Connects a request to an existing stream. Returns the request that was connected before.
    pub(super) fn resume(&mut self, number: u64, exchange: ExchangeId) -> Option<ExchangeId> {
        if let Some(stream) = self.stream(number) {
            stream.by_get = true;
            stream.is_followed = false;
            return stream.exchange.replace(exchange);
        }
        self.streams.push(Stream::new(number, Some(exchange), true));
        None
    }

    pub(super) fn log(&mut self) -> &mut EventLog {
        self.log.get_or_insert_with(|| Box::new(EventLog::new(MAX_EVENTS, MAX_EVENT_BYTES)))
    }

    /// Stores a message until the client opens a stream; equal changes are stored once.
    pub(super) fn keep(&mut self, frame: Vec<u8>, is_change: bool) -> Kept {
        if is_change && self.undelivered.iter().any(|kept| kept.frame == frame) {
            return Kept { message: None, is_full: false };
        }
        let number = self.next_undelivered;
        self.next_undelivered += 1;
        self.undelivered_bytes += frame.len();
        self.undelivered.push_back(Undelivered { number, frame, is_change });
        let mut is_full = false;
        while self.undelivered.len() > MAX_UNDELIVERED
            || self.undelivered_bytes > MAX_UNDELIVERED_BYTES && self.undelivered.len() > 1
        {
            let gone = self.undelivered.pop_front();
            self.undelivered_bytes -= gone.map_or(0, |kept| kept.frame.len());
            is_full = true;
        }
        Kept { message: Some(number), is_full }
    }

    /// Returns the messages that wait for a stream, each with its number and whether it is a change.
    pub(super) fn kept(&self) -> Vec<(u64, Raw, bool)> {
        let text = |kept: &Undelivered| {
            let frame = String::from_utf8(kept.frame.clone()).ok()?;
            Some((kept.number, json::raw(frame), kept.is_change))
        };
        self.undelivered.iter().filter_map(text).collect()
    }

    /// Removes the changes that wait for a stream, because the process that has one reports them.
    pub(super) fn forget_kept_changes(&mut self) {
        self.undelivered.retain(|kept| !kept.is_change);
        self.undelivered_bytes = self.undelivered.iter().map(|kept| kept.frame.len()).sum();
    }

    /// Returns whether an event was sent on a stream of another process, as far as this one knows.
    pub(super) fn is_from_elsewhere(&mut self, event: &str) -> bool {
        let is_known = self.log.as_ref().is_some_and(|log| log.replay(event).is_ok());
        let stream = events::stream_of(event);
        !is_known && stream.is_some_and(|stream| self.stream(stream).is_none())
    }

    /// Removes a message that waits for a stream, because another process has sent it.
    pub(super) fn forget_kept(&mut self, message: u64) {
        self.undelivered.retain(|kept| kept.number != message);
        self.undelivered_bytes = self.undelivered.iter().map(|kept| kept.frame.len()).sum();
    }

    /// Returns whether an event belongs to an earlier stream of a restored session that answered no request: a new stream may
    /// take its place.
    pub(super) fn has_lost(&self, event: &str) -> bool {
        let is_known = self.log.as_ref().is_some_and(|log| log.replay(event).is_ok());
        self.is_restored && !is_known && events::stream_of(event).is_some_and(is_standalone)
    }

    pub(super) fn undelivered(&mut self) -> impl Iterator<Item = Vec<u8>> + use<> {
        self.undelivered_bytes = 0;
        std::mem::take(&mut self.undelivered).into_iter().map(|kept| kept.frame)
    }

    /// Returns whether its id says all that there is of it: it holds no stream, message, event or request, and no state.
    fn is_at_rest(&self) -> bool {
        self.is_whole
            && self.legacy_sse.is_none()
            && self.streams.is_empty()
            && self.undelivered.is_empty()
            && self.log.as_ref().is_none_or(|log| log.is_empty())
            && self.peer.is_at_rest()
    }

    /// Returns whether nothing is connected and no request is under way.
    fn is_idle(&self) -> bool {
        let is_connected = self.streams.iter().any(|stream| stream.exchange.is_some());
        self.legacy_sse.is_none() && !is_connected && self.peer.is_idle()
    }
}
