//! The client's HTTP transport for both eras: each message is a POST; messages arrive in responses and event streams.
//!
//! [`HttpWire`] belongs to the owner of the session. It alone decides whether a message is sent or queued, and never
//! blocks. Each exchange is a task that reports through [`TaskReport`].

mod cookies;
mod events;
mod exchange;
mod legacy_sse;
mod message;
mod pool;
mod renewal;
mod reply;
mod unauthorized;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::{AbortHandle, JoinSet},
};

use self::{
    message::{Kind, Message},
    pool::Pool,
};
pub(crate) use self::{reply::refused, unauthorized::Credentials};
use crate::{
    clock,
    driver::boxed,
    error::{Error, ErrorKind},
    protocol::Method as Rpc,
    session::client::NegotiatedProtocol,
    transport::{Url, messages::Arrival, network::Network, proxy::Proxy, sign_in::Authorizer},
    wire::headers,
};

/// If a new session is lost within this time, it is not replaced again on behalf of its stream.
const MIN_SESSION_LIFETIME: Duration = Duration::from_secs(5);
/// The reason once a session that was just begun is lost as well.
const LOST_AGAIN: &str = "the server ended the session twice; where several processes or replicas serve one address, all requests of a session must reach the same one: use sticky routing, or a single process";
/// The time to keep listening for messages about a cancelled request of a session.
const CANCEL_LINGER: Duration = Duration::from_secs(2);
/// The maximum number of events that were received but not processed.
const MAX_WAITING: usize = 64;
/// The maximum number of answers to the server's requests that are sent at once. Until one of them is accepted, nothing
/// more is read from the server.
const MAX_ANSWERS: usize = 64;

/// A function that returns the headers that repeat arguments of a tool, as names and values, from the tool's name and
/// arguments.
pub(crate) type Mirror = Arc<dyn Fn(&str, &str) -> Vec<(String, String)> + Send + Sync>;

/// Settings of an HTTP connection.
pub(crate) struct HttpOptions {
    pub(crate) url: Url,
    pub(crate) proxy: Option<Arc<Proxy>>,
    pub(crate) network: Network,
    /// The user's headers, sent with every request.
    pub(crate) headers: HeaderMap,
    /// The maximum size of a received message in bytes; longer ones are discarded.
    pub(crate) limit: usize,
    pub(crate) mirror: Mirror,
    pub(crate) session: SessionId,
    /// The credentials, which may change.
    pub(crate) auth: Option<Arc<Authorizer>>,
}

/// The session's id, shared with those who display it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionId(Arc<Mutex<Option<HeaderValue>>>);

/// A connection that consists of HTTP exchanges.
pub(crate) struct HttpWire {
    shared: Arc<Shared>,
    reports: mpsc::Receiver<TaskReport>,
    mirror: Mirror,
    /// The requests in progress, by id.
    exchanges: HashMap<u64, AbortHandle>,
    /// A permit for each answer to the server that may be sent at the same time.
    answers: Arc<Semaphore>,
    /// Messages that wait until the handshake is finished; `None` if messages can be sent.
    waiting: Option<VecDeque<Message>>,
    /// Messages that wait until a new session has the state of the old one.
    held: VecDeque<Message>,
    /// The time at which the server's own stream last reported that the session is gone.
    stream_gone: Option<Instant>,
    /// The `initialize` message, which is repeated to start a new session.
    initialize: Option<Message>,
    /// Events that are returned before all others.
    arrived: VecDeque<Arrival>,
    /// The number of requests that wait until the user has signed in.
    signing_in: watch::Receiver<usize>,
    /// True once the owner was notified that requests wait for the user.
    is_held: bool,
}

