//! A client's side of HTTP in every era: each message is a POST, what arrives comes in replies and streams.
//!
//! [`HttpWire`] is what the owner of the session holds. It decides what is sent now and what waits, in one place and
//! without waiting itself; each exchange is a task that reports by [`News`].

mod events;
mod exchange;
mod legacy_sse;
mod message;
mod pool;
mod renewal;
mod reply;

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
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

pub(crate) use self::reply::refused;
use self::{
    message::{Kind, Message},
    pool::Pool,
};
use crate::{
    error::{Error, ErrorKind},
    protocol::Method as Rpc,
    session::client::Spoken,
    transport::{Url, messages::Arrival},
    wire::headers,
};

/// A session that is gone sooner is not begun anew for the sake of its stream twice.
const WORTHWHILE: Duration = Duration::from_secs(5);
/// How long a session's server is listened to about a request that was given up.
const AFTERMATH: Duration = Duration::from_secs(2);
/// What arrived and was not looked at yet.
const MAX_WAITING: usize = 64;

/// The headers that repeat arguments of a tool: its name and arguments in, names and values out.
pub(crate) type Mirror = Arc<dyn Fn(&str, &str) -> Vec<(String, String)> + Send + Sync>;

/// What an exchange is given.
pub(crate) struct HttpOptions {
    pub(crate) url: Url,
    /// Of the user's, with every request.
    pub(crate) headers: HeaderMap,
    /// Longer messages are thrown away: bytes.
    pub(crate) limit: usize,
    pub(crate) mirror: Mirror,
    pub(crate) session: SessionId,
}

/// The session's id, for whoever wants to know it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionId(Arc<Mutex<Option<HeaderValue>>>);

/// A wire that is a sequence of HTTP exchanges.
pub(crate) struct HttpWire {
    shared: Arc<Shared>,
    news: mpsc::Receiver<News>,
    mirror: Mirror,
    /// Requests under way, by their ids.
    exchanges: HashMap<u64, AbortHandle>,
    /// Messages that wait until the handshake is through; `None` while nothing needs to wait.
    waiting: Option<VecDeque<Message>>,
    /// What waited for a new session, until that is set up as the old one was.
    held: VecDeque<Message>,
    /// When the server's own stream said last that there is no such session.
    stream_gone: Option<Instant>,
    /// Of the handshake, to begin a session anew.
    initialize: Option<Message>,
    /// What goes out before anything else.
    arrived: VecDeque<Arrival>,
}

/// What the tasks have in common.
struct Shared {
    url: Url,
    headers: HeaderMap,
    limit: usize,
    pool: Arc<Pool>,
    news: mpsc::Sender<News>,
    session: SessionId,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    /// The revision that was agreed on, once a handshake is through.
    version: Option<HeaderValue>,
    /// Where messages go, if not to the URL.
    post_to: Option<Url>,
    /// It is an HTTP+SSE server.
    is_pair: bool,
    /// What reads the stream on which the server speaks unasked.
    own_stream: Option<AbortHandle>,
}

/// What a task reports.
enum News {
    Frame(Bytes),
    TooLong,
    /// The answer to a request of ours: its exchange is over.
    Answer {
        id: u64,
        frame: Bytes,
    },
    Failed {
        id: u64,
        error: Error,
    },
    /// The request was not looked at, for the server does not know the session any more.
    SessionGone {
        session: HeaderValue,
        message: Message,
    },
    /// There is no such session any more, says the server where it would speak unasked.
    StreamGone(HeaderValue),
    /// What the server says unasked does not arrive any more, and why.
    StreamLost(String),
    /// The handshake is through: messages need not wait any more.
    Settled,
    /// A new session is there, in place of one that the server forgot.
    Renewed,
    /// No session could be begun anew, and why.
    NotRenewed(String),
    /// Nothing more will arrive, and why.
    End(String),
}

impl HttpWire {
    pub(crate) fn new(options: HttpOptions) -> Self {
        let HttpOptions { url, mut headers, limit, mirror, session } = options;
        if let Ok(host) = HeaderValue::from_str(&url.authority()) {
            headers.entry(header::HOST).or_insert(host);
        }
        let (sender, news) = mpsc::channel(MAX_WAITING);
        let shared = Shared {
            pool: Pool::new(url.clone()),
            url,
            headers,
            limit,
            news: sender,
            session,
            state: Mutex::default(),
            tasks: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            news,
            mirror,
            exchanges: HashMap::new(),
            waiting: None,
            held: VecDeque::new(),
            stream_gone: None,
            initialize: None,
            arrived: VecDeque::new(),
        }
    }

