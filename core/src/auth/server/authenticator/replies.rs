//! The answers that requests wait for: those of introspection endpoints, and of functions of the host.

use std::{sync::Arc, time::Instant};

use super::{
    AuthOutput, AuthRefusal, AuthTicket, Authenticator, Caller, FetchId, Method, VerifyReply,
    attempt::{Attempt, Waiting, invalid},
};
use crate::auth::{
    TokenDigest,
    fetch::{FetchError, FetchResponse},
    server::{
        introspection::IntrospectionError,
        jwt::{self, LEEWAY},
    },
};

impl Authenticator {
    /// Handles the answer of an introspection endpoint, for all requests that wait for it.
    pub(super) fn introspected(
        &mut self,
        now: Instant,
        unix: u64,
        id: FetchId,
        (place, digest): (usize, TokenDigest),
        answer: Result<FetchResponse, FetchError>,
    ) {
        let Some(Method::Introspection(introspection, issuer)) = self.methods.get(place) else {
            return;
        };
        let kept = introspection.cache;
        // Without a configured audience: the resource that the request is for.
        let Some((_, waiting)) = self.pending.waiting(Waiting::Answer(id)).next() else { return };
        let configured = introspection.audiences.as_ref();
        let own = waiting.facts.audiences(configured).unwrap_or_default();
        let result = match introspection.read(answer, &own, issuer.as_deref(), unix) {
            Ok(token) => Ok(self.keep(now, digest, place, token, kept)),
            Err(IntrospectionError::Invalid(reason)) => Err(invalid(reason)),
            Err(IntrospectionError::Failed(reason)) => {
                if let Some(left_out) = self.log.due(unix) {
                    tracing::warn!(%reason, "a token could not be introspected{left_out}");
                }
                Err(AuthRefusal::Unavailable)
            }
        };
        for ticket in self.waiting(Waiting::Answer(id)) {
            let Some(mut attempt) = self.pending.remove(ticket) else { continue };
            match &result {
                Ok(accepted) => {
                    let decision = self.accept(ticket, accepted, &mut attempt, (now, unix));
                    self.decide(ticket, attempt, decision);
                }
                Err(refusal) => {
                    attempt.refuse(refusal.clone());
                    attempt.methods.pop_front();
                    self.go_on(now, unix, ticket, attempt);
                }
            }
        }
    }

    /// Handles the answer of a function of the host.
    pub(super) fn verified(
        &mut self,
        now: Instant,
        unix: u64,
        ticket: AuthTicket,
        reply: VerifyReply,
    ) {
        let is_asked = |attempt: &Attempt| matches!(attempt.waits_for, Some(Waiting::Host(_)));
        if !self.pending.get(ticket).is_some_and(is_asked) {
            return;
        }
        let Some(mut attempt) = self.pending.remove(ticket) else { return };
        let decision = match reply {
            VerifyReply::Principal(principal) => {
                let expires = jwt::expiry(&principal.claims, LEEWAY);
                Ok(Caller::new(Arc::new(*principal), expires, now, unix))
            }
            VerifyReply::InsufficientScope { scopes, message } => {
                Err(AuthRefusal::InsufficientScope { scopes, message })
            }
            VerifyReply::Failed => Err(AuthRefusal::Failed),
            VerifyReply::Unknown | VerifyReply::Invalid(_) => {
                attempt.refuse(match reply {
                    VerifyReply::Invalid(message) => AuthRefusal::InvalidToken(message),
                    _ => invalid("the token is not known here"),
                });
                attempt.methods.pop_front();
                self.go_on(now, unix, ticket, attempt);
                return;
            }
        };
        self.outputs.push_back(AuthOutput::Decided(ticket, decision));
    }

    /// Continues the requests that waited for this.
    pub(super) fn resume(&mut self, now: Instant, unix: u64, event: Waiting) {
        for ticket in self.waiting(event) {
            if let Some(attempt) = self.pending.remove(ticket) {
                self.go_on(now, unix, ticket, attempt);
            }
        }
    }

    fn waiting(&self, event: Waiting) -> Vec<AuthTicket> {
        self.pending.waiting(event).map(|(ticket, _)| ticket).collect()
    }
}
