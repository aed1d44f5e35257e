//! HTTP requests whose IO is done by Python, and their responses.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use gudgeon::{
    auth::server::authenticator::Caller,
    bindings::incoming_body::IncomingBody,
    driver::EndpointServer,
    http::{AdmittedHead, Arrival, ExchangeId, Part, Refused},
};
use http::{HeaderName, HeaderValue, Method, Request, Uri, request::Parts};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyList, PyString, PyTuple},
};

use crate::{
    endpoint::{Endpoint, NativePrincipal},
    response_queue::{MAX_UNREAD, ResponseQueue, ResponseSender},
    stream::lock,
};

/// The head of a request that was admitted.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct RequestHead {
    endpoint: Py<Endpoint>,
    /// The address of the client.
    remote: Option<IpAddr>,
    /// `None` once its request was handled.
    admitted: Mutex<Option<Admitted>>,
    /// The body, if it comes in several parts.
    body: Mutex<Option<IncomingBody>>,
    /// The result of the authentication, until it is taken.
    authenticated: Arc<Mutex<Option<Authenticated>>>,
}

/// A request whose sender is known, or the answer to a sender that is refused.
type Authenticated = (Admitted, Result<Option<Caller>, Part>);

#[derive(Debug)]
enum Admitted {
    Request(Box<AdmittedHead>),
    Upgrade(Box<Parts>),
}

#[pymethods]
impl RequestHead {
    /// The address of the client, if it is known.
    #[getter]
    fn remote(&self) -> Option<String> {
        self.remote.map(|remote| remote.to_string())
    }

    /// Authenticates the sender. Returns `true` if `future` is resolved when that is done, `false` if it is done.
    fn authenticate(&self, future: Py<PyAny>) -> PyResult<bool> {
        let Some(admitted) = lock(&self.admitted).take() else {
            return Err(PyValueError::new_err("this request was handled before"));
        };
        let endpoint = self.endpoint.get();
        let Some(runtime) = endpoint.runtime() else {
            return Err(PyValueError::new_err("this server has no authentication"));
        };
        let running = authenticated(Arc::clone(&endpoint.server), admitted, self.remote);
        let running = match runtime.begin(running) {
            Ok(done) => {
                *lock(&self.authenticated) = Some(done);
                return Ok(false);
            }
            Err(running) => running,
        };
        let (place, notifier) = (Arc::clone(&self.authenticated), Arc::clone(&endpoint.notifier));
        runtime.finish(running, move |done| {
            *lock(&place) = Some(done);
            notifier.resolve_later(future);
        });
        Ok(true)
    }

    /// Returns the principal that was authenticated, or the response to a sender that is refused.
    fn authenticated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some((admitted, decision)) = lock(&self.authenticated).take() else {
            return Err(PyValueError::new_err("the sender of this request is not authenticated"));
        };
        *lock(&self.admitted) = Some(admitted);
        match decision {
            Err(refusal) => piece(py, refusal),
            Ok(None) => Ok(py.None().into_bound(py)),
            Ok(Some(caller)) => {
                Ok(Bound::new(py, NativePrincipal::authenticated(caller))?.into_any())
            }
        }
    }

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
        let queue = endpoint.notifier.queue(MAX_UNREAD, endpoint.server.unread_answers(&head));
        let outbox = Box::new(ResponseSender(Arc::clone(&queue)));
        let (id, step) = endpoint.server.begin_request(*head, body, outbox);
        drop(lock(&self.body).take());
        endpoint.finish(step);
        let (endpoint, is_over) = (self.endpoint.clone_ref(py), AtomicBool::new(false));
        Ok(Exchange { endpoint, id, queue, is_over })
    }

    /// Counts the bytes received of a body that is not complete. Returns the seconds within which more must come, or the
    /// response to a request that is refused.
    fn received<'py>(&self, py: Python<'py>, bytes: usize) -> PyResult<Bound<'py, PyAny>> {
        let received = match &*lock(&self.admitted) {
            Some(Admitted::Request(head)) => {
                let server = &self.endpoint.get().server;
                let mut body = lock(&self.body);
                let body = body.get_or_insert_with(|| IncomingBody::new(server, head));
                body.received(bytes)
            }
            _ => return Err(PyValueError::new_err("this request has no body to receive")),
        };
        match received {
            Ok(time) => Ok(time.as_secs_f64().into_pyobject(py)?.into_any()),
            Err(refused) => self.refuse(py, &refused),
        }
    }

    /// Returns the response to a request whose body did not come in time.
    fn too_slow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.refuse(py, &Refused::BodyTooSlow)
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
    pub(crate) fn of_request<'py>(
        endpoint: &Bound<'py, Endpoint>,
        head: AdmittedHead,
        remote: Option<IpAddr>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::admitted(endpoint, Admitted::Request(Box::new(head)), remote)
    }

    /// The head of a request to become a WebSocket.
    pub(crate) fn of_upgrade<'py>(
        endpoint: &Bound<'py, Endpoint>,
        head: Parts,
        remote: Option<IpAddr>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::admitted(endpoint, Admitted::Upgrade(Box::new(head)), remote)
    }

    fn admitted<'py>(
        endpoint: &Bound<'py, Endpoint>,
        admitted: Admitted,
        remote: Option<IpAddr>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (admitted, body) = (Mutex::new(Some(admitted)), Mutex::default());
        let authenticated = Arc::default();
        let endpoint_of_head = endpoint.clone().unbind();
        let head = Self { endpoint: endpoint_of_head, remote, admitted, body, authenticated };
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

/// Authenticates the sender of a request. Of a request with a body, the head keeps the principal.
async fn authenticated(
    server: Arc<EndpointServer>,
    mut admitted: Admitted,
    remote: Option<IpAddr>,
) -> Authenticated {
    let decision = match &mut admitted {
        Admitted::Request(head) => server.authenticate(head).await.map(|()| None),
        Admitted::Upgrade(head) => server.authenticate_upgrade(head, remote).await,
    };
    (admitted, decision)
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

    /// Ends the exchange: its response was sent, or the peer disconnected, which cancels it.
    fn give_up(&self) {
        self.queue.release();
        if !self.is_over.swap(true, Ordering::AcqRel) {
            let endpoint = self.endpoint.get();
            endpoint.distribute(endpoint.server.disconnected(self.id));
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.give_up();
    }
}

pub(crate) fn piece(py: Python<'_>, part: Part) -> PyResult<Bound<'_, PyAny>> {
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
/// host's server accepted them. The last argument says whether it arrived over the loopback interface, and at which port.
pub(crate) fn head(
    method: &str,
    path: &[u8],
    query: &[u8],
    headers: &Bound<'_, PyAny>,
    (via_loopback, port): (bool, Option<u16>),
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
    head.extensions.insert(Arrival { via_loopback, port });
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