/// State shared by the tasks.
struct Shared {
    url: Url,
    headers: HeaderMap,
    limit: usize,
    pool: Arc<Pool>,
    reports: mpsc::Sender<TaskReport>,
    session: SessionId,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
    auth: Option<Arc<Authorizer>>,
    /// The number of requests that wait until the user has signed in.
    signing_in: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// The negotiated revision, once the handshake is finished.
    version: Option<HeaderValue>,
    /// The URL for messages, if it differs from the server's URL.
    post_to: Option<Url>,
    /// True for an HTTP+SSE server.
    is_pair: bool,
    /// The task that reads the server's stream for unsolicited messages.
    own_stream: Option<AbortHandle>,
}

/// A report of a task.
enum TaskReport {
    Frame(Bytes),
    TooLong,
    /// The response to a request, which ends its exchange.
    Answer {
        id: u64,
        frame: Bytes,
    },
    Failed {
        id: u64,
        error: Error,
    },
    /// The request was not processed because the server no longer knows the session.
    SessionGone {
        session: HeaderValue,
        message: Message,
    },
    /// The server's stream for unsolicited messages reported that the session is gone.
    StreamGone(HeaderValue),
    /// The server's notifications can no longer be received, with the reason.
    StreamLost(String),
    /// The handshake is finished; queued messages can be sent.
    Settled,
    /// A new session replaced the one that the server ended.
    Renewed,
    /// No new session could be started, with the reason.
    NotRenewed(String),
    /// The connection ended, with the reason.
    End(String),
}

impl HttpWire {
    pub(crate) fn new(options: HttpOptions) -> Self {
        let HttpOptions { url, proxy, network, mut headers, limit, mirror, session, auth } =
            options;
        if let Ok(host) = HeaderValue::from_str(&url.authority()) {
            headers.entry(header::HOST).or_insert(host);
        }
        let (sender, reports) = mpsc::channel(MAX_WAITING);
        let (counter, signing_in) = watch::channel(0);
        let shared = Shared {
            pool: Pool::new(url.clone(), proxy, network),
            url,
            headers,
            limit,
            reports: sender,
            session,
            state: Mutex::default(),
            tasks: Mutex::default(),
            auth,
            signing_in: counter,
        };
        Self {
            shared: Arc::new(shared),
            reports,
            mirror,
            exchanges: HashMap::new(),
            answers: Arc::new(Semaphore::new(MAX_ANSWERS)),
            waiting: None,
            held: VecDeque::new(),
            stream_gone: None,
            initialize: None,
            arrived: VecDeque::new(),
            signing_in,
            is_held: false,
        }
    }

    /// Sends a frame of the session.
    pub(crate) fn send(&mut self, frame: Vec<u8>, spoken: NegotiatedProtocol) {
        let message = Message::read(frame, spoken, &self.mirror);
        if let Kind::Notification { cancels: Some(id), .. } = &message.kind {
            match self.exchanges.remove(id) {
                // Closing the exchange is the cancellation in the modern era.
                Some(exchange) if message.is_stateless => exchange.abort(),
                // The server may still withdraw a question to the user on this stream.
                Some(exchange) => self.shared.keep(async move {
                    tokio::time::sleep(CANCEL_LINGER).await;
                    exchange.abort();
                }),
                None => (),
            }
            for waiting in self.waiting.iter_mut().chain([&mut self.held]) {
                waiting.retain(|message| message.request() != Some(*id));
            }
            if message.is_stateless {
                return;
            }
        }
        if message.is(Rpc::Initialize) {
            self.initialize = Some(message.clone());
        }
        if message.is(Rpc::Initialized) {
            self.shared.agree(spoken);
            self.waiting = Some(VecDeque::new());
            return self.shared.keep(renewal::settle(Arc::clone(&self.shared), message));
        }
        match &mut self.waiting {
            Some(waiting) if message.kind == Kind::Answer && waiting.len() >= MAX_ANSWERS => {
                tracing::warn!("dropped an answer to a server that is not ready for it");
            }
            Some(waiting) => waiting.push_back(message),
            None => self.start(message),
        }
    }

