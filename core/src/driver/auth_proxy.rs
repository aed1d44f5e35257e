//! The requests to the OAuth proxy of an endpoint: each has a response at once, or after the proxy's own requests.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{HeaderMap, StatusCode};

use super::{AuthServer, Outbox, moment};
use crate::{
    auth::{
        TokenDigest,
        authorization_server::{
            Response,
            proxy::{ProxyRequest, ProxyStep},
        },
    },
    http::Part,
};

/// The maximum number of requests that wait.
const MAX_WAITING: usize = 256;

/// The requests to the proxy that have no response yet.
#[derive(Default)]
pub(super) struct Proxied {
    count: AtomicUsize,
    /// Those that wait until a refresh token was exchanged.
    waiting: Mutex<HashMap<TokenDigest, Vec<(ProxyRequest, Answer)>>>,
}

/// The place where a response goes.
struct Answer(Box<dyn Outbox>);

impl AuthServer {
    /// Handles a request to the proxy.
    pub(crate) fn proxy_request(&self, request: ProxyRequest, outbox: Box<dyn Outbox>) {
        let mut answer = Answer(outbox);
        if self.proxied.count.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.proxied.count.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!("too many sign-ins wait for the provider");
            answer.deliver(StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new(), Vec::new());
            return;
        }
        let step = self.lock().machine.proxy_request(&moment(), request);
        self.carry_on(step, answer);
    }

    fn carry_on(&self, step: Option<ProxyStep>, mut answer: Answer) {
        match step {
            Some(ProxyStep::Respond(Response { status, headers, body })) => {
                self.proxied.count.fetch_sub(1, Ordering::Relaxed);
                answer.deliver(status, headers, body);
            }
            Some(ProxyStep::Fetch(request, flow)) => {
                let Some(server) = self.this() else { return };
                self.fetch(
                    request,
                    Box::new(move |answered| {
                        let refreshes = flow.refreshes();
                        let step = server.lock().machine.proxy_answer(&moment(), flow, &answered);
                        server.carry_on(step, answer);
                        if let Some(digest) = refreshes {
                            server.refreshed(digest);
                        }
                    }),
                );
            }
            Some(ProxyStep::Wait(request, digest)) => {
                let mut waiting = self.proxied.lock();
                waiting.entry(digest).or_default().push((request, answer));
                drop(waiting);
                // The exchange may have ended in between.
                if !self.lock().machine.is_refreshing(digest) {
                    self.refreshed(digest);
                }
            }
            None => {
                self.proxied.count.fetch_sub(1, Ordering::Relaxed);
                answer.deliver(StatusCode::NOT_FOUND, HeaderMap::new(), Vec::new());
            }
        }
    }

    /// Handles the requests again that waited for the exchange of a refresh token.
    fn refreshed(&self, digest: TokenDigest) {
        let waiting = self.proxied.lock().remove(&digest);
        for (request, answer) in waiting.into_iter().flatten() {
            let step = self.lock().machine.proxy_request(&moment(), request);
            self.carry_on(step, answer);
        }
    }
}

impl Proxied {
    fn lock(&self) -> MutexGuard<'_, HashMap<TokenDigest, Vec<(ProxyRequest, Answer)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    fn deliver(&mut self, status: StatusCode, headers: HeaderMap, body: Vec<u8>) {
        self.0.deliver(Part::Head { status, headers, body, more: false });
    }
}

impl fmt::Debug for Proxied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxied").field("count", &self.count).finish_non_exhaustive()
    }
}
