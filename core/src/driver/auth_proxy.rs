//! The requests to the OAuth proxy of an endpoint: each has a response at once, or after the proxy's own requests.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{AuthServer, Outbox, moment};
use crate::{
    auth::{
        TokenDigest,
        authorization_server::{
            Response,
            proxy::{ProxyRequest, ProxyStep},
        },
    },
    clock,
    http::Part,
    protocol::{ClientKey, Shares},
    replier::Replier,
};

/// The maximum number of requests that wait.
const MAX_WAITING: usize = 256;

/// The requests to the proxy that have no response yet.
pub(super) struct Proxied(Mutex<State>);

struct State {
    shares: Shares,
    /// Answers that wait until another request has exchanged a refresh token.
    waiting: HashMap<TokenDigest, Vec<Answer>>,
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
        let mut proxied = self.proxied.lock();
        if !proxied.shares.has_room_for(client) {
            drop(proxied);
            if let Some(left_out) = self.log().due(clock::unix()) {
                tracing::warn!("too many requests of sign-ins wait{left_out}");
            }
            answer.deliver(Response::unavailable("too many requests of sign-ins wait"));
            return;
        }
        proxied.shares.add(client);
        drop(proxied);
        let mut state = self.lock();
        match state.machine.proxy_request(&moment(), request) {
            // Under the lock, because the exchange could end in between.
            Some(ProxyStep::Wait(digest)) => {
                self.proxied.lock().waiting.entry(digest).or_default().push(answer);
            }
            step => {
                drop(state);
                self.carry_on(step, answer, None);
            }
        }
    }

    /// Carries out a step. `refreshed`: the refresh token whose exchange it may end.
    fn carry_on(
        &self,
        step: Option<ProxyStep>,
        mut answer: Answer,
        refreshed: Option<TokenDigest>,
    ) {
        let response = match step {
            Some(ProxyStep::Respond(response)) => response,
            Some(ProxyStep::Fetch(request, flow)) => {
                let Some(server) = self.this() else { return };
                let fetched = Replier::new(move |answered| {
                    let token = flow.refreshes();
                    let step = server.lock().machine.proxy_answer(&moment(), flow, &answered);
                    server.carry_on(step, answer, token);
                });
                return self.fetch(request, fetched);
            }
            Some(ProxyStep::Store(operation, flow)) => {
                let Some(server) = self.this() else { return };
                let token = flow.refreshes().or(refreshed);
                let stored = Replier::new(move |reply| {
                    let step = server.lock().machine.proxy_stored(&moment(), flow, reply);
                    server.carry_on(step, answer, token);
                });
                return self.run_on_store(operation, stored);
            }
            Some(ProxyStep::Wait(_)) | None => Response::unavailable("there is no OAuth proxy"),
        };
        let waiting = refreshed.and_then(|digest| self.proxied.lock().waiting.remove(&digest));
        for mut waiting in waiting.into_iter().flatten() {
            self.proxied.lock().shares.remove(waiting.client);
            waiting.deliver(response.clone());
        }
        self.proxied.lock().shares.remove(answer.client);
        answer.deliver(response);
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
    fn deliver(&mut self, response: Response) {
        let Response { status, headers, body } = response;
        self.outbox.deliver(Part::Head { status, headers, body, more: false });
    }
}