    /// Returns the next event. Cancel safe.
    pub(crate) async fn next(&mut self) -> Arrival {
        for message in std::mem::take(&mut self.held) {
            self.start(message);
        }
        loop {
            if let Some(arrival) = self.arrived.pop_front() {
                return arrival;
            }
            // A server that does not accept answers could otherwise make this client keep any number of them.
            drop(self.answers.acquire().await);
            let report = tokio::select! {
                report = self.reports.recv() => report,
                _ = self.signing_in.changed() => {
                    let waits = *self.signing_in.borrow() > 0;
                    if std::mem::replace(&mut self.is_held, waits) == waits {
                        continue;
                    }
                    return Arrival::Held(waits);
                }
            };
            let Some(report) = report else {
                return Arrival::End("the client was closed".into());
            };
            match report {
                TaskReport::Frame(frame) => return Arrival::Frame(frame),
                TaskReport::TooLong => {
                    return Arrival::TooLong {
                        limit: self.shared.limit,
                        beginning: Vec::new(),
                        end: Vec::new(),
                    };
                }
                TaskReport::Answer { id, frame } => {
                    self.exchanges.remove(&id);
                    return Arrival::Response { id, frame };
                }
                TaskReport::Failed { id, error } => {
                    self.exchanges.remove(&id);
                    return Arrival::Failed { id, error };
                }
                TaskReport::SessionGone { session, message } => self.renew(&session, message),
                TaskReport::StreamGone(session) => {
                    let now = clock::now();
                    if self
                        .stream_gone
                        .replace(now)
                        .is_some_and(|before| now - before < MIN_SESSION_LIFETIME)
                    {
                        return Arrival::StreamLost(LOST_AGAIN.into());
                    }
                    self.begin_anew(&session);
                }
                TaskReport::StreamLost(why) => return Arrival::StreamLost(why),
                TaskReport::Settled => self.start_waiting(),
                TaskReport::Renewed => {
                    // Messages that restore the session's state are sent before all others.
                    self.held = self.waiting.take().unwrap_or_default();
                    return Arrival::Renewed;
                }
                TaskReport::NotRenewed(why) => {
                    for message in self.waiting.take().into_iter().flatten() {
                        self.fail(&message, why.clone());
                    }
                    return Arrival::StreamLost(why);
                }
                TaskReport::End(why) => return Arrival::End(why),
            }
        }
    }

    /// Ends all exchanges and the session; the server has up to `grace` to confirm.
    pub(crate) async fn close(self, grace: Duration) {
        self.shared.tasks().abort_all();
        if self.shared.session().is_some() && !self.shared.is_pair() {
            let headers = self.shared.session_headers();
            let ended = self.shared.send(Method::DELETE, || headers.clone(), Bytes::new(), true);
            // The server may not support ending a session, or may be gone.
            let ended = async { drop(ended.await.map(|reply| reply.status)) };
            let _ = tokio::time::timeout(grace, ended).await;
        }
    }

    fn start(&mut self, message: Message) {
        let request = message.request();
        let is_answer = message.kind == Kind::Answer;
        // Boxed, because tokio copies the future of a task several times.
        let exchange = Box::pin(exchange::carry(Arc::clone(&self.shared), message));
        if is_answer {
            let answers = Arc::clone(&self.answers);
            // Taken before the task begins, so that `next` sees it.
            let permit = Arc::clone(&answers).try_acquire_owned();
            return self.shared.keep(async move {
                let _permit = match permit {
                    Ok(permit) => Some(permit),
                    // A batch of the server may need more answers than there are permits.
                    Err(_) => answers.acquire_owned().await.ok(),
                };
                exchange.await;
            });
        }
        let handle = self.shared.tasks().spawn(boxed(exchange));
        if let Some(id) = request {
            self.exchanges.insert(id, handle);
        }
    }

    /// Starts a new session for a request that was rejected because its session was gone, and repeats the request,
    /// which had no effect.
    ///
    /// 2025-11-25, "Session Management": the client MUST start a new session when it receives 404.
    fn renew(&mut self, gone: &HeaderValue, mut message: Message) {
        if std::mem::replace(&mut message.is_repeated, true) {
            return self.fail(&message, LOST_AGAIN.into());
        }
        self.begin_anew(gone);
        match &mut self.waiting {
            Some(waiting) => waiting.push_back(message),
            // A new session was started in the meantime.
            None => self.start(message),
        }
    }

