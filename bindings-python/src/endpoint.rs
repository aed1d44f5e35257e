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
    driver::{Backend, EndpointServer, Work},
    http::{AdmittedHead, Arrival, ConnectionId, ExchangeId, Part, Refused},
    protocol::Principal,
};
use http::{HeaderName, HeaderValue, Method, Request, Uri, request::Parts};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyList, PyString, PyTuple},
};

use crate::{
    handler::Handler,
    response_queue::{LoopNotifier, MAX_QUEUED, MAX_UNREAD, ResponseQueue, ResponseSender},
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
    server: Arc<EndpointServer<Handler>>,
    notifier: Arc<LoopNotifier>,
    /// The stream that runs the handlers at the moment.
    stream: Mutex<Option<Arc<Stream>>>,
}

impl Endpoint {
    pub(crate) fn new(server: Arc<EndpointServer<Handler>>) -> PyResult<Self> {
        let notifier = LoopNotifier::new()?;
        let source =
            Source::Peers { server: Arc::clone(&server), notifier: Some(Arc::clone(&notifier)) };
        Ok(Self { source: Arc::new(source), server, notifier, stream: Mutex::default() })
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn distribute(&self, work: Work<Handler>) {
        if !work.is_empty() {
            let stream = lock(&self.stream).clone();
            if let Some(stream) = stream {
                stream.distribute(work, false);
            }
        }
    }
}

#[pymethods]
impl Endpoint {
    /// Starts the threads for handlers. Only one set may run at a time: stop it before starting the next.
    fn serve(
        &self,
        py: Python<'_>,
        of: &NativeServer,
        app: Py<PyAny>,
        context: Py<PyAny>,
    ) -> PyResult<Serving> {
        let stream = Stream::open(Arc::clone(&self.source), app, context, of)?;
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

    /// Checks the head of a request, before its body is read. `via_loopback`: it arrived on the loopback interface. Returns the
    /// first part of the response instead if the request is refused.
    fn head<'py>(
        this: &Bound<'py, Self>,
        method: &str,
        path: &[u8],
        query: &[u8],
        headers: &Bound<'py, PyAny>,
        via_loopback: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let head = head(method, path, query, headers, via_loopback)?;
        match this.get().server.admission().head(head) {
            Ok(head) => RequestHead::admitted(this, Admitted::Request(Box::new(head))),
            Err(refusal) => piece(this.py(), refusal),
        }
    }

    /// Checks the head of a request to become a WebSocket. Returns the response instead if it is refused.
    fn upgrade<'py>(
        this: &Bound<'py, Self>,
        path: &[u8],
        query: &[u8],
        headers: &Bound<'py, PyAny>,
        via_loopback: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let head = head("GET", path, query, headers, via_loopback)?;
        match this.get().server.admit_upgrade(&head) {
            Ok(()) => RequestHead::admitted(this, Admitted::Upgrade(Box::new(head))),
            Err(refusal) => piece(this.py(), refusal),
        }
    }

    /// Opens a connection that carries messages in both directions.
    #[pyo3(signature = (principal = None))]
    fn connect(this: &Bound<'_, Self>, principal: Option<&NativePrincipal>) -> Connection {
        let endpoint = this.get();
        let queue = endpoint.notifier.queue(MAX_QUEUED);
        let principal = principal.map(|it| Arc::clone(&it.0));
        let id = endpoint.server.connect(principal, Box::new(ResponseSender(Arc::clone(&queue))));
        let (is_over, has_room) = (AtomicBool::new(false), Mutex::default());
        Connection { endpoint: this.clone().unbind(), id, queue, is_over, has_room }
    }
}

/// An authenticated principal.
#[pyclass(frozen, name = "Principal")]
#[derive(Debug)]
pub(crate) struct NativePrincipal(Arc<Principal>);

#[pymethods]
impl NativePrincipal {
    /// `said` is JSON.
    #[new]
    fn new(said: &[u8]) -> PyResult<Self> {
        let principal = serde_json::from_slice(said)
            .map_err(|it| PyValueError::new_err(format!("the principal is invalid: {it}")))?;
        Ok(Self(Arc::new(principal)))
    }
}

