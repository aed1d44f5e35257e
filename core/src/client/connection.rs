//! A connection to a server: requests in, responses and events out. The interface used by the bindings.

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
    listeners::{Listener, OnSubscriptionEvent},
    message_log::OnMessage,
};
use crate::{
    error::{Error, ErrorKind},
    peer::subscriptions::{Interests, SubscriptionKey, SubscriptionSettings},
    protocol::{Method, MethodName, Raw},
    session::client::{
        CallTimes, ClientConfig, ListKind, LogMessage, Progress, RequestKey, RequestOptions,
        ServerIdentity,
    },
    transport::{http::client::SessionId, network::Network, sign_in::Authorizer},
};

/// An unsolicited event.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Event {
    Log(LogMessage),
    ListChanged(ListKind),
    /// A subscribed resource was updated; with its URI.
    ResourceUpdated(String),
    /// A URL elicitation is finished; with its id.
    UrlDone(String),
    /// Any other notification.
    Notified {
        method: MethodName,
        params: Raw,
    },
    /// The state that the server kept for this client is lost, but the client is connected again: over a new HTTP session,
    /// a new connection, or to a process that was started again. Subscriptions continue. In a
    /// [`ClientGroup`](super::ClientGroup) also the first connection after failed attempts.
    Reconnected {
        /// The number of the attempt that succeeded, from 1.
        attempt: u32,
        /// The loss, of kind [`ErrorKind::Lost`], or the failure of the attempt before.
        reason: Arc<Error>,
        /// The server as it identifies itself now.
        server: Arc<ServerIdentity>,
    },
    /// The connection ended unexpectedly, with the reason. Not sent when this side closes it.
    Closed(String),
}

/// A question of the server: `roots/list`, `sampling/createMessage` or `elicitation/create`.
#[derive(Clone, Debug)]
pub struct Question {
    /// The question's key. Present in rounds of questions; for separate requests only in tests.
    pub key: Option<String>,
    pub method: Method,
    /// The params, a JSON object.
    pub params: Raw,
}

/// A boxed future.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// A callback for events, called in order. It must not block.
pub(super) type OnEvent = Arc<dyn Fn(Event) + Send + Sync>;
/// A callback for the progress of a request, called in order. It must not block.
pub(super) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;
/// A callback that answers questions with a result as raw JSON.
pub(super) type OnQuestion = Arc<dyn Fn(Question) -> BoxFuture<Result<Raw, Error>> + Send + Sync>;

/// A function that returns the headers that repeat arguments of a tool, as names and values, from the tool's name and
/// its arguments, a JSON object.
pub(super) type Mirror = Arc<dyn Fn(&str, &str) -> Vec<(String, String)> + Send + Sync>;

/// Options of a request.
#[derive(Clone, Default)]
pub(super) struct RequestSettings {
    /// The time limit without a response or progress; `None` means no limit.
    pub timeout: Option<Duration>,
    /// The total time limit, regardless of progress.
    pub max_timeout: Option<Duration>,
    pub on_progress: Option<OnProgress>,
    /// The request is another client's, whose capabilities its `_meta` may have.
    pub is_passed_on: bool,
    /// The times from which the limits count; `None`: from the request.
    pub times: Option<CallTimes>,
}

impl fmt::Debug for RequestSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSettings")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("wants_progress", &self.on_progress.is_some())
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

/// Options of a connection.
pub(super) struct ConnectionConfig {
    pub session: ClientConfig,
    /// The maximum size of a message from the server in bytes; longer ones are discarded.
    pub max_message: usize,
    /// Headers for every HTTP request and for the WebSocket handshake, as names and values.
    pub headers: Vec<(String, String)>,
    pub network: Network,
    /// The credentials for a server over HTTP.
    pub auth: Option<Arc<Authorizer>>,
    /// The headers that repeat arguments of a tool.
    pub mirror: Mirror,
    pub on_event: OnEvent,
    pub on_question: OnQuestion,
    /// Sees every message of the connection.
    pub on_message: Option<OnMessage>,
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionConfig").field("session", &self.session).finish_non_exhaustive()
    }
}

/// An open connection. Dropping it closes it in the background.
#[derive(Debug)]
pub(super) struct Connection {
    orders: mpsc::UnboundedSender<Order>,
    server: Arc<ServerIdentity>,
    session_id: SessionId,
    is_up: watch::Receiver<bool>,
    mirrors: bool,
    target: Arc<str>,
    next: AtomicU64,
}