    /// Starts a session in place of this one, unless another task has done so or is doing so.
    fn begin_anew(&mut self, gone: &HeaderValue) {
        let is_current = self.shared.session().as_ref() == Some(gone);
        if let (None, Some(initialize), true) = (&self.waiting, &self.initialize, is_current) {
            let shared = Arc::clone(&self.shared);
            self.shared.keep(renewal::renew(shared, initialize.clone()));
            self.waiting = Some(VecDeque::new());
        }
    }

    fn start_waiting(&mut self) {
        for message in self.waiting.take().into_iter().flatten() {
            self.start(message);
        }
    }

    /// Fails a request that was not processed and will not be repeated.
    fn fail(&mut self, message: &Message, why: String) {
        if let Some(id) = message.request() {
            self.exchanges.remove(&id);
            let error = Error::new(ErrorKind::Lost, why);
            self.arrived.push_back(Arrival::Failed { id, error });
        }
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.shared.tasks().abort_all();
    }
}

impl fmt::Debug for HttpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWire").field("url", &self.shared.url).finish_non_exhaustive()
    }
}

impl SessionId {
    pub(crate) fn get(&self) -> Option<String> {
        self.lock().as_ref().and_then(|id| id.to_str().ok()).map(ToOwned::to_owned)
    }

    fn lock(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    async fn report(&self, report: TaskReport) {
        // Sending fails only if the connection was dropped.
        let _ = self.reports.send(report).await;
    }

    /// Returns shared state for the same server and a separate channel, for an exchange whose response is not part of
    /// the session.
    fn beside(&self) -> (Self, mpsc::Receiver<TaskReport>) {
        let (sender, reports) = mpsc::channel(MAX_WAITING);
        let state = State { post_to: self.state().post_to.clone(), ..State::default() };
        let beside = Self {
            url: self.url.clone(),
            headers: self.headers.clone(),
            limit: self.limit,
            pool: Arc::clone(&self.pool),
            reports: sender,
            session: self.session.clone(),
            state: Mutex::new(state),
            tasks: Mutex::default(),
            auth: self.auth.clone(),
            signing_in: self.signing_in.clone(),
        };
        (beside, reports)
    }

    /// Starts reading the server's own stream; replaces the previous task.
    fn listen(&self, stream: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks().spawn(boxed(stream));
        if let Some(before) = self.state().own_stream.replace(handle) {
            before.abort();
        }
    }

    /// Runs a future until it ends or the connection is dropped.
    fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks().spawn(boxed(work));
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> Option<HeaderValue> {
        self.session.lock().clone()
    }

    fn set_session(&self, id: Option<HeaderValue>) {
        *self.session.lock() = id;
    }

    /// Returns the headers of every request of a session.
    fn session_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(session) = self.session() {
            headers.insert(headers::SESSION_ID, session);
        }
        if let Some(version) = &self.state().version {
            headers.insert(headers::PROTOCOL_VERSION, version.clone());
        }
        headers
    }

    fn agree(&self, spoken: NegotiatedProtocol) {
        self.state().version = Some(HeaderValue::from_static(spoken.revision.as_str()));
    }

    fn post_url(&self) -> Url {
        self.state().post_to.clone().unwrap_or_else(|| self.url.clone())
    }

    fn moved(&self, to: &Url) {
        self.state().post_to = Some(to.clone());
    }

    fn pair_with(&self, endpoint: Url) {
        let mut state = self.state();
        state.post_to = Some(endpoint);
        state.is_pair = true;
    }

    fn is_pair(&self) -> bool {
        self.state().is_pair
    }
}

fn too_long(limit: usize) -> Error {
    Error::new(ErrorKind::Protocol, format!("the server's answer is longer than {limit} bytes"))
        .limited_by("max_message")
}
