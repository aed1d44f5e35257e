//! An endpoint behind a lock, with one outbox for each exchange and each message connection. Shells feed it from threads
//! of their own, and start the handlers that it hands out.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::request::Parts;
use tokio::sync::Notify;

use super::{Backend, SharedHandler, Work, start};
use crate::{
    engine::{HandlerEvent, HostReply, RunId, Start, TestMode, Ticket},
    http::{
        Admission, AdmittedHead, ConnectionId, Endpoint, EndpointConfig, EndpointInput,
        EndpointOutput, ExchangeId, Part, Reader,
    },
    protocol::{Frame, Principal},
    router::{Components, ResultBuilder},
    session::server::{HttpFacts, ListKind},
};

/// With changes of more bytes unread, the subscription of a stream is torn down.
const BEHIND_ON_STREAM: usize = 1024 * 1024;
/// With more than this, the subscriptions of a connection are. Answers share it, and what waits behind one is not late.
const BEHIND_ON_CONNECTION: usize = 4 * 1024 * 1024;

/// A receiver of the pieces of one response, in order. Called under a lock: push and wake, nothing else.
pub trait Outbox: Send {
    fn deliver(&mut self, part: Part);
    /// Bytes that were delivered and that nobody has taken, all that waits at once, to write them.
    fn unread(&self) -> usize;
}

/// Starts and stops handlers, and keeps the one timer.
pub trait Shell<H>: Send + Sync {
    fn run(&self, work: Work<H>);
}

/// Everything that many peers connect to.
pub struct EndpointServer<H> {
    /// The checks that need no lock.
    admission: Admission,
    state: Mutex<State<H>>,
    next: AtomicU64,
    /// A deadline came nearer.
    rescheduled: Notify,
    /// Calls have ended, or wait for their clients.
    ended: Notify,
}

struct State<H> {
    endpoint: Endpoint<H>,
    exchanges: HashMap<ExchangeId, Sending>,
    connections: HashMap<ConnectionId, Sending>,
    /// Lines for the log that came up where nobody could take them.
    reports: Vec<String>,
    /// When the shell was last told to wake.
    armed: Option<Instant>,
}

impl<H: Clone> EndpointServer<H> {
    pub fn new(components: Arc<Components<H>>, config: EndpointConfig) -> Arc<Self> {
        Self::started(Endpoint::new(components, config, &start()))
    }

    /// Serves a test; `facts` are the principal and headers of every message connection.
    pub fn for_test(
        components: Arc<Components<H>>,
        config: EndpointConfig,
        test_mode: TestMode,
        facts: Option<HttpFacts>,
    ) -> Arc<Self> {
        let start = Start { test_mode: Some(test_mode), ..start() };
        let endpoint = Endpoint::new(components, config, &start);
        let endpoint = match facts {
            None => endpoint,
            Some(facts) => endpoint.with_facts(facts),
        };
        Self::started(endpoint)
    }

    fn started(endpoint: Endpoint<H>) -> Arc<Self> {
        let admission = endpoint.admission().clone();
        let state = State {
            endpoint,
            exchanges: HashMap::new(),
            connections: HashMap::new(),
            reports: Vec::new(),
            armed: None,
        };
        Arc::new(Self {
            admission,
            state: Mutex::new(state),
            next: AtomicU64::new(0),
            rescheduled: Notify::new(),
            ended: Notify::new(),
        })
    }

    /// The checks that come before the body is read.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Takes an HTTP request with its body. The outbox may have its answer before this returns.
    pub fn request(
        &self,
        head: AdmittedHead,
        body: &[u8],
        mut outbox: Box<dyn Outbox>,
    ) -> (ExchangeId, Work<H>) {
        let exchange = ExchangeId(self.next.fetch_add(1, Ordering::Relaxed));
        let request = match head.body(body) {
            Ok(request) => request,
            Err(refusal) => {
                outbox.deliver(refusal);
                return (exchange, Work::default());
            }
        };
        let mut state = self.lock();
        state.exchanges.insert(exchange, Sending::to(outbox));
        let work = state.handle(EndpointInput::Request(exchange, request));
        drop(state);
        (exchange, self.told(work))
    }

    /// The peer left before the answer was complete.
    pub fn gone(&self, exchange: ExchangeId) -> Work<H> {
        let mut state = self.lock();
        state.exchanges.remove(&exchange);
        let work = state.handle(EndpointInput::Gone(exchange));
        drop(state);
        self.ended(work)
    }

    /// The peer leaves so much of this answer unread that a subscription ends.
    pub fn behind(&self, exchange: ExchangeId) -> Work<H> {
        let work = self.lock().handle(EndpointInput::Lagging(Reader::Exchange(exchange)));
        self.ended(work)
    }

