//! An endpoint whose IO is done by Python: an ASGI app, or a transport of the user's own.

use std::{
    fmt,
    os::fd::{AsFd, AsRawFd},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Instant,
};

use gudgeon::{
    auth::server::authenticator::Caller,
    bindings::{
        auth_runtime::AuthRuntime, mounts::ComputationThreads, store_runtime::StoreRuntime,
    },
    driver::{EndpointServer, EndpointStep, Work},
    framing::TooLong,
    http::{ConnectionId, MountPoint, Peer},
    protocol::{Principal, TraceContext},
};
use http::Method;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyList};

use crate::{
    exchange::{RequestHead, head, piece},
    response_queue::{LoopNotifier, MAX_QUEUED, ResponseQueue, ResponseSender},
    server::NativeServer,
    serving::Serving,
    source::Source,
    stream::{Stream, lock},
};

/// The maximum number of unsent bytes; beyond it no more messages are read.
const MAX_UNSENT: usize = 256 * 1024;

/// An endpoint for peers served by an event loop. Their sessions outlive the loop.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Endpoint {
    source: Arc<Source>,
    pub(crate) server: Arc<EndpointServer>,
    pub(crate) notifier: Arc<LoopNotifier>,
    /// The stream that runs the handlers at the moment.
    stream: Arc<Mutex<Option<Arc<Stream>>>>,
    /// Run what would hold up the event loop.
    threads: ComputationThreads,
    /// Sends the requests of the authentication; `None` if everybody may call.
    runtime: Option<AuthRuntime>,
    /// Carries the operations on the store; `None` without one.
    _store: Option<StoreRuntime>,
}

impl Endpoint {
    pub(crate) fn new(server: Arc<EndpointServer>) -> PyResult<Self> {
        let notifier = LoopNotifier::new()?;
        let source =
            Source::Peers { server: Arc::clone(&server), notifier: Some(Arc::clone(&notifier)) };
        let runtime = AuthRuntime::start(&server)?;
        let (source, stream): (_, Arc<Mutex<Option<Arc<Stream>>>>) =
            (Arc::new(source), Arc::default());
        let threads = ComputationThreads::default();
        let serving = Arc::clone(&stream);
        let store = StoreRuntime::start(&server, move |work| distribute(&serving, work))?;
        Ok(Self { source, server, notifier, stream, threads, runtime, _store: store })
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn runtime(&self) -> Option<&AuthRuntime> {
        self.runtime.as_ref()
    }

    pub(crate) fn distribute(&self, work: Work) {
        distribute(&self.stream, work);
    }

    /// Distributes the work of a step; that of computations that may take long follows later, from another thread.
    pub(crate) fn finish(&self, step: EndpointStep) {
        let stream = Arc::clone(&self.stream);
        self.threads.finish(&self.server, step, move |work| distribute(&stream, work));
    }
}

fn distribute(stream: &Mutex<Option<Arc<Stream>>>, work: Work) {
    if !work.is_empty() {
        let stream = lock(stream).clone();
        if let Some(stream) = stream {
            stream.distribute(work, false);
        }
    }
}

#[pymethods]
impl Endpoint {
    /// Returns `true` if callers have to be authenticated.
    #[getter]
    fn has_auth(&self) -> bool {
        self.server.has_auth()
    }

    /// Starts the threads for handlers. Only one set may run at a time: stop it before starting the next.
    fn serve(
        &self,
        py: Python<'_>,
        of: &NativeServer,
        app: Py<PyAny>,
        context: Py<PyAny>,
    ) -> PyResult<Serving> {
        let stream = Stream::open(Arc::clone(&self.source), app, context, of)?;
        of.ready(py, &stream)?;
        *lock(&self.stream) = Some(Arc::clone(&stream));
        py.detach(|| Serving::start(stream))
    }

    /// The maximum length of a request body, in bytes.
    #[getter]
    fn max_body(&self) -> usize {
        self.server.admission().max_body()
    }

    /// The number of incomplete responses.
    #[getter]
    fn open_exchanges(&self) -> usize {
        self.server.open_exchanges()
    }

    /// Readable when `collect` or `tick` has something to do.
    fn fileno(&self) -> i32 {
        self.notifier.as_fd().as_raw_fd()
    }

    /// Returns the futures to resolve.
    fn collect(&self) -> Vec<Py<PyAny>> {
        self.notifier.collect()
    }

