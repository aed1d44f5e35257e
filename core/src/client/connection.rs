//! One connection to one server: requests in, answers and events out. What bindings stand on.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{mpsc, oneshot, watch};

use super::{
    Target,
    actor::{self, Started},
    listeners::{Listener, OnNews},
};
use crate::{
    error::{Error, ErrorKind},
    peer::subscriptions::{Interests, SubscriptionKey, SubscriptionSettings},
    protocol::{Method, MethodName, Raw},
    session::client::{
        ClientConfig, ListKind, LogMessage, Progress, RequestKey, RequestOptions, ServerIdentity,
    },
    transport::http::client::SessionId,
};

/// What a server tells without being asked.
#[derive(Clone, Debug)]
pub enum Event {
    Log(LogMessage),
    ListChanged(ListKind),
    /// A subscribed resource's URI.
    ResourceUpdated(String),
    /// What the user was sent to a page for is finished: the elicitation's id.
    UrlDone(String),
    /// Any other notification.
    Notified {
        method: MethodName,
        params: Raw,
    },
    /// The server had forgotten the session (HTTP), and another was begun: what it kept there is gone.
    Renewed,
    /// The connection is gone, and why. Not told when this side closed it.
    Closed(String),
}

/// A question of a server's: `roots/list`, `sampling/createMessage` or `elicitation/create`.
#[derive(Clone, Debug)]
pub struct Question {
    /// What the server calls it, where it says so: in rounds it does, in requests of its own only in tests.
    pub key: Option<String>,
    pub method: Method,
    /// A JSON object.
    pub params: Raw,
}

/// A future in a box.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Is told of events, in order. Must not block.
pub type OnEvent = Arc<dyn Fn(Event) + Send + Sync>;
/// Is told how far a request is, in order. Must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;
/// Answers questions with a result as on the wire.
pub type OnQuestion = Arc<dyn Fn(Question) -> BoxFuture<Result<Raw, Error>> + Send + Sync>;

/// The headers that repeat arguments of a tool: its name and its arguments, a JSON object, in; names and values out.
pub type Mirror = Arc<dyn Fn(&str, &str) -> Vec<(String, String)> + Send + Sync>;

/// How one request is made.
#[derive(Clone, Default)]
pub struct RequestSettings {
    /// Without an answer and without progress; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// In all, however much progress is made.
    pub max_timeout: Option<Duration>,
    pub on_progress: Option<OnProgress>,
}

impl fmt::Debug for RequestSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSettings")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("wants_progress", &self.on_progress.is_some())
            .finish()
    }
}

/// How a connection behaves.
pub struct ConnectionConfig {
    pub session: ClientConfig,
    /// Longer messages of the server's are thrown away: bytes.
    pub max_message: usize,
    /// Sent with every request over HTTP, and with a WebSocket's first; names and values.
    pub headers: Vec<(String, String)>,
    /// What of a tool's arguments is repeated in headers.
    pub mirror: Mirror,
    pub on_event: OnEvent,
    pub on_question: OnQuestion,
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionConfig").field("session", &self.session).finish_non_exhaustive()
    }
}

/// A connection that is open. Dropping it closes it in the background.
#[derive(Debug)]
pub struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    server: Arc<ServerIdentity>,
    session_id: SessionId,
    is_up: watch::Receiver<bool>,
    mirrors: bool,
    target: Arc<str>,
    next: AtomicU64,
}

/// What is asked of the task that owns the session.
pub(super) enum Order {
    Request {
        key: RequestKey,
        method: MethodName,
        params: Raw,
        options: RequestOptions,
        waiting: Waiting,
    },
    Cancel(RequestKey),
    Notify {
        method: MethodName,
        params: Raw,
    },
    Answer(crate::session::CallId, Result<Raw, Error>),
    DeclareRoots,
    Subscribe {
        key: SubscriptionKey,
        what: (Interests, SubscriptionSettings),
        listener: Listener,
    },
    Unsubscribe(SubscriptionKey),
    Close(oneshot::Sender<()>),
}

/// Who waits for an answer.
pub(super) struct Waiting {
    pub(super) reply: oneshot::Sender<Result<Raw, Error>>,
    pub(super) on_progress: Option<OnProgress>,
}