    /// Fails with the answer to a request that may not become a message connection.
    pub fn admit_upgrade(&self, head: &Parts) -> Result<(), Part> {
        self.lock().endpoint.admit_upgrade(head)
    }

    /// Opens a message connection: of somebody, where the shell knows who that is.
    pub fn connect(
        &self,
        principal: Option<Arc<Principal>>,
        outbox: Box<dyn Outbox>,
    ) -> ConnectionId {
        let connection = ConnectionId(self.next.fetch_add(1, Ordering::Relaxed));
        let mut state = self.lock();
        state.connections.insert(connection, Sending::to(outbox));
        drop(state);
        self.say(EndpointInput::Opened(connection, principal));
        connection
    }

    /// Takes one frame of a message connection.
    pub fn message(&self, connection: ConnectionId, frame: &[u8]) -> Work<H> {
        let frame = Frame::parse(frame);
        let work = self.lock().handle(EndpointInput::Message(connection, frame));
        self.ended(work)
    }

    /// A frame over the limit, in bytes, was thrown away.
    pub fn too_long(&self, connection: ConnectionId, limit: usize) -> Work<H> {
        let work = self.lock().handle(EndpointInput::TooLong(connection, limit));
        self.told(work)
    }

    /// The peer of a message connection says nothing more.
    pub fn end_of_input(&self, connection: ConnectionId) -> Work<H> {
        let work = self.lock().handle(EndpointInput::EndOfInput(connection));
        self.ended(work)
    }

    /// The peer of a message connection is gone.
    pub fn hang_up(&self, connection: ConnectionId) -> Work<H> {
        let mut state = self.lock();
        state.connections.remove(&connection);
        let work = state.handle(EndpointInput::HungUp(connection));
        drop(state);
        self.ended(work)
    }

    /// Ends streams that only tell of changes; all else goes on.
    pub fn end_streams(&self) -> Work<H> {
        let work = self.lock().handle(EndpointInput::EndStreams);
        self.told(work)
    }

    /// Takes nothing new, ends subscriptions with their result; what is in flight goes on.
    pub fn shut_down(&self) -> Work<H> {
        let work = self.lock().handle(EndpointInput::ShutDown);
        self.told(work)
    }

    /// Answers that are not complete.
    pub fn open_exchanges(&self) -> usize {
        self.lock().exchanges.len()
    }

    /// Returns when a deadline came nearer since the last time: a timer waits for this and for the deadline.
    pub async fn rescheduled(&self) {
        self.rescheduled.notified().await;
    }

    /// Returns whether so much is unanswered that no more messages of this connection should be read.
    pub fn is_full_for(&self, connection: ConnectionId) -> bool {
        self.lock().endpoint.is_full_for(connection)
    }

    /// Waits while too much is unanswered.
    pub async fn has_room(&self, connection: ConnectionId) {
        self.until(|it| !it.is_full_for(connection)).await;
    }

    /// Waits while anything that came on this connection is unanswered.
    pub async fn has_answered(&self, connection: ConnectionId) {
        self.until(|it| it.has_answered(connection)).await;
    }

    /// Waits while anything is in flight.
    pub async fn is_idle(&self) {
        self.until(|it| it.in_flight() == 0).await;
    }

    async fn until(&self, is_so: impl Fn(&Endpoint<H>) -> bool) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if is_so(&self.lock().endpoint) {
                return;
            }
            ended.await;
        }
    }

    /// Handles what starts no handlers and ends none: nobody is given work, so whoever takes the next is told of a
    /// deadline that came nearer.
    fn say(&self, input: EndpointInput<'_, H>) {
        let mut state = self.lock();
        let armed = state.armed;
        let Work { reports, wake, .. } = state.handle(input);
        state.reports = reports;
        state.armed = armed;
        drop(state);
        if wake.is_some() {
            self.rescheduled.notify_one();
        }
    }

    /// Runs what is to be done without the lock, and starts the timer anew if a deadline came nearer.
    fn told(&self, mut work: Work<H>) -> Work<H> {
        while !work.dispatches.is_empty() {
            for (ticket, job) in std::mem::take(&mut work.dispatches) {
                let input = EndpointInput::Dispatched(ticket, job.run());
                work.extend(self.lock().handle(input));
            }
        }
        if work.wake.is_some() {
            self.rescheduled.notify_one();
        }
        work
    }

    fn ended(&self, work: Work<H>) -> Work<H> {
        let work = self.told(work);
        self.ended.notify_waiters();
        work
    }

    fn lock(&self) -> MutexGuard<'_, State<H>> {
        // A panic while it was held is a bug of ours; one call's loss must not become everybody's.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Output on its way to one reader.
struct Sending {
    outbox: Box<dyn Outbox>,
    /// Changes that it was told of and has not taken.
    changes: Option<Box<Changes>>,
}

#[derive(Default)]
struct Changes {
    told: HashSet<Vec<u8>>,
    bytes: usize,
}