    /// Returns the seconds until `tick` must be called; None if unchanged.
    fn alarm(&self) -> Option<f64> {
        if !self.notifier.take_alarm() {
            return None;
        }
        let deadline = self.server.deadline()?;
        Some(deadline.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    /// Handles the deadlines that have passed.
    fn tick(&self) {
        self.distribute(self.server.tick());
        // The next deadline may be equal to the last one, which is not reported as a change.
        self.notifier.sound_alarm();
    }

    /// Ends the streams that carry only notifications; everything else continues.
    fn end_streams(&self) {
        self.distribute(self.server.end_streams());
    }

    /// Accepts no more requests and ends subscriptions; calls in flight continue.
    fn shut_down(&self) {
        self.distribute(self.server.shut_down());
    }

    /// Cancels everything.
    fn close(&self) {
        self.distribute(self.server.close());
        *lock(&self.stream) = None;
    }

    /// Returns the response to a request for `health` or `ready`; None for a request with another path. `is_started`: the
    /// lifespan was entered.
    fn probe<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        path: &[u8],
        is_started: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::TRACE);
        // A path of other bytes is not one of the options.
        let path = str::from_utf8(path).unwrap_or_default();
        let answer = self.server.admission().probe(&method, path, is_started);
        answer.map(|answer| piece(py, answer)).transpose()
    }

    /// Checks the head of a request, before its body is read. `arrival`: whether it arrived on the loopback interface, and its
    /// port if that is known; `peer`: the address of the other side of the connection, or "unix"; `mount`: the prefix of the path
    /// below which the app is mounted, and whether the host is reached by https; `trace`: `traceparent`, `tracestate` and `baggage` of
    /// the span that is active in the host. Returns the first part of the response instead if the request is refused.
    #[pyo3(signature = (method, path, query, headers, arrival, peer, mount = None, trace = None))]
    #[expect(clippy::too_many_arguments, reason = "one call a request")]
    fn head<'py>(
        this: &Bound<'py, Self>,
        method: &str,
        path: &[u8],
        query: &[u8],
        headers: &Bound<'py, PyAny>,
        arrival: (bool, Option<u16>),
        peer: Option<&str>,
        mount: Option<(Vec<u8>, bool)>,
        trace: Option<(Option<String>, Option<String>, Option<String>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut head = head(method, path, query, headers, arrival)?;
        if let Some((parent, state, baggage)) = trace {
            head.extensions.insert(TraceContext::new(parent, state, baggage));
        }
        set_mount(&mut head, mount);
        let admission = this.get().server.admission();
        let remote = admission.client_address(&mut head, peer.and_then(Peer::parse));
        match admission.head_from(head, remote) {
            Ok(head) => RequestHead::of_request(this, head, remote),
            Err(refusal) => piece(this.py(), refusal),
        }
    }

    /// Checks the head of a request to become a WebSocket, as `head` does. Returns the response instead if it is refused.
    #[pyo3(signature = (path, query, headers, arrival, peer, mount = None))]
    fn upgrade<'py>(
        this: &Bound<'py, Self>,
        path: &[u8],
        query: &[u8],
        headers: &Bound<'py, PyAny>,
        arrival: (bool, Option<u16>),
        peer: Option<&str>,
        mount: Option<(Vec<u8>, bool)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut head = head("GET", path, query, headers, arrival)?;
        set_mount(&mut head, mount);
        let admission = this.get().server.admission();
        let remote = admission.client_address(&mut head, peer.and_then(Peer::parse));
        match this.get().server.admit_upgrade(&head, remote) {
            Ok(()) => RequestHead::of_upgrade(this, head, remote),
            Err(refusal) => piece(this.py(), refusal),
        }
    }

    /// Opens a connection that carries messages in both directions, for a client at the address `remote`.
    #[pyo3(signature = (principal = None, remote = None))]
    fn connect(
        this: &Bound<'_, Self>,
        principal: Option<&NativePrincipal>,
        remote: Option<&str>,
    ) -> Connection {
        let endpoint = this.get();
        let expires = principal.and_then(|principal| principal.expires);
        let principal = principal.map(|principal| Arc::clone(&principal.principal));
        let remote = remote.and_then(|address| address.parse().ok());
        let unread = endpoint.server.unread_of(principal.as_deref(), remote);
        let queue = endpoint.notifier.queue(MAX_QUEUED, unread);
        let sender = Box::new(ResponseSender(Arc::clone(&queue)));
        let id = endpoint.server.connect(principal, remote, sender);
        if let Some(expires) = expires {
            endpoint.server.expire_at(id, expires);
        }
        let (is_over, has_room) = (AtomicBool::new(false), Mutex::default());
        Connection { endpoint: this.clone().unbind(), id, queue, is_over, has_room }
    }
}

