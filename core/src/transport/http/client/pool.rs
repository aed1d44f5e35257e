//! A pool of idle connections to one origin.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::{Request, Response, StatusCode, Uri, header, uri::PathAndQuery};
use hyper::{body::Incoming, client::conn::http1};

use super::{
    super::{body::Whole, connection},
    cookies::Cookies,
};
use crate::{
    clock,
    error::{Error, ErrorKind},
    transport::{Url, dial::dial, network::Network, proxy::Proxy},
};

/// The maximum idle time of a connection: many servers close a connection after 5 s, and one about to be closed must
/// not be reused.
const MAX_IDLE_TIME: Duration = Duration::from_secs(4);
const MAX_IDLE: usize = 64;
/// The status with which only a proxy refuses. Other statuses may be the server's.
const PROXY_REFUSES: StatusCode = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
/// The maximum size of hyper's read buffer, whose default is 400 KiB.
const MAX_READ_BUFFER: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Pool {
    url: Url,
    /// The proxy that all connections go through.
    proxy: Option<Arc<Proxy>>,
    network: Network,
    cookies: Cookies,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    sender: http1::SendRequest<Whole>,
    since: Instant,
}

/// A connection whose response is being read. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Arc<Pool>,
    sender: http1::SendRequest<Whole>,
}

impl Pool {
    /// Creates a pool for the origin of `url`.
    pub(super) fn new(url: Url, proxy: Option<Arc<Proxy>>, network: Network) -> Arc<Self> {
        Arc::new(Self { url, proxy, network, cookies: Cookies::default(), idle: Mutex::default() })
    }

    /// Sends a request, whose URI is a path, with the cookies that the server set before, and waits for the head of the
    /// response. Dropping the future closes the connection.
    ///
    /// With `may_repeat`, the request is sent again if a pooled connection turns out to be closed.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Whole>,
        may_repeat: bool,
    ) -> Result<(Response<Incoming>, Lease), Error> {
        let path = request.uri().path().to_owned();
        self.cookies.add(&path, request.headers_mut());
        let forwarder = self.proxy.as_deref().filter(|_| Proxy::forwards(&self.url));
        if let Some(proxy) = forwarder {
            self.address_to(proxy, &mut request)?;
        }
        loop {
            let (mut sender, is_fresh) = match self.take() {
                Some(sender) => (sender, false),
                // Boxed, so that the future of each request does not have the size of a handshake.
                None => (Box::pin(self.connect()).await?, true),
            };
            let copy = (may_repeat && !is_fresh).then(|| request.clone());
            match sender.try_send_request(request).await {
                Ok(response) => {
                    return match forwarder {
                        Some(proxy) if response.status() == PROXY_REFUSES => {
                            Err(proxy.refused(&self.url.host_and_port(), response.status()))
                        }
                        _ => {
                            self.cookies.take(&self.url, &path, response.headers());
                            Ok((response, Lease { pool: Arc::clone(self), sender }))
                        }
                    };
                }
                Err(mut failure) => match failure.take_message().or(copy) {
                    Some(again) if !is_fresh => request = again,
                    unsent => return Err(broken(failure.into_error(), unsent.is_some())),
                },
            }
        }
    }

    /// Gives a request the absolute URI and the credentials that a forwarding proxy needs.
    fn address_to(&self, proxy: &Proxy, request: &mut Request<Whole>) -> Result<(), Error> {
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.url.authority())
            .path_and_query(request.uri().path_and_query().map_or("/", PathAndQuery::as_str))
            .build();
        *request.uri_mut() =
            uri.map_err(|error| Error::misuse(format!("{}: {error}", self.url)))?;
        if let Some(authorization) = proxy.authorization() {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        Ok(())
    }

    async fn connect(&self) -> Result<http1::SendRequest<Whole>, Error> {
        let stream = dial(&self.url, self.proxy.as_deref(), &self.network).await?;
        let opened = connection::open(stream, MAX_READ_BUFFER).await;
        Ok(opened.map_err(|error| broken(error, true))?.0)
    }

    fn take(&self) -> Option<http1::SendRequest<Whole>> {
        let mut idle = self.idle();
        while let Some(Idle { sender, since }) = idle.pop() {
            if clock::since(since) > MAX_IDLE_TIME {
                // The connections below this one in the stack were idle even longer.
                idle.clear();
            } else if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Returns the connection to the pool after the response was read completely.
    pub(super) async fn give_back(mut self) {
        if self.sender.ready().await.is_err() {
            return;
        }
        let mut idle = self.pool.idle();
        idle.retain(|connection| {
            clock::since(connection.since) <= MAX_IDLE_TIME && !connection.sender.is_closed()
        });
        if idle.len() < MAX_IDLE {
            idle.push(Idle { sender: self.sender, since: clock::now() });
        }
    }
}

/// Returns the error of a request that got no response.
fn broken(error: hyper::Error, was_unsent: bool) -> Error {
    let (kind, message) = match was_unsent {
        true => (ErrorKind::Connect, format!("the connection could not be used: {error}")),
        false if error.is_parse() => {
            (ErrorKind::Protocol, format!("the response is not HTTP/1.1: {error}"))
        }
        false => (ErrorKind::Lost, format!("the connection broke before the response: {error}")),
    };
    Error::new(kind, message).caused_by(error)
}
