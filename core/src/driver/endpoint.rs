//! An endpoint behind a lock. Shells pass it inputs from any thread and run the handlers that it returns.

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use http::request::Parts;
use tokio::sync::Notify;

#[cfg(feature = "auth")]
use super::{AuthServer, authenticate_request, authenticate_upgrade};
use super::{
    Holding, Ledgers, Outbox, Work,
    amounts::ServerEndpoints,
    endpoint_state::{AskWorkers, EndpointState, Publish},
    event_log::ServerLog,
    sending::Sending,
    start,
    start_gate::Backlog,
    state_keys::read_state_keys,
    watchdog::lock_soon,
    watched_files,
    work::EndpointStep,
};
#[cfg(feature = "http")]
use super::{
    sealed_store::SealedStore,
    store_link::{StoreLink, StoreQueue},
};
#[cfg(feature = "auth")]
use crate::auth::server::authenticator::Caller;
use crate::{
    engine::{Start, TestMode},
    http::{
        Admission, AdmittedHead, ConnectionId, Endpoint, EndpointConfig, EndpointInput, ExchangeId,
        Part, Reader, WorkersReply,
    },
    metrics::Metrics,
    protocol::{ClientKey, Frame, Principal},
    router::{Components, ServerFacts},
    session::server::{HttpFacts, ListKind, SessionConfig},
};

#[cfg(feature = "http")]
use crate::{http::StoreTicket, store::StoreReply};

/// A server of any number of peers.
pub struct EndpointServer {
    /// The checks of a request that need no lock.
    admission: Admission,
    /// The configuration of the sessions of stateless requests, which read them before the lock is taken.
    sessions: RwLock<Arc<SessionConfig>>,
    state: Mutex<EndpointState>,
    ledgers: Ledgers,
    pub(super) log: ServerLog,
    pub(super) backlog: Arc<Backlog>,
    /// The link to the store until it is carried; `None` without a store.
    #[cfg(feature = "http")]
    link: Mutex<Option<StoreLink>>,
    /// Authenticates callers; `None`: everybody may call.
    #[cfg(feature = "auth")]
    auth: Option<Arc<AuthServer>>,
    next: AtomicU64,
    /// Notified when the deadline is earlier than before.
    rescheduled: Notify,
    /// Notified when calls may have ended or wait for their clients.
    ended: Notify,
    /// The number of those who wait for that.
    waiting: AtomicUsize,
}

