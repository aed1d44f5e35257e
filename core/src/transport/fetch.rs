//! Sends the HTTP requests of the state machines in `auth/`: one connection each, limits of size and time, no redirects.

use std::sync::Arc;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use tokio::{runtime::Handle, task::AbortHandle};

use super::{
    Url,
    dial::{dial, dial_within},
    http::{
        body::Whole,
        connection::{self, BodyEnd},
    },
    network::Network,
};
use crate::{
    auth::fetch::{FetchError, FetchRequest, FetchResponse, Fetched, Reach},
    driver::{Fetcher, boxed},
    error::ErrorKind,
    replier::Replier,
};

/// The maximum size of the head of an answer, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Sends requests on a tokio runtime.
pub(crate) struct HyperFetcher {
    runtime: Handle,
    network: Arc<Network>,
}

impl HyperFetcher {
    /// Creates the fetcher on the current runtime, with the proxies and the trust of the environment.
    pub(crate) fn new() -> Arc<Self> {
        let network = Arc::new(Network::of_environment());
        Arc::new(Self { runtime: Handle::current(), network })
    }
}

/// Sends the requests that the authentication of a server needs on the current tokio runtime.
#[cfg(feature = "bindings")]
pub fn serve_auth(server: &crate::driver::EndpointServer) {
    if let Some(auth) = server.auth() {
        auth.set_fetcher(HyperFetcher::new());
    }
}

impl Fetcher for HyperFetcher {
    fn fetch(&self, request: FetchRequest, reply: Replier<Fetched>) {
        let network = Arc::clone(&self.network);
        self.runtime.spawn(boxed(async move {
            reply.send(fetch(request, &network).await);
        }));
    }
}

/// Sends a request with the proxies and the trust of the environment.
#[cfg(feature = "bindings")]
pub async fn send(request: FetchRequest) -> Result<FetchResponse, FetchError> {
    fetch(request, &Network::of_environment()).await
}

/// Sends a request and reads its answer.
pub(crate) async fn fetch(
    request: FetchRequest,
    network: &Network,
) -> Result<FetchResponse, FetchError> {
    let limit = request.timeout;
    let answer = tokio::time::timeout(limit, exchange(request, network)).await;
    answer.unwrap_or(Err(FetchError::TimedOut(limit)))
}

async fn exchange(request: FetchRequest, network: &Network) -> Result<FetchResponse, FetchError> {
    let (url, max_bytes) = (request.url.clone(), request.max_bytes);
    let (answer, task) = send_head(request, network).await?;
    let (head, body) = answer.into_parts();
    let mut read = Vec::new();
    match connection::read_body(body, max_bytes, &mut read).await {
        BodyEnd::Complete => (),
        BodyEnd::TooLarge => {
            task.abort();
            return Err(FetchError::TooLarge(max_bytes));
        }
        BodyEnd::Broken(error) => return Err(failed(&error)),
    }
    Ok(FetchResponse { url, status: head.status, headers: head.headers, body: read })
}

fn failed(error: &dyn std::fmt::Display) -> FetchError {
    FetchError::Connection(error.to_string())
}

/// Sends a request on a connection of its own; returns the head of the answer and the task that reads the connection.
async fn send_head(
    request: FetchRequest,
    network: &Network,
) -> Result<(Response<Incoming>, AbortHandle), FetchError> {
    let url = Url::parse(&request.url).map_err(|error| FetchError::Url(error.to_string()))?;
    // A proxy would resolve the name of the host itself, so that nobody could check the address.
    let proxy = match request.reach {
        Reach::Public => None,
        _ => network.proxy_for(&url).map_err(|error| failed(&error))?,
    };
    let dialled = match &proxy {
        Some(proxy) => dial(&url, Some(proxy), network).await,
        None => dial_within(&url, &request.reach, network).await,
    };
    let stream = dialled.map_err(|error| match error.kind {
        ErrorKind::Misuse => FetchError::Url(error.to_string()),
        _ => failed(&error),
    })?;
    let (mut sender, task) =
        connection::open(stream, MAX_HEAD).await.map_err(|error| failed(&error))?;
    let is_forwarded = proxy.as_ref().is_some_and(|_| super::proxy::Proxy::forwards(&url));
    let uri = if is_forwarded { request.url.clone() } else { url.path().to_owned() };
    let mut sent = Request::new(Whole::new(request.body));
    *sent.method_mut() = request.method;
    *sent.uri_mut() = uri.parse().map_err(|error: http::uri::InvalidUri| failed(&error))?;
    *sent.headers_mut() = request.headers;
    if !sent.headers().contains_key(header::HOST) {
        let host = HeaderValue::try_from(url.authority()).map_err(|error| failed(&error))?;
        sent.headers_mut().insert(header::HOST, host);
    }
    if let Some(authorization) =
        proxy.as_ref().filter(|_| is_forwarded).and_then(|proxy| proxy.authorization())
    {
        sent.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
    }
    let answer = sender.send_request(sent).await.map_err(|error| failed(&error))?;
    Ok((answer, task))
}

/// An answer whose body arrives in chunks, for programs that examine a server. Its connection is closed with it.
#[cfg(feature = "bindings")]
#[derive(Debug)]
pub struct OpenResponse {
    pub status: http::StatusCode,
    pub headers: http::HeaderMap,
    body: Incoming,
    task: AbortHandle,
}

/// Sends a request and returns once the head of its answer is there. The timeout and the maximum size of the request are
/// the caller's to apply. A `Host` header of the request replaces the one of its URL.
#[cfg(feature = "bindings")]
pub async fn open(request: FetchRequest) -> Result<OpenResponse, FetchError> {
    let (answer, task) = send_head(request, &Network::of_environment()).await?;
    let (head, body) = answer.into_parts();
    Ok(OpenResponse { status: head.status, headers: head.headers, body, task })
}

#[cfg(feature = "bindings")]
impl OpenResponse {
    /// Returns the next chunk of the body, or `None` at its end.
    pub async fn chunk(&mut self) -> Option<Result<bytes::Bytes, FetchError>> {
        use http_body::Body as _;
        let body = &mut self.body;
        let poll = |context: &mut std::task::Context<'_>| {
            std::pin::Pin::new(&mut *body).poll_frame(context)
        };
        let mut frames = std::pin::pin!(std::future::poll_fn(poll));
        match frames.as_mut().await? {
            Ok(frame) => Some(Ok(frame.into_data().unwrap_or_default())),
            Err(error) => Some(Err(failed(&error))),
        }
    }
}

#[cfg(feature = "bindings")]
impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.task.abort();
    }
}