impl Connection {
    /// Starts or reaches the server and agrees on a revision with it.
    pub async fn open(target: Target, config: ConnectionConfig) -> Result<Self, Error> {
        let name: Arc<str> = target.to_string().into();
        let is_http = target.is_http();
        let Started { orders, server, session_id, is_up } =
            actor::start(target, Arc::clone(&name), config).await?;
        let mirrors = is_http && server.spoken().is_stateless;
        let next = AtomicU64::new(0);
        Ok(Self { orders, server, session_id, is_up, mirrors, target: name, next })
    }

    /// What the server said of itself.
    pub fn describe(&self) -> &Arc<ServerIdentity> {
        &self.server
    }

    /// The session's id, where there is one: legacy HTTP only.
    pub fn session_id(&self) -> Option<String> {
        self.session_id.get()
    }

    /// Whether requests repeat themselves in headers, arguments of tools included.
    pub fn mirrors(&self) -> bool {
        self.mirrors
    }

    /// The command or address, as errors name it.
    pub fn target(&self) -> &Arc<str> {
        &self.target
    }

    /// Sends a request, whose params are a JSON object, and waits for its result.
    ///
    /// In the modern era that may be an `input_required` one. Dropping the future cancels the request.
    pub async fn request(
        &self,
        method: MethodName,
        params: Raw,
        settings: RequestSettings,
    ) -> Result<Raw, Error> {
        let key = RequestKey(self.next.fetch_add(1, Ordering::Relaxed));
        let RequestSettings { timeout, max_timeout, on_progress } = settings;
        let options =
            RequestOptions { timeout, max_timeout, wants_progress: on_progress.is_some() };
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting { reply, on_progress };
        self.order(Order::Request { key, method, params, options, waiting })?;
        let mut guard = CancelOnDrop { orders: &self.orders, key: Some(key) };
        let outcome = answer.await.map_err(|_| self.closed());
        guard.key = None;
        outcome?
    }

    /// Waits until the connection is lost or closed: from then on every request fails, and says why.
    pub(super) async fn gone(&self) {
        let mut is_up = self.is_up.clone();
        // Whoever would say so is gone itself when this fails.
        let _ = is_up.wait_for(|is_up| !is_up).await;
    }

    /// Tells the server something; what its revision has no word for is not sent.
    pub fn notify(&self, method: MethodName, params: Raw) -> Result<(), Error> {
        self.order(Order::Notify { method, params })
    }

    /// From now on each request says that this client has roots, where requests say what a client can do.
    pub fn declare_roots(&self) -> Result<(), Error> {
        self.order(Order::DeclareRoots)
    }

    /// Tells of changes by `on_news` from when the receiver says so.
    pub(super) fn subscribe(
        &self,
        interests: Interests,
        settings: SubscriptionSettings,
        on_news: OnNews,
    ) -> Result<(SubscriptionKey, oneshot::Receiver<Result<(), Error>>), Error> {
        let key = SubscriptionKey(self.next.fetch_add(1, Ordering::Relaxed));
        let (opened, is_open) = oneshot::channel();
        let listener = Listener { opened: Some(opened), on_news };
        self.order(Order::Subscribe { key, what: (interests, settings), listener })?;
        Ok((key, is_open))
    }

    pub(super) fn unsubscribe(&self, key: SubscriptionKey) {
        // With the connection gone, it is gone.
        let _ = self.order(Order::Unsubscribe(key));
    }

    /// Ends the connection: closes the server's input, waits, and ends a process that stays.
    pub async fn close(&self) {
        let (closed, done) = oneshot::channel();
        if self.order(Order::Close(closed)).is_ok() {
            let _ = done.await;
        }
    }

    fn order(&self, order: Order) -> Result<(), Error> {
        self.orders.send(order).map_err(|_| self.closed())
    }

    pub(super) fn closed(&self) -> Error {
        Error::new(ErrorKind::Lost, format!("{}: the connection is closed", self.target))
            .with_target(&*self.target)
    }
}

struct CancelOnDrop<'a> {
    orders: &'a mpsc::UnboundedSender<Order>,
    key: Option<RequestKey>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // Nobody is there any more when this fails.
            let _ = self.orders.send(Order::Cancel(key));
        }
    }
}