    /// Sends a frame of the session's.
    pub(crate) fn send(&mut self, frame: Vec<u8>, spoken: Spoken) {
        let message = Message::read(frame, spoken, &self.mirror);
        if let Kind::Notification { cancels: Some(id), .. } = &message.kind {
            match self.exchanges.remove(id) {
                // That is the cancellation: the server sees the exchange end.
                Some(exchange) if message.is_stateless => exchange.abort(),
                // The server may still take back there what it asks the user.
                Some(exchange) => self.shared.keep(async move {
                    tokio::time::sleep(AFTERMATH).await;
                    exchange.abort();
                }),
                None => (),
            }
            for waiting in self.waiting.iter_mut().chain([&mut self.held]) {
                waiting.retain(|it| it.request() != Some(*id));
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
            Some(waiting) => waiting.push_back(message),
            None => self.start(message),
        }
    }

    /// What arrives next. Loses nothing when dropped half-way.
    pub(crate) async fn next(&mut self) -> Arrival {
        for message in std::mem::take(&mut self.held) {
            self.start(message);
        }
        loop {
            if let Some(arrival) = self.arrived.pop_front() {
                return arrival;
            }
            let Some(news) = self.news.recv().await else {
                return Arrival::End("the client was closed".into());
            };
            match news {
                News::Frame(frame) => return Arrival::Frame(frame),
                News::TooLong => return Arrival::TooLong { limit: self.shared.limit },
                News::Answer { id, frame } => {
                    self.exchanges.remove(&id);
                    return Arrival::Frame(frame);
                }
                News::Failed { id, error } => {
                    self.exchanges.remove(&id);
                    return Arrival::Failed { id, error };
                }
                News::SessionGone { session, message } => self.renew(&session, message),
                News::StreamGone(session) => {
                    let now = Instant::now();
                    if self.stream_gone.replace(now).is_some_and(|it| now - it < WORTHWHILE) {
                        let why = "the server ended the session again and again";
                        return Arrival::Deaf(why.into());
                    }
                    self.begin_anew(&session);
                }
                News::StreamLost(why) => return Arrival::Deaf(why),
                News::Settled => self.start_waiting(),
                News::Renewed => {
                    // What is set again goes first.
                    self.held = self.waiting.take().unwrap_or_default();
                    return Arrival::Renewed;
                }
                News::NotRenewed(why) => {
                    for message in self.waiting.take().into_iter().flatten() {
                        self.fail(&message, why.clone());
                    }
                    return Arrival::Deaf(why);
                }
                News::End(why) => return Arrival::End(why),
            }
        }
    }

    /// Ends every exchange, and the session, for which the server has `grace`.
    pub(crate) async fn close(self, grace: Duration) {
        self.shared.tasks().abort_all();
        if self.shared.session().is_some() && !self.shared.is_pair() {
            let headers = self.shared.session_headers();
            let ended = self.shared.send(Method::DELETE, || headers.clone(), Bytes::new(), true);
            // A server need not allow it, and may be gone.
            let ended = async { drop(ended.await.map(|it| it.status)) };
            let _ = tokio::time::timeout(grace, ended).await;
        }
    }

    fn start(&mut self, message: Message) {
        let request = message.request();
        let exchange = exchange::carry(Arc::clone(&self.shared), message);
        let handle = self.shared.tasks().spawn(exchange);
        if let Some(id) = request {
            self.exchanges.insert(id, handle);
        }
    }

    /// Begins the session anew for a request that was refused because of it, and which is sent again: it did nothing.
    ///
    /// 2025-11-25, "Session Management": the client MUST start a new session when it receives 404.
    fn renew(&mut self, gone: &HeaderValue, mut message: Message) {
        if std::mem::replace(&mut message.is_repeated, true) {
            return self.fail(&message, "the server ended the session again and again".into());
        }
        self.begin_anew(gone);
        match &mut self.waiting {
            Some(waiting) => waiting.push_back(message),
            // Meanwhile there is another.
            None => self.start(message),
        }
    }

    /// Begins a session in place of this one, unless that was done or is being done.
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

    /// The request was not looked at, and will not be sent again.
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
        self.lock().as_ref().and_then(|it| it.to_str().ok()).map(ToOwned::to_owned)
    }

    fn lock(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    async fn tell(&self, news: News) {
        // The wire is gone when this fails.
        let _ = self.news.send(news).await;
    }

    /// The same server, for an exchange whose answer is not the session's.
    fn beside(&self) -> (Self, mpsc::Receiver<News>) {
        let (sender, news) = mpsc::channel(MAX_WAITING);
        let state = State { post_to: self.state().post_to.clone(), ..State::default() };
        let beside = Self {
            url: self.url.clone(),
            headers: self.headers.clone(),
            limit: self.limit,
            pool: Arc::clone(&self.pool),
            news: sender,
            session: self.session.clone(),
            state: Mutex::new(state),
            tasks: Mutex::default(),
        };
        (beside, news)
    }

    /// Reads the server's own stream, in place of the one before.
    fn listen(&self, stream: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks().spawn(stream);
        if let Some(before) = self.state().own_stream.replace(handle) {
            before.abort();
        }
    }

    /// Runs something for as long as the wire lives.
    fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks().spawn(work);
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

    /// What every request of a session carries.
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

    fn agree(&self, spoken: Spoken) {
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
        .with_hint("max_message sets the limit")
}