/// Counts one waiter, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl EndpointServer {
    pub fn new(components: Arc<Components>, config: EndpointConfig) -> Arc<Self> {
        let facts = Arc::clone(&components.server);
        Self::started(Endpoint::new(components, config, &start()), &facts)
    }

    /// Serves a test; `facts` are the principal and headers of every message connection.
    pub fn for_test(
        components: Arc<Components>,
        config: EndpointConfig,
        test_mode: TestMode,
        facts: Option<HttpFacts>,
    ) -> Arc<Self> {
        let start = Start { test_mode: Some(test_mode), ..start() };
        let server = Arc::clone(&components.server);
        let endpoint = Endpoint::new(components, config, &start);
        let endpoint = match facts {
            None => endpoint,
            Some(facts) => endpoint.with_facts(facts),
        };
        Self::started(endpoint, &server)
    }

    fn started(endpoint: Endpoint, facts: &ServerFacts) -> Arc<Self> {
        let admission = endpoint.admission().clone();
        #[cfg(feature = "auth")]
        let keys = &facts.request_state_keys;
        let ledgers = Ledgers::default();
        let log = ServerLog::default();
        log.write_refusals_of(&admission);
        let backlog = Backlog::new(&ledgers.unread);
        let metrics = Arc::clone(endpoint.metrics());
        let sessions = Arc::clone(endpoint.session_config());
        #[cfg(feature = "http")]
        let store = endpoint.store().map(|store| {
            let (keys, seed, scope) = endpoint.store_keys();
            let sealed = SealedStore::new(Arc::clone(&store.0), keys, seed);
            StoreQueue::new((sealed, scope), Arc::clone(&metrics))
        });
        #[cfg_attr(not(feature = "http"), expect(unused_mut, reason = "a store is for HTTP"))]
        let mut state = EndpointState::new(endpoint, Arc::clone(&backlog));
        #[cfg(feature = "http")]
        let link = store.map(|(queue, link)| {
            state.use_store(queue);
            link
        });
        let server = Arc::new(Self {
            // Without one, the admission refuses everybody.
            #[cfg(feature = "auth")]
            auth: admission
                .auth_config()
                .and_then(|config| AuthServer::new(config, keys, Arc::clone(&metrics)).ok()),
            admission,
            sessions: RwLock::new(sessions),
            state: Mutex::new(state),
            ledgers,
            log,
            backlog,
            #[cfg(feature = "http")]
            link: Mutex::new(link),
            next: AtomicU64::new(0),
            rescheduled: Notify::new(),
            ended: Notify::new(),
            waiting: AtomicUsize::new(0),
        });
        let own = Arc::downgrade(&server);
        metrics.add_endpoint(own, || Box::new(ServerEndpoints::default()));
        if let Some(file) = facts.request_state_keys_file.clone() {
            watched_files::watch(&[&file.clone()], &server, move |server: &Self| {
                server.set_state_keys(&read_state_keys(&file)?);
                Ok(())
            });
        }
        server
    }

    /// Replaces the keys of what clients carry. The first seals from now on, and all of them open.
    fn set_state_keys(&self, keys: &[Vec<u8>]) {
        self.lock().set_keys(keys);
        #[cfg(feature = "auth")]
        if let Some(auth) = &self.auth {
            auth.set_keys(keys);
        }
    }

    /// Returns the checks of a request that come before its body is read.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Returns the authenticator of callers; `None` if everybody may call.
    #[cfg(feature = "auth")]
    pub(crate) fn auth(&self) -> Option<&Arc<AuthServer>> {
        self.auth.as_ref()
    }

    /// Returns whether callers have to be authenticated.
    #[cfg(feature = "auth")]
    pub fn has_auth(&self) -> bool {
        self.admission.auth_config().is_some()
    }

    /// Authenticates the sender of a request, before its body is read. Errors with the answer to a sender that is refused.
    #[cfg(feature = "auth")]
    pub async fn authenticate(&self, head: &mut AdmittedHead) -> Result<(), Part> {
        let decision = authenticate_request(self.auth.as_ref(), head).await;
        decision.map_err(|refused| head.refuse(&refused))
    }

    /// Returns the sender of a request to become a message connection; `None` if everybody may call. Errors with the answer
    /// to a sender that is refused.
    #[cfg(feature = "auth")]
    pub async fn authenticate_upgrade(
        &self,
        head: &Parts,
        remote: Option<IpAddr>,
    ) -> Result<Option<Caller>, Part> {
        authenticate_upgrade(&self.admission, self.auth.as_ref(), head, remote).await
    }

    /// Returns the counts of what clients make this server hold.
    pub(crate) fn ledgers(&self) -> &Ledgers {
        &self.ledgers
    }

    /// Handles an HTTP request with its body. The outbox may have its answer before this returns.
    pub fn request(
        &self,
        head: AdmittedHead,
        body: &[u8],
        outbox: Box<dyn Outbox>,
    ) -> (ExchangeId, Work) {
        let (exchange, step) = self.begin_request(head, body, outbox);
        (exchange, self.finish(step))
    }

    /// Handles an HTTP request with its body, without the computations that may take long.
    pub fn begin_request(
        &self,
        mut head: AdmittedHead,
        body: &[u8],
        mut outbox: Box<dyn Outbox>,
    ) -> (ExchangeId, EndpointStep) {
        #[cfg(feature = "auth")]
        if let (Some(auth), true) = (&self.auth, head.is_proxied()) {
            if let Some(request) = head.into_proxied(body) {
                auth.proxy_request(request, outbox);
            }
            let exchange = ExchangeId(self.next.fetch_add(1, Ordering::Relaxed));
            return (exchange, EndpointStep::new(Work::default()));
        }
        let unread = &self.ledgers.unread;
        if unread.is_half_full() && unread.has_half_share(head.client_key()) {
            head.set_behind();
        }
        let exchange = ExchangeId(self.next.fetch_add(1, Ordering::Relaxed));
        let mut request = match head.body(body) {
            Ok(request) => request,
            Err(refusal) => {
                outbox.deliver(refusal);
                return (exchange, EndpointStep::new(Work::default()));
            }
        };
        let sessions = Arc::clone(&self.sessions.read().unwrap_or_else(PoisonError::into_inner));
        request.lift(exchange, &sessions);
        let input = EndpointInput::Request(exchange, request);
        let insert = |state: &mut EndpointState| {
            let sending = Sending::new(Reader::Exchange(exchange), outbox);
            state.exchanges.insert(exchange, sending);
        };
        (exchange, self.begin(insert, input))
    }

    /// Ends an exchange whose peer left before the answer was complete.
    pub fn disconnected(&self, exchange: ExchangeId) -> Work {
        let remove = |state: &mut EndpointState| drop(state.exchanges.remove(&exchange));
        self.handle_after(remove, EndpointInput::Disconnected(exchange))
    }

    /// Ends the subscription of an exchange whose peer leaves too much unread.
    pub fn cut_subscriptions(&self, exchange: ExchangeId) -> Work {
        self.handle(EndpointInput::CutSubscriptions(Reader::Exchange(exchange)))
    }

    /// Errors with the answer to a request, from this address, that may not become a message connection.
    pub fn admit_upgrade(&self, head: &Parts, remote: Option<IpAddr>) -> Result<(), Part> {
        self.admission.upgrade(head, remote)?;
        let refused = self.lock().endpoint.refuse_connection();
        let Some((part, event)) = refused else { return Ok(()) };
        self.write_event(&event.with_remote(remote));
        Err(part)
    }

    /// Returns a count, which is zero, of the received bytes of the body of a request.
    pub fn unfinished_body(&self, head: &AdmittedHead) -> Holding {
        Holding::new(&self.ledgers.input, head.client_key())
    }

    /// Returns a count, which is zero, of the unread bytes of the answer to a request.
    pub fn unread_answers(&self, head: &AdmittedHead) -> Holding {
        Holding::new(&self.ledgers.unread, head.client_key())
    }

    /// Returns a count, which is zero, of the unread bytes of a message connection of this principal and from this address.
    pub fn unread_of(&self, principal: Option<&Principal>, remote: Option<IpAddr>) -> Holding {
        Holding::new(&self.ledgers.unread, ClientKey::new(principal, remote))
    }

    /// Opens a message connection of this principal and from this address, if the shell knows them.
    pub fn connect(
        &self,
        principal: Option<Arc<Principal>>,
        remote: Option<IpAddr>,
        outbox: Box<dyn Outbox>,
    ) -> ConnectionId {
        let connection = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        let sending = Sending::new(Reader::Connection(connection), outbox);
        self.lock().connections.insert(connection, sending);
        self.update(EndpointInput::Opened(connection, principal, remote));
        connection
    }

    /// Ends a message connection at this time, when its access token expires. Calls that run then are still answered.
    #[cfg(feature = "auth")]
    pub fn expire_at(&self, connection: ConnectionId, at: Instant) {
        self.update(EndpointInput::ExpiresAt(connection, at));
    }

    /// Handles one frame of a message connection.
    pub fn message(&self, connection: ConnectionId, frame: &[u8]) -> Work {
        self.finish(self.begin_message(connection, frame))
    }

    /// Handles one frame of a message connection, without the computations that may take long.
    pub fn begin_message(&self, connection: ConnectionId, frame: &[u8]) -> EndpointStep {
        let frame = Frame::parse(frame);
        self.begin(|_| (), EndpointInput::Message(connection, frame))
    }

    /// Ends the input of a message connection, whose peer sends nothing more.
    pub fn end_of_input(&self, connection: ConnectionId) -> Work {
        self.handle(EndpointInput::EndOfInput(connection))
    }

    /// Ends a message connection that was closed.
    pub fn connection_closed(&self, connection: ConnectionId) -> Work {
        let remove = |state: &mut EndpointState| drop(state.connections.remove(&connection));
        self.handle_after(remove, EndpointInput::ConnectionClosed(connection))
    }

    /// Ends subscriptions with their result and streams without a request; everything else continues.
    pub fn end_streams(&self) -> Work {
        self.handle(EndpointInput::EndStreams)
    }

    /// Rejects new requests and ends subscriptions with their result; calls in flight continue.
    pub fn shut_down(&self) -> Work {
        self.handle(EndpointInput::ShutDown)
    }

    /// Replaces the server's components; `changed` are the lists that differ.
    pub fn set_components(&self, components: Arc<Components>, changed: Vec<ListKind>) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        self.update(EndpointInput::Components(components, changed));
        sessions.clone_from(self.lock().endpoint.session_config());
    }

    /// Notifies subscribers that the resource with this URI has changed.
    pub fn updated(&self, uri: &str) {
        self.update(EndpointInput::Updated(uri));
    }

    /// Notifies the client that the interaction with this URL elicitation's id is complete.
    pub fn page_done(&self, page: &str) {
        self.update(EndpointInput::PageDone(page));
    }

    /// Has the endpoint share sessions and changes with the other processes that serve its address, to which `publish` sends
    /// messages.
    #[cfg(feature = "http")]
    pub(crate) fn share(&self, publish: Publish) {
        self.lock().share(publish);
    }

    /// Has the endpoint share sessions, changes and metrics with the other processes that serve its address.
    pub(crate) fn join_workers(&self, publish: Publish, workers: AskWorkers) {
        self.lock().join_workers(publish, workers);
    }

    /// Has the metrics of this process name it.
    pub(crate) fn name_worker(&self) {
        self.lock().names_worker = true;
    }

    /// Returns the numbers of the server.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(self.lock().endpoint.metrics())
    }

    /// Handles a reply or a report about the other processes.
    pub(crate) fn workers(&self, reply: WorkersReply) -> Work {
        self.handle(EndpointInput::Workers(reply))
    }

    /// Handles a message of another process.
    pub(crate) fn published(&self, message: &[u8]) -> Work {
        self.handle(EndpointInput::Published(message))
    }

    /// Carries the operations on the store, and the messages of other processes, for as long as it is polled; ends at once without
    /// a store. `has_group`: the processes of this machine exchange messages in another way. `perform` does the work that results
    /// from an input.
    #[cfg(feature = "http")]
    pub(crate) async fn carry_store(self: Arc<Self>, has_group: bool, perform: impl Fn(Work)) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(link) = link {
            link.run(self, has_group, perform).await;
        }
    }

    /// Returns whether there is a store that nothing carries the operations of yet.
    #[cfg(feature = "http")]
    pub fn has_store(&self) -> bool {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns a number that other processes do not have.
    pub(crate) fn process(&self) -> u64 {
        self.lock().endpoint.process()
    }

    /// Handles the reply to an operation on the store.
    #[cfg(feature = "http")]
    pub(super) fn stored(&self, ticket: StoreTicket, reply: StoreReply) -> Work {
        self.handle(EndpointInput::Stored(ticket, reply))
    }

    /// Makes up for messages of other processes that may have been lost.
    #[cfg(feature = "http")]
    pub(super) fn messages_lost(&self) -> Work {
        self.handle(EndpointInput::MessagesLost)
    }

    /// Handles a number of messages in the store that can't be opened.
    #[cfg(feature = "http")]
    pub(super) fn messages_unreadable(&self, count: u64) -> Work {
        self.handle(EndpointInput::MessagesUnreadable(count))
    }

    /// Stops everything in flight.
    pub fn close(&self) -> Work {
        self.handle(EndpointInput::Closed)
    }

    /// Handles the deadlines that have come.
    pub fn tick(&self) -> Work {
        self.handle_after(|state| state.armed = None, EndpointInput::Tick)
    }

    /// Returns the time of the next tick.
    pub fn deadline(&self) -> Option<Instant> {
        let mut state = self.lock();
        // The caller sets its timer to this time. An earlier value may be over, and would hide an earlier deadline.
        state.armed = state.deadline();
        state.armed
    }

    /// Returns the number of requests that were read and not yet answered, without streams of changes.
    pub fn in_flight(&self) -> usize {
        self.lock().endpoint.in_flight()
    }

    /// Returns the names of the components whose handlers run, such as `tool "add"`, at most a few.
    pub fn running(&self) -> Vec<String> {
        lock_soon(&self.state).map(|state| state.endpoint.running()).unwrap_or_default()
    }

    /// Returns the number of answers that are not complete.
    pub fn open_exchanges(&self) -> usize {
        self.lock().exchanges.len()
    }

    /// Waits until the deadline is earlier than at the last call. A timer waits for this and for the deadline.
    pub async fn rescheduled(&self) {
        self.rescheduled.notified().await;
    }

    /// Returns whether so much is unanswered that no more messages of this connection should be read.
    pub fn is_full_for(&self, connection: ConnectionId) -> bool {
        self.lock().endpoint.is_full_for(connection)
    }

    /// Waits while so much is unanswered that no more messages of this connection should be read.
    pub async fn has_room(&self, connection: ConnectionId) {
        self.until(|endpoint| !endpoint.is_full_for(connection)).await;
    }

    /// Waits while anything that came on this connection is unanswered.
    pub async fn has_answered(&self, connection: ConnectionId) {
        self.until(|endpoint| endpoint.has_answered(connection)).await;
    }

    /// Waits while anything is in flight.
    pub async fn is_idle(&self) {
        self.until(|endpoint| endpoint.in_flight() == 0).await;
    }

    async fn until(&self, is_so: impl Fn(&Endpoint) -> bool) {
        let _waiting = Waiting::new(&self.waiting);
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if is_so(&self.lock().endpoint) {
                return;
            }
            ended.await;
        }
    }

    /// Handles an input whose caller takes no work, such as lines for the log: it is kept for the next one that does.
    pub(super) fn update(&self, input: EndpointInput<'_>) {
        let mut state = self.lock();
        let armed = state.armed;
        let mut step = state.handle(input);
        let is_sooner = step.work.wake.take().is_some();
        state.untaken = std::mem::take(&mut step.work);
        state.armed = armed;
        drop(state);
        if step.unlocked.is_some() {
            self.write_events(&mut step);
        }
        if is_sooner {
            self.rescheduled.notify_one();
        }
    }

    #[inline]
    pub(super) fn handle(&self, input: EndpointInput<'_>) -> Work {
        self.handle_after(|_| (), input)
    }

    /// Changes the state and handles an input under one lock, and then runs the computations that may take long without it.
    #[inline]
    fn handle_after(
        &self,
        change: impl FnOnce(&mut EndpointState),
        input: EndpointInput<'_>,
    ) -> Work {
        self.finish(self.begin(change, input))
    }

    /// Changes the state and handles an input under one lock.
    #[inline]
    pub(super) fn begin(
        &self,
        change: impl FnOnce(&mut EndpointState),
        input: EndpointInput<'_>,
    ) -> EndpointStep {
        let mut state = self.lock();
        change(&mut state);
        let mut step = state.handle(input);
        drop(state);
        self.announce(&mut step);
        step
    }

    /// Wakes those who wait for the end of calls, or for an earlier deadline, and writes the events. Must be called without the
    /// lock.
    #[inline]
    pub(super) fn announce(&self, step: &mut EndpointStep) {
        if step.unlocked.is_some() {
            self.write_events(step);
        }
        // A waiter is counted before it takes the lock to look at the state. One that is not counted yet will see this change.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.ended.notify_waiters();
        }
        if step.work.wake.is_some() {
            self.rescheduled.notify_one();
        }
    }

    /// Runs the computations of a step without the lock.
    pub fn finish(&self, step: EndpointStep) -> Work {
        step.finish(|computed| self.begin(|_| (), EndpointInput::Computed(computed)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, EndpointState> {
        #[cfg(feature = "lock-waits")]
        return super::lock_waits::lock(&self.state);
        // A panic under the lock is a bug of Gudgeon's. It must not fail every other call.
        #[cfg(not(feature = "lock-waits"))]
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for EndpointServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointServer").finish_non_exhaustive()
    }
}
