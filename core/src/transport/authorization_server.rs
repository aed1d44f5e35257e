//! Serves an authorization server for tests on this machine.

use std::{
    convert::Infallible,
    fmt,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Method, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    fetch::fetch,
    http::{
        body::Whole,
        connection::{BodyEnd, read_body},
        io::HyperIo,
    },
    proxy::ProxyEnvironment,
    sign_in::moment,
};
use crate::{
    auth::authorization_server::{
        Request, Response, generate_key,
        test_server::{MAX_BODY, MAX_FETCHES, Step, TestServer},
    },
    error::{Error, ErrorKind},
};

/// The maximum number of connections at the same time.
const MAX_CONNECTIONS: usize = 256;
/// The maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The time for a body to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The time that a connection is open at most.
const CONNECTION_TIME: Duration = Duration::from_secs(900);

/// An authorization server for tests that listens. Dropping it stops it.
pub struct TestAuthorizationServer {
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    issuer: String,
    machine: Mutex<TestServer>,
    proxies: ProxyEnvironment,
}

impl TestAuthorizationServer {
    /// Listens at a port of 127.0.0.1, 0 for any, on the current tokio runtime. `options` is JSON.
    pub async fn listen(options: &[u8], port: u16) -> Result<Self, Error> {
        let failed = |it: std::io::Error| Error {
            source: Some(it.into()),
            ..Error::new(ErrorKind::Connect, format!("can't listen at 127.0.0.1:{port}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let issuer = format!("http://127.0.0.1:{port}");
        let machine = Mutex::new(TestServer::new(&issuer, options, &generate_key()?)?);
        let shared = Arc::new(Shared { issuer, machine, proxies: ProxyEnvironment::read() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { shared, accepting })
    }

    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// Calls the machine, for what tests ask of it without a request.
    pub fn machine(&self) -> MutexGuard<'_, TestServer> {
        self.shared.lock()
    }

    /// Issues an access token; the params are JSON.
    pub fn token(&self, params: &[u8]) -> Result<String, Error> {
        self.machine().token(&moment(), params)
    }

    /// Issues an identity token.
    pub fn identity_token(
        &self,
        subject: Option<&str>,
        client_id: &str,
        expires_in: i64,
    ) -> Result<String, Error> {
        self.machine().identity_token(&moment(), subject, client_id, expires_in)
    }

    /// Signs with another key from here on.
    pub fn rotate_keys(&self, keeps_former: bool) -> Result<(), Error> {
        let key = generate_key()?;
        self.machine().rotate_keys(&key, keeps_former)
    }

    /// Opens a URL of this server as a user's browser does, without a connection. Returns the URL to which the browser is
    /// redirected.
    pub async fn browse(&self, url: &str) -> Result<String, Error> {
        let target = url.strip_prefix(&self.shared.issuer).filter(|it| it.starts_with('/'));
        let target = target.ok_or_else(|| {
            Error::misuse(format!("browse(): the URL is not one of {}", self.shared.issuer))
        })?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            method: Method::GET,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        };
        let response = answer(&self.shared, &request).await;
        let location = response.headers.get(header::LOCATION).and_then(|it| it.to_str().ok());
        location.map(ToOwned::to_owned).ok_or_else(|| {
            let reason = String::from_utf8_lossy(&response.body);
            let reason: String = reason.chars().take(500).collect();
            Error::new(
                ErrorKind::Auth,
                format!(
                    "browse(): {path} answers {} and does not redirect: {reason}",
                    response.status
                ),
            )
        })
    }

    /// Closes the port and all connections.
    pub fn close(&self) {
        self.accepting.abort();
    }
}

impl Drop for TestAuthorizationServer {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, TestServer> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, for example.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if connections.len() < MAX_CONNECTIONS {
            connections.spawn(serve(stream, Arc::clone(&shared)));
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request: http::Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(exchange(&shared, request).await) }
    });
    let connection =
        http1::Builder::new().max_buf_size(MAX_HEAD).serve_connection(HyperIo(stream), service);
    // An error means that the client closed the connection or sent invalid HTTP.
    let _ = timeout(CONNECTION_TIME, connection).await;
}

async fn exchange(shared: &Shared, request: http::Request<Incoming>) -> http::Response<Whole> {
    let (head, body) = request.into_parts();
    let plain = |status| {
        let mut response = http::Response::new(Whole::default());
        *response.status_mut() = status;
        response
    };
    if !is_own_host(&head.headers, &shared.issuer) {
        return plain(StatusCode::MISDIRECTED_REQUEST);
    }
    let mut read = Vec::new();
    match timeout(BODY_TIME, read_body(body, MAX_BODY, &mut read)).await {
        Ok(BodyEnd::Complete) => (),
        Ok(_) => return plain(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT),
    }
    let request = Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: read,
    };
    let delay = shared.lock().delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let Response { status, headers, body } = answer(shared, &request).await;
    let mut response = http::Response::new(Whole::new(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Handles a request, with the documents that it needs.
async fn answer(shared: &Shared, request: &Request) -> Response {
    let mut step = shared.lock().handle(&moment(), request);
    for _ in 0..MAX_FETCHES {
        match step {
            Step::Respond(response) => {
                replace_key(shared);
                return response;
            }
            Step::Fetch(wanted) => {
                let url = wanted.url.clone();
                let fetched = fetch(wanted, &shared.proxies).await;
                step = shared.lock().resume(&moment(), request, &url, &fetched);
            }
        }
    }
    match step {
        Step::Respond(response) => response,
        Step::Fetch(_) => Response {
            status: StatusCode::BAD_GATEWAY,
            headers: HeaderMap::new(),
            body: b"the request needs too many documents".to_vec(),
        },
    }
}

/// Replaces the key if the last token has to be its last.
fn replace_key(shared: &Shared) {
    let mut machine = shared.lock();
    if machine.wants_key()
        && let Err(error) = generate_key().and_then(|it| machine.rotate_keys(&it, false))
    {
        tracing::warn!(%error, "the key of an authorization server could not be replaced");
    }
}

/// Returns whether the `Host` of a request names this server, which prevents DNS rebinding.
fn is_own_host(headers: &HeaderMap, issuer: &str) -> bool {
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let own = issuer.strip_prefix("http://").unwrap_or_default();
    let port = own.rsplit(':').next().unwrap_or_default();
    host == own || host.strip_prefix("localhost:") == Some(port)
}

impl fmt::Debug for TestAuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestAuthorizationServer").field(&self.shared.issuer).finish()
    }
}
