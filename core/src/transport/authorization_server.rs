//! Serves an authorization server for tests on this machine.

use std::{
    fmt,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, Method, StatusCode, header};
use hyper::body::Incoming;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use super::{
    fetch::fetch,
    http::{
        connection::{BodyEnd, read_body},
        server::{AnswerBody, Answered, HeadLimits, Watch, serve_requests},
    },
    network::Network,
    timeouts::Timeouts,
};
use crate::{
    auth::{
        authorization_server::{
            Request, Response, generate_key,
            test_server::{
                AnsweredRequest, AuthFaults, AuthorizationServerOptions, MAX_BODY, MAX_FETCHES,
                TestServer, TestServerStep, TokenOptions,
            },
        },
        url::WebUrl,
    },
    driver::{boxed, moment},
    error::{Error, ErrorKind},
    http::Part,
};

/// The maximum number of connections at the same time.
const MAX_CONNECTIONS: usize = 256;
/// The maximum size of a request's head, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The time for a body to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
const TIMEOUTS: Timeouts = Timeouts {
    header: Duration::from_secs(30),
    idle: Duration::from_secs(900),
    body: Duration::from_secs(900),
};

/// An authorization server on this machine, with a user who agrees to everything.
///
/// The server offers metadata (RFC 8414, `OpenID` Connect Discovery), the authorization endpoint with PKCE (S256), tokens for codes,
/// refresh tokens (each used once; reuse revokes all tokens of the grant), client credentials, assertions of other issuers
/// and token exchange (enterprise-managed authorization, workload identity), dynamic registration (RFC 7591), client-id
/// metadata documents, introspection (RFC 7662), revocation (RFC 7009), proofs of possession (`DPoP`, RFC 9449), and
/// resource indicators (RFC 8707). A server for tests only: it is not for users.
///
/// Clones are of the same server. Dropping the last one closes its port and all connections.
///
/// Limits: 1,000 registered clients, 10,000 grants, access tokens and recorded requests, of which the oldest are forgotten;
/// 256 connections; bodies of 256 KiB.
#[derive(Clone)]
pub struct AuthorizationServer {
    shared: Arc<Shared>,
    _accepting: Arc<Accepting>,
}

/// The task that accepts connections, until this is dropped.
struct Accepting(JoinHandle<()>);

struct Shared {
    issuer: String,
    machine: Mutex<TestServer>,
    network: Network,
}