/// Sets the place at which the host has mounted the app.
fn set_mount(head: &mut http::request::Parts, mount: Option<(Vec<u8>, bool)>) {
    if let Some((prefix, is_encrypted)) = mount {
        let prefix = String::from_utf8_lossy(&prefix).into_owned();
        head.extensions.insert(MountPoint { prefix, is_encrypted });
    }
}

/// An authenticated principal.
#[pyclass(frozen, name = "Principal")]
#[derive(Debug)]
pub(crate) struct NativePrincipal {
    principal: Arc<Principal>,
    /// The time at which its access token expires.
    expires: Option<Instant>,
}

#[pymethods]
impl NativePrincipal {
    /// `said` is JSON.
    #[new]
    fn new(said: &[u8]) -> PyResult<Self> {
        let principal = serde_json::from_slice(said)
            .map_err(|error| PyValueError::new_err(format!("the principal is invalid: {error}")))?;
        Ok(Self { principal: Arc::new(principal), expires: None })
    }
}

impl NativePrincipal {
    pub(crate) fn authenticated(caller: Caller) -> Self {
        let Caller { principal, expires } = caller;
        Self { principal, expires }
    }

    pub(crate) fn shared(&self) -> Arc<Principal> {
        Arc::clone(&self.principal)
    }
}

/// A connection that carries messages in both directions.
#[pyclass(frozen)]
pub(crate) struct Connection {
    endpoint: Py<Endpoint>,
    id: ConnectionId,
    queue: Arc<ResponseQueue>,
    is_over: AtomicBool,
    /// Set while its reader waits for the server.
    has_room: Mutex<Option<HasRoom>>,
}

type HasRoom = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Resolves its future once.
struct RoomWaiter {
    notifier: Arc<LoopNotifier>,
    future: Mutex<Option<Py<PyAny>>>,
}

impl Wake for RoomWaiter {
    fn wake(self: Arc<Self>) {
        if let Some(future) = lock(&self.future).take() {
            self.notifier.resolve_later(future);
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).finish_non_exhaustive()
    }
}

#[pymethods]
impl Connection {
    /// Processes a received message.
    fn message(&self, message: &[u8]) {
        let endpoint = self.endpoint.get();
        endpoint.finish(endpoint.server.begin_message(self.id, message));
    }

    /// Answers a message that is longer than the limit, in bytes.
    fn too_long(&self, limit: usize, message: &[u8]) {
        let endpoint = self.endpoint.get();
        let message = TooLong::new(limit, message);
        endpoint.distribute(endpoint.server.too_long(self.id, message));
    }

    /// Returns `true` if no more messages should be read, because too much is unanswered or unsent.
    #[getter]
    fn is_full(&self) -> bool {
        self.queue.bytes() > MAX_UNSENT || self.endpoint.get().server.is_full_for(self.id)
    }

    /// Returns `true` if the connection is to be closed because its access token has expired.
    #[getter]
    fn has_expired(&self) -> bool {
        self.queue.has_expired()
    }

    /// Resolves this future when there may be room for more messages. Returns `false` if there is room.
    fn wait_for_room(&self, py: Python<'_>, future: Py<PyAny>) -> bool {
        if self.queue.wait_for_room(MAX_UNSENT, future.clone_ref(py)) {
            return true;
        }
        let endpoint = self.endpoint.get();
        let (server, id) = (Arc::clone(&endpoint.server), self.id);
        let mut has_room: HasRoom = Box::pin(async move { server.has_room(id).await });
        let waiter = RoomWaiter {
            notifier: Arc::clone(&endpoint.notifier),
            future: Mutex::new(Some(future)),
        };
        let waker = Waker::from(Arc::new(waiter));
        let waits = has_room.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        // Futures of dropped connections are not resolved.
        *lock(&self.has_room) = waits.then_some(has_room);
        waits
    }

    /// Returns the new messages to send; None if the connection is to be closed.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Some(parts) = self.queue.take() else {
            self.hang_up();
            return PyList::new(py, [py.None()]);
        };
        let list = PyList::empty(py);
        for part in parts {
            list.append(piece(py, part)?)?;
        }
        Ok(list)
    }

    /// Resolves this future when there is more to send. Returns `false` if there is already.
    fn wait(&self, future: Py<PyAny>) -> bool {
        self.queue.wait(future)
    }

    /// Closes the connection, because the peer disconnected.
    fn hang_up(&self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            let endpoint = self.endpoint.get();
            endpoint.distribute(endpoint.server.connection_closed(self.id));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hang_up();
    }
}