impl Sending {
    fn to(outbox: Box<dyn Outbox>) -> Self {
        Self { outbox, changes: None }
    }

    fn deliver(&mut self, part: Part) {
        self.look();
        self.outbox.deliver(part);
    }

    /// Returns whether the changes that wait exceed `limit` bytes with this one.
    fn change(&mut self, bytes: Vec<u8>, limit: usize) -> bool {
        self.look();
        let changes = self.changes.get_or_insert_default();
        if !changes.told.insert(bytes.clone()) {
            return false;
        }
        let before = changes.bytes;
        changes.bytes += bytes.len();
        let is_lagging = before <= limit && changes.bytes > limit;
        self.outbox.deliver(Part::Bytes(bytes));
        is_lagging
    }

    fn look(&mut self) {
        if self.outbox.unread() == 0 {
            self.changes = None;
        }
    }
}

impl<H: Clone> State<H> {
    fn handle(&mut self, input: EndpointInput<'_, H>) -> Work<H> {
        let now = Instant::now();
        self.endpoint.handle(now, input);
        let mut work = Work { reports: std::mem::take(&mut self.reports), ..Work::default() };
        while let Some(output) = self.endpoint.poll() {
            let behind = match output {
                EndpointOutput::Exchange(id, part) => {
                    let is_last = matches!(part, Part::End | Part::Head { more: false, .. });
                    if is_last {
                        if let Some(mut sending) = self.exchanges.remove(&id) {
                            sending.outbox.deliver(part);
                        }
                    } else if let Some(sending) = self.exchanges.get_mut(&id) {
                        sending.deliver(part);
                    }
                    None
                }
                EndpointOutput::Connection(id, part) => {
                    if let Some(sending) = self.connections.get_mut(&id) {
                        sending.deliver(part);
                    }
                    None
                }
                EndpointOutput::Change(reader, bytes) => {
                    let (sending, limit) = match reader {
                        Reader::Exchange(id) => (self.exchanges.get_mut(&id), BEHIND_ON_STREAM),
                        Reader::Connection(id) => {
                            (self.connections.get_mut(&id), BEHIND_ON_CONNECTION)
                        }
                    };
                    let is_lagging = sending.is_some_and(|it| it.change(bytes, limit));
                    is_lagging.then_some(reader)
                }
                EndpointOutput::Effect(effect) => {
                    work.add(effect);
                    None
                }
            };
            if let Some(reader) = behind {
                self.endpoint.handle(now, EndpointInput::Lagging(reader));
            }
        }
        let deadline = self.endpoint.deadline();
        if deadline.is_some_and(|it| self.armed.is_none_or(|armed| it < armed)) {
            self.armed = deadline;
            work.wake = deadline;
        }
        work
    }
}

impl<H: SharedHandler> Backend<H> for EndpointServer<H> {
    fn hear(&self, run: RunId, event: HandlerEvent) -> Work<H> {
        let work = self.lock().handle(EndpointInput::Handler(run, event));
        // The answer to a question must be read, whatever else is in flight.
        self.ended(work)
    }

    fn note(&self, run: RunId, event: HandlerEvent) {
        self.say(EndpointInput::Handler(run, event));
    }

    fn host_reply(&self, ticket: Ticket, reply: HostReply) -> Work<H> {
        let work = self.lock().handle(EndpointInput::Host(ticket, reply));
        self.ended(work)
    }

    fn page_done(&self, page: &str) {
        self.say(EndpointInput::PageDone(page));
    }

    fn close_stream(&self, run: RunId, retry: Option<Duration>) {
        self.say(EndpointInput::CloseStream(run, retry));
    }

    fn set_components(&self, components: Arc<Components<H>>, changed: Vec<ListKind>) {
        self.say(EndpointInput::Components(components, changed));
    }

    fn updated(&self, uri: &str) {
        self.say(EndpointInput::Updated(uri));
    }

    fn tick(&self) -> Work<H> {
        let mut state = self.lock();
        state.armed = None;
        let work = state.handle(EndpointInput::Tick);
        drop(state);
        self.ended(work)
    }

    fn deadline(&self) -> Option<Instant> {
        let mut state = self.lock();
        // Whoever waits from now on waits for this: what was armed before may be over, and would hide what is nearer.
        state.armed = state.endpoint.deadline();
        state.armed
    }

    fn close(&self) -> Work<H> {
        let work = self.lock().handle(EndpointInput::Closed);
        self.ended(work)
    }

    fn result_builder(&self, run: RunId) -> Option<ResultBuilder<H>> {
        self.lock().endpoint.result_builder(run)
    }

    fn in_flight(&self) -> usize {
        self.lock().endpoint.in_flight()
    }
}

impl<H> fmt::Debug for EndpointServer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointServer").finish_non_exhaustive()
    }
}