impl NativePrincipal {
    pub(crate) fn shared(&self) -> Arc<Principal> {
        Arc::clone(&self.0)
    }
}

/// The head of a request that was admitted.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct RequestHead {
    endpoint: Py<Endpoint>,
    /// `None` once its request was handled.
    admitted: Mutex<Option<Admitted>>,
}

#[derive(Debug)]
enum Admitted {
    Request(Box<AdmittedHead>),
    Upgrade(Box<Parts>),
}

#[pymethods]
impl RequestHead {
    /// Handles the request. `principal`: the authenticated caller.
    fn request(
        &self,
        py: Python<'_>,
        body: &[u8],
        principal: Option<&NativePrincipal>,
    ) -> PyResult<Exchange> {
        let Some(Admitted::Request(mut head)) = lock(&self.admitted).take() else {
            return Err(PyValueError::new_err("this request was handled before"));
        };
        if let Some(principal) = principal {
            head.set_principal(principal.shared());
        }
        let endpoint = self.endpoint.get();
        let queue = endpoint.notifier.queue(MAX_UNREAD);
        let outbox = Box::new(ResponseSender(Arc::clone(&queue)));
        let (id, work) = endpoint.server.request(*head, body, outbox);
        endpoint.distribute(work);
        let (endpoint, is_over) = (self.endpoint.clone_ref(py), AtomicBool::new(false));
        Ok(Exchange { endpoint, id, queue, is_over })
    }

    /// Returns the response to a request whose body is too long.
    fn too_large<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.refuse(py, &Refused::BodyTooLarge)
    }

    /// Returns the response to a request whose principal could not be determined.
    fn unidentified<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.refuse(py, &Refused::Unidentified)
    }

    /// Returns the response to a request whose credentials are refused: 401, or 403 if `scopes` are needed.
    fn unauthorized<'py>(
        &self,
        py: Python<'py>,
        message: String,
        scopes: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let refused = match scopes {
            None => Refused::InvalidToken(message),
            Some(scopes) => Refused::InsufficientScope { scopes, message },
        };
        self.refuse(py, &refused)
    }
}

impl RequestHead {
    fn admitted<'py>(
        endpoint: &Bound<'py, Endpoint>,
        admitted: Admitted,
    ) -> PyResult<Bound<'py, PyAny>> {
        let head =
            Self { endpoint: endpoint.clone().unbind(), admitted: Mutex::new(Some(admitted)) };
        Ok(Bound::new(endpoint.py(), head)?.into_any())
    }

    fn refuse<'py>(&self, py: Python<'py>, refused: &Refused) -> PyResult<Bound<'py, PyAny>> {
        let refusal = match &*lock(&self.admitted) {
            Some(Admitted::Request(head)) => head.refuse(refused),
            Some(Admitted::Upgrade(head)) => {
                self.endpoint.get().server.admission().refuse(head, refused)
            }
            None => return Err(PyValueError::new_err("this request was handled before")),
        };
        piece(py, refusal)
    }
}

/// A request and its response. Dropping it before the response is complete cancels it.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Exchange {
    endpoint: Py<Endpoint>,
    id: ExchangeId,
    queue: Arc<ResponseQueue>,
    is_over: AtomicBool,
}

