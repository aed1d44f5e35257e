//! The requests to the OAuth proxy of an endpoint: each has a response at once, or after the proxy's own requests.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
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
        server::authenticator::Shares,
    },
    http::Part,
    protocol::ClientKey,
};

/// The maximum number of requests that wait.
const MAX_WAITING: usize = 256;

/// The requests to the proxy that have no response yet.
pub(super) struct Proxied(Mutex<State>);

struct State {
    shares: Shares,
    /// Those that wait until a refresh token was exchanged.
    waiting: HashMap<TokenDigest, Vec<(ProxyRequest, Answer)>>,
}

/// The place where a response goes.
struct Answer {
    outbox: Box<dyn Outbox>,
    /// The client that the request counts for.
    client: Option<ClientKey>,
}

impl AuthServer {
    /// Handles a request to the proxy.
    pub(crate) fn proxy_request(&self, request: ProxyRequest, outbox: Box<dyn Outbox>) {
        let client = request.client;
        let mut answer = Answer { outbox, client };
        let mut state = self.proxied.lock();
        if !state.shares.has_room_for(client) {
            drop(state);
            tracing::warn!("too many requests of sign-ins wait");
            answer.deliver(StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new(), Vec::new());
            return;
        }
        state.shares.add(client);
        drop(state);
        let step = self.lock().machine.proxy_request(&moment(), request);
        self.carry_on(step, answer);
    }

    fn carry_on(&self, step: Option<ProxyStep>, mut answer: Answer) {
        match step {
            Some(ProxyStep::Respond(Response { status, headers, body })) => {
                self.proxied.lock().shares.remove(answer.client);
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
                let mut state = self.proxied.lock();
                state.waiting.entry(digest).or_default().push((request, answer));
                drop(state);
                // The exchange may have ended in between.
                if !self.lock().machine.is_refreshing(digest) {
                    self.refreshed(digest);
                }
            }
            None => {
                self.proxied.lock().shares.remove(answer.client);
                answer.deliver(StatusCode::NOT_FOUND, HeaderMap::new(), Vec::new());
            }
        }
    }

    /// Handles the requests again that waited for the exchange of a refresh token.
    fn refreshed(&self, digest: TokenDigest) {
        let waiting = self.proxied.lock().waiting.remove(&digest);
        for (request, answer) in waiting.into_iter().flatten() {
            let step = self.lock().machine.proxy_request(&moment(), request);
            self.carry_on(step, answer);
        }
    }
}

impl Proxied {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Proxied {
    fn default() -> Self {
        Self(Mutex::new(State { shares: Shares::new(MAX_WAITING), waiting: HashMap::new() }))
    }
}

impl Answer {
    fn deliver(&mut self, status: StatusCode, headers: HeaderMap, body: Vec<u8>) {
        self.outbox.deliver(Part::Head { status, headers, body, more: false });
    }
}
