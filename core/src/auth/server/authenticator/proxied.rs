//! The OAuth proxy among the methods of a server: its requests, and its tokens.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use super::{
    AuthOutput, AuthRefusal, AuthTicket, Authenticator, Method,
    attempt::{Attempt, Tried, Waiting, invalid},
};
use crate::{
    auth::{
        Moment,
        authorization_server::proxy::{Flow, OAuthProxy, ProxyRequest, ProxyStep},
        fetch::{FetchError, FetchResponse},
        server::{jwt::VerifiedToken, token_cache::Accepted},
    },
    store::StoreReply,
};

impl Authenticator {
    /// Handles a request to the OAuth proxy. Returns `None` if the server has no proxy.
    pub fn proxy_request(&mut self, at: &Moment, request: ProxyRequest) -> Option<ProxyStep> {
        Some(self.proxy()?.handle(at, request))
    }

    /// Continues a request to the OAuth proxy with the answer to the proxy's own request.
    pub fn proxy_answer(
        &mut self,
        at: &Moment,
        flow: Flow,
        answer: &Result<FetchResponse, FetchError>,
    ) -> Option<ProxyStep> {
        Some(self.proxy()?.resume(at, flow, answer))
    }

    /// Continues a request to the OAuth proxy with the reply of the store.
    pub fn proxy_stored(
        &mut self,
        at: &Moment,
        flow: Flow,
        reply: StoreReply,
    ) -> Option<ProxyStep> {
        Some(self.proxy()?.stored(at, flow, reply))
    }

    /// Goes on with a token of the proxy after the store's reply about its sign-in.
    pub(super) fn take_revocation(
        &mut self,
        (now, unix): (Instant, u64),
        ticket: AuthTicket,
        mut attempt: Attempt,
        reply: StoreReply,
    ) {
        let resource = attempt.facts.place.as_ref().map_or("", |place| &*place.resource);
        let token = attempt.token.expose();
        let checked = self.proxy().map(|proxy| proxy.take_revocation(resource, token, unix, reply));
        if let Some(Err(reason)) = checked {
            if let Some(left_out) = self.log.due(unix) {
                tracing::error!(
                    "the store failed, so a request with a token of the OAuth proxy is answered with 503: {reason}{left_out}"
                );
            }
            attempt.refuse(AuthRefusal::Unavailable);
            attempt.methods.pop_front();
        }
        self.go_on(now, unix, ticket, attempt);
    }

    pub(super) fn proxy(&mut self) -> Option<&mut OAuthProxy> {
        self.methods.iter_mut().find_map(|method| match method {
            Method::Proxy(proxy) => Some(&mut **proxy),
            _ => None,
        })
    }
}

/// Verifies a token of the proxy. `method` is its place in the list of methods. The result is not cached: opening a token is quick,
/// and its sign-in may be revoked. `outputs` gets the question to the store whether it was.
pub(super) fn verify(
    proxy: &OAuthProxy,
    unix: u64,
    (ticket, attempt): (AuthTicket, &Attempt),
    method: usize,
    outputs: &mut VecDeque<AuthOutput>,
) -> Tried<Arc<Accepted>> {
    let Some(place) = &attempt.facts.place else { return Tried::Refused(AuthRefusal::UnknownUrl) };
    if let Some(asked) = proxy.revocation_of(&place.resource, attempt.token.expose(), unix) {
        outputs.push_back(AuthOutput::Store(ticket, asked));
        return Tried::Waits(Waiting::Revocation);
    }
    let verified = proxy.verify(&place.resource, attempt.token.expose(), unix);
    let Some((principal, expires)) = verified else {
        return Tried::Refused(invalid("the token is not known here"));
    };
    let token = VerifiedToken { principal, expires: Some(expires), key: None };
    let principal = Arc::new(token.principal.clone());
    Tried::Accepted(Arc::new(Accepted { token, principal, method }))
}