#[pymethods]
impl Exchange {
    /// Returns the new parts of the response: `(status, headers, body, more)` first, then bytes, and None at the end.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Some(parts) = self.queue.take() else {
            // A client that reads too slowly is disconnected.
            self.give_up();
            return PyList::new(py, [py.None()]);
        };
        let list = PyList::empty(py);
        for part in parts {
            if matches!(part, Part::End | Part::Head { more: false, .. }) {
                self.is_over.store(true, Ordering::Release);
            }
            list.append(piece(py, part)?)?;
        }
        Ok(list)
    }

    /// Resolves this future when there are more parts. Returns `false` if there are already.
    fn wait(&self, future: Py<PyAny>) -> bool {
        self.queue.wait(future)
    }

    /// Cancels the exchange, because the peer disconnected.
    fn give_up(&self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            let endpoint = self.endpoint.get();
            endpoint.distribute(endpoint.server.gone(self.id));
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.give_up();
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
struct Relief {
    notifier: Arc<LoopNotifier>,
    future: Mutex<Option<Py<PyAny>>>,
}

impl Wake for Relief {
    fn wake(self: Arc<Self>) {
        if let Some(future) = lock(&self.future).take() {
            self.notifier.relieve(future);
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
        endpoint.distribute(endpoint.server.message(self.id, message));
    }

    /// Reports that a message over the limit, in bytes, was discarded.
    fn too_long(&self, limit: usize) {
        let endpoint = self.endpoint.get();
        endpoint.distribute(endpoint.server.too_long(self.id, limit));
    }

    /// Returns `true` if no more messages should be read, because too much is unanswered or unsent.
    #[getter]
    fn is_full(&self) -> bool {
        self.queue.bytes() > MAX_UNSENT || self.endpoint.get().server.is_full_for(self.id)
    }

    /// Resolves this future when there may be room for more messages. Returns `false` if there is room.
    fn wait_for_room(&self, py: Python<'_>, future: Py<PyAny>) -> bool {
        if self.queue.wait_for_room(MAX_UNSENT, future.clone_ref(py)) {
            return true;
        }
        let endpoint = self.endpoint.get();
        let (server, id) = (Arc::clone(&endpoint.server), self.id);
        let mut has_room: HasRoom = Box::pin(async move { server.has_room(id).await });
        let relief =
            Relief { notifier: Arc::clone(&endpoint.notifier), future: Mutex::new(Some(future)) };
        let waker = Waker::from(Arc::new(relief));
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
            endpoint.distribute(endpoint.server.hang_up(self.id));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

fn piece(py: Python<'_>, part: Part) -> PyResult<Bound<'_, PyAny>> {
    let (status, headers, body, more) = match part {
        Part::Bytes(bytes) => return Ok(PyBytes::new(py, &bytes).into_any()),
        Part::End => return Ok(py.None().into_bound(py)),
        Part::Head { status, headers, body, more } => (status, headers, body, more),
    };
    let list = PyList::empty(py);
    let pair = |name: &[u8], value: &[u8]| {
        PyTuple::new(py, [PyBytes::new(py, name), PyBytes::new(py, value)])
    };
    for (name, value) in &headers {
        list.append(pair(name.as_str().as_bytes(), value.as_bytes())?)?;
    }
    // Without it, servers would send the body in chunks. Not allowed with 204 (RFC 9110, 8.6).
    if !more && status != 204 {
        list.append(pair(b"content-length", body.len().to_string().as_bytes())?)?;
    }
    let head = (status.as_u16(), list, PyBytes::new(py, &body), more);
    Ok(head.into_pyobject(py)?.into_any())
}

/// Returns the head of a request described by ASGI. Parts that are invalid HTTP or too long are replaced, since the
/// host's server accepted them.
fn head(
    method: &str,
    path: &[u8],
    query: &[u8],
    headers: &Bound<'_, PyAny>,
    via_loopback: bool,
) -> PyResult<Parts> {
    let mut target = path.to_vec();
    if !query.is_empty() {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    let uri = Uri::try_from(target).or_else(|_| Uri::try_from(path));
    let uri = uri.unwrap_or_else(|_| Uri::from_static("/"));
    let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::TRACE);
    let (mut head, ()) = Request::new(()).into_parts();
    (head.method, head.uri) = (method, uri);
    head.extensions.insert(Arrival { via_loopback });
    for pair in headers.try_iter()? {
        let pair = pair?;
        let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
        let name = HeaderName::from_bytes(bytes(&name)?);
        let value = HeaderValue::from_bytes(bytes(&value)?);
        if let (Ok(name), Ok(value)) = (name, value) {
            head.headers.append(name, value);
        }
    }
    Ok(head)
}

/// Some servers pass strings where ASGI requires bytes.
fn bytes<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => Ok(value.cast::<PyBytes>()?.as_bytes()),
    }
}