/// An order to the task that owns the session.
pub(super) enum Order {
    Request {
        key: RequestKey,
        method: MethodName,
        /// A JSON object.
        params: String,
        options: RequestOptions,
        waiting: Waiting,
    },
    Cancel(RequestKey),
    Notify {
        method: MethodName,
        params: Raw,
    },
    Answer(crate::session::InboundKey, Result<Raw, Error>),
    DeclareRoots,
    Subscribe {
        key: SubscriptionKey,
        what: (Interests, SubscriptionSettings),
        listener: Listener,
    },
    Unsubscribe(SubscriptionKey),
    Close(oneshot::Sender<()>),
}

/// The callbacks of a pending request.
pub(super) struct Waiting {
    pub(super) reply: oneshot::Sender<Result<Raw, Error>>,
    pub(super) on_progress: Option<OnProgress>,
}

impl Connection {
    /// Connects to the server, starting its process if necessary, and negotiates the revision.
    pub(super) async fn open(target: Target, config: ConnectionConfig) -> Result<Self, Error> {
        let name: Arc<str> = target.to_string().into();
        let is_http = target.is_http();
        let Started { orders, server, session_id, is_up } =
            actor::start(target, Arc::clone(&name), config).await?;
        let mirrors = is_http && server.spoken().is_stateless;
        let next = AtomicU64::new(0);
        Ok(Self { orders, server, session_id, is_up, mirrors, target: name, next })
    }

    /// Returns the server's identity and capabilities.
    pub(super) fn describe(&self) -> &Arc<ServerIdentity> {
        &self.server
    }

    /// Returns the session's id; only legacy HTTP has one.
    pub(super) fn session_id(&self) -> Option<String> {
        self.session_id.get()
    }

    /// Returns whether requests repeat parts of the body, including tools' arguments, in headers.
    pub(super) fn mirrors(&self) -> bool {
        self.mirrors
    }

    /// Returns the command or address, for error messages.
    pub(super) fn target(&self) -> &Arc<str> {
        &self.target
    }

    /// Sends a request, whose params are a JSON object, and waits for its result.
    ///
    /// In the modern era the result may be `input_required`. Dropping the future cancels the request.
    pub(super) async fn request(
        &self,
        method: MethodName,
        params: String,
        settings: RequestSettings,
    ) -> Result<Raw, Error> {
        let key = RequestKey(self.next.fetch_add(1, Ordering::Relaxed));
        let RequestSettings { timeout, max_timeout, on_progress, is_passed_on, times } = settings;
        let wants_progress = on_progress.is_some();
        let options = RequestOptions { timeout, max_timeout, wants_progress, is_passed_on, times };
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting { reply, on_progress };
        self.order(Order::Request { key, method, params, options, waiting })?;
        let mut guard = CancelOnDrop { orders: &self.orders, key: Some(key) };
        let outcome = answer.await.map_err(|_| self.closed());
        guard.key = None;
        outcome?
    }

    /// Returns whether the connection is open.
    pub(super) fn is_up(&self) -> bool {
        *self.is_up.borrow()
    }

    /// Waits until the connection is lost or closed. From then on every request fails with the reason.
    pub(super) async fn disconnected(&self) {
        let mut is_up = self.is_up.clone();
        // The wait fails only if the task has ended, which means the same.
        let _ = is_up.wait_for(|is_up| !is_up).await;
    }

    /// Sends a notification. It is not sent if the negotiated revision does not define it.
    pub(super) fn notify(&self, method: MethodName, params: Raw) -> Result<(), Error> {
        self.order(Order::Notify { method, params })
    }

    /// Declares roots in all further requests, in the era in which requests carry capabilities.
    pub(super) fn declare_roots(&self) -> Result<(), Error> {
        self.order(Order::DeclareRoots)
    }

    /// Opens a subscription; `on_event` is called for each change once the receiver reports success.
    pub(super) fn subscribe(
        &self,
        interests: Interests,
        settings: SubscriptionSettings,
        on_event: OnSubscriptionEvent,
    ) -> Result<(SubscriptionKey, oneshot::Receiver<Result<(), Error>>), Error> {
        let key = SubscriptionKey(self.next.fetch_add(1, Ordering::Relaxed));
        let (opened, is_open) = oneshot::channel();
        let listener = Listener { opened: Some(opened), on_event };
        self.order(Order::Subscribe { key, what: (interests, settings), listener })?;
        Ok((key, is_open))
    }

    pub(super) fn unsubscribe(&self, key: SubscriptionKey) {
        // Sending fails only if the connection is gone, and the subscription with it.
        let _ = self.order(Order::Unsubscribe(key));
    }

    /// Closes the connection: ends the server's input, waits, and kills a process that does not exit.
    pub(super) async fn close(&self) {
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
            // Sending fails only if the connection is gone.
            let _ = self.orders.send(Order::Cancel(key));
        }
    }
}