impl AuthorizationServer {
    /// Starts the server on the current tokio runtime. Errors if an option can't be used, or the port is in use.
    pub async fn listen(options: AuthorizationServerOptions) -> Result<Self, Error> {
        let port = options.port;
        let failed = |cause: std::io::Error| {
            let message = format!("can't listen at 127.0.0.1:{port}");
            Error::new(ErrorKind::Connect, message).caused_by(cause)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let issuer = format!("http://127.0.0.1:{port}");
        let machine = Mutex::new(TestServer::new(&issuer, options, &generate_key()?)?);
        let shared = Arc::new(Shared { issuer, machine, network: Network::of_environment() });
        let accepting = Accepting(tokio::spawn(boxed(accept(listener, Arc::clone(&shared)))));
        Ok(Self { shared, _accepting: Arc::new(accepting) })
    }

    /// Returns the URL, for the option `auth` of servers and `issuer` of clients.
    pub fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    /// Issues an access token without a request. Errors if an option can't be used.
    pub fn token(&self, options: TokenOptions) -> Result<String, Error> {
        self.shared.lock().token(&moment(), options)
    }

    /// Issues an identity token (`OpenID` Connect) of a user for a client, without a request.
    ///
    /// `subject` is the user, by default that of the options. `expires_in` are the seconds until it expires, negative for one
    /// that has expired.
    pub fn identity_token(
        &self,
        client_id: &str,
        subject: Option<&str>,
        expires_in: f64,
    ) -> Result<String, Error> {
        self.shared.lock().identity_token(&moment(), subject, client_id, expires_in)
    }

    /// Signs tokens with a new key. With `keep_former` the former key stays published, so that its tokens remain valid; the
    /// last four are kept.
    ///
    /// A Gudgeon server fetches the key set for the first token with a new key, at most once in 30 seconds. It refuses tokens
    /// of keys that are newer until then.
    pub fn rotate_keys(&self, keep_former: bool) -> Result<(), Error> {
        let key = generate_key()?;
        self.shared.lock().rotate_keys(&key, keep_former)
    }

    /// Replaces the faults. Errors if a fault can't be used.
    pub fn set_faults(&self, faults: AuthFaults) -> Result<(), Error> {
        self.shared.lock().set_faults(faults)
    }

    /// Revokes all codes, refresh tokens and access tokens. Access tokens that are JWTs stay valid for servers that do not
    /// introspect them.
    pub fn revoke_all(&self) {
        self.shared.lock().revoke_all();
    }

    /// Returns the requests that were answered so far, without secrets.
    pub fn requests(&self) -> Vec<AnsweredRequest> {
        self.shared.lock().requests()
    }

    /// Opens a URL of this server as the user's browser does, for `on_redirect` of
    /// [`OAuth`](crate::client::auth::OAuth). Returns the URL to which the browser is redirected. A fault `delay` has no
    /// effect on it.
    ///
    /// Errors for a URL of another server, and if the server does not redirect the browser: it shows an error, or asks with
    /// [`Consent::Page`](crate::testing::auth::Consent::Page).
    pub async fn browse(&self, url: &str) -> Result<String, Error> {
        let target = url.strip_prefix(&self.shared.issuer).filter(|path| path.starts_with('/'));
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
        let location = response.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
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
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.abort();
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
            connections.spawn(boxed(serve(stream, Arc::clone(&shared))));
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let watch = Watch::new(TIMEOUTS);
    let limits = HeadLimits { head: MAX_HEAD, buffer: MAX_HEAD };
    let respond = {
        let watch = Arc::clone(&watch);
        move |request| -> Answered {
            let (shared, watch) = (Arc::clone(&shared), Arc::clone(&watch));
            Box::pin(async move {
                watch.busy();
                let Response { status, headers, body } = exchange(&shared, request).await;
                watch.idle();
                Ok(AnswerBody::response(Part::Head { status, headers, body, more: false }))
            })
        }
    };
    let connection = serve_requests(Box::new(stream), &watch, limits, respond);
    tokio::select! {
        // An error means that the client closed the connection or sent invalid HTTP.
        _ = connection => (),
        () = watch.expired() => (),
    }
}

async fn exchange(shared: &Shared, request: http::Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let plain = |status| Response { status, headers: HeaderMap::new(), body: Vec::new() };
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
    answer(shared, &request).await
}

/// Handles a request, with the documents that it needs.
async fn answer(shared: &Shared, request: &Request) -> Response {
    let mut step = shared.lock().handle(&moment(), request);
    for _ in 0..MAX_FETCHES {
        match step {
            TestServerStep::Respond(response) => {
                replace_key(shared);
                return response;
            }
            TestServerStep::Fetch(wanted) => {
                let url = wanted.url.clone();
                let fetched = fetch(wanted, &shared.network).await;
                step = shared.lock().resume(&moment(), request, &url, &fetched);
            }
        }
    }
    match step {
        TestServerStep::Respond(response) => response,
        TestServerStep::Fetch(_) => Response {
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
        && let Err(error) = generate_key().and_then(|key| machine.rotate_keys(&key, false))
    {
        tracing::warn!(%error, "the key of an authorization server could not be replaced");
    }
}

/// Returns whether the `Host` of a request names this server, which prevents DNS rebinding.
fn is_own_host(headers: &HeaderMap, issuer: &str) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Ok(own) = WebUrl::parse(issuer) else { return false };
    let is_own = |url: WebUrl| {
        [own.host(), "localhost"].contains(&url.host())
            && url.port() == own.port()
            && url.path().is_empty()
    };
    WebUrl::parse(&format!("http://{host}")).is_ok_and(is_own)
}

impl fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AuthorizationServer").field(&self.shared.issuer).finish()
    }
}
