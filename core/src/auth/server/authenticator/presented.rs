//! The checks of a request whose token is valid.

use std::{sync::Arc, time::Instant};

use super::{
    AuthRefusal, Authenticator, Caller, Dpop, Method, Request,
    attempt::{invalid, used_before},
};
use crate::auth::{
    server::{
        credentials::Scheme,
        dpop_check::{self, ProofError, ProofId},
        token_cache::Accepted,
    },
    used_once::NotUsable,
};

impl Authenticator {
    /// Checks what differs between requests with the same token: the proof of possession; and the scopes. Returns the proof
    /// as well if the store has to know whether it is new.
    pub(super) fn finish(
        &mut self,
        accepted: &Accepted,
        scheme: Scheme,
        token: &str,
        request: Request<'_>,
        (now, unix): (Instant, u64),
    ) -> Result<(Caller, Option<ProofId>), AuthRefusal> {
        let mut unknown = None;
        let (dpop, scopes): (_, &[String]) = match &self.methods[accepted.method] {
            Method::Jwt(it) => (it.dpop, &it.scopes),
            Method::Introspection(it, _) => (Dpop::Supported, &it.scopes),
            Method::ApiKeys(_) | Method::Proxy(_) | Method::Verify => (Dpop::Supported, &[]),
        };
        match &accepted.token.key {
            Some(_) if dpop == Dpop::Off => {
                return Err(invalid("tokens that are bound to a key are not accepted here"));
            }
            None if matches!(dpop, Dpop::Required | Dpop::WithNonce) => {
                return Err(invalid("the token has to be bound to a key"));
            }
            None if scheme == Scheme::DPoP => {
                return Err(invalid(
                    "the token is not bound to a key; send it with the scheme Bearer",
                ));
            }
            None => (),
            Some(_) if scheme == Scheme::Bearer => {
                // RFC 9449, section 7.2: a stolen bound token is of no use as a bearer token.
                return Err(invalid("the token is bound to a key; send it with the scheme DPoP"));
            }
            Some(key) => {
                let Some(place) = request.place else { return Err(AuthRefusal::UnknownUrl) };
                let (method, url) = (request.method, &*place.url);
                let expected = dpop_check::Expected { method, url, token, key, unix };
                let nonces = self.nonces.as_ref().filter(|_| dpop == Dpop::WithNonce);
                match dpop_check::check(request.headers, expected, nonces) {
                    Err(ProofError::Invalid(reason)) => {
                        return Err(AuthRefusal::InvalidProof(reason.into()));
                    }
                    Err(ProofError::NeedsNonce) => {
                        let nonce = nonces.and_then(|nonces| nonces.make(unix));
                        return Err(nonce.map_or(AuthRefusal::Failed, AuthRefusal::NeedsNonce));
                    }
                    Ok(proof) if self.has_store => unknown = Some(proof),
                    Ok(ProofId { owner, id, until }) => {
                        match self.used.use_once(owner, id, until, unix) {
                            Ok(()) => (),
                            Err(NotUsable::UsedBefore) => return Err(used_before()),
                            Err(NotUsable::NoRoom) => {
                                if let Some(left_out) = self.log.due(unix) {
                                    tracing::warn!(
                                        "a client has used very many DPoP proofs, so it is answered with 503{left_out}"
                                    );
                                }
                                return Err(AuthRefusal::Unavailable);
                            }
                        }
                    }
                }
            }
        }
        if !self.hierarchy.suffices(&accepted.principal.scopes, scopes) {
            return Err(AuthRefusal::InsufficientScope {
                scopes: scopes.to_vec(),
                message: format!("this needs the scopes: {}", scopes.join(" ")),
            });
        }
        let principal = Arc::clone(&accepted.principal);
        Ok((Caller::new(principal, accepted.token.expires, now, unix), unknown))
    }
}
