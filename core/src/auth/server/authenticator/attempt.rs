//! A token in the course of being verified.

use std::{collections::VecDeque, fmt, time::Instant};

use http::{HeaderMap, Method as HttpMethod};

use super::{AuthRefusal, Caller, FetchId, Jwt, Request, TIMEOUT};
use crate::{
    auth::{
        Secret, TokenDigest,
        server::{
            credentials::Scheme,
            jwt::{JwtError, JwtRules, ParsedJwt, VerifiedToken},
            keys::Lookup,
            resource::ResourceUrls,
        },
    },
    protocol::{ClientKey, Principal},
};

/// The purpose of an HTTP request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FetchFor {
    Keys(usize),
    Introspection(usize, TokenDigest),
}

/// A token in the course of being verified.
pub(super) struct Attempt {
    pub(super) token: Secret,
    pub(super) digest: TokenDigest,
    pub(super) scheme: Scheme,
    /// The client that the attempt counts for.
    pub(super) client: Option<ClientKey>,
    pub(super) facts: RequestFacts,
    /// The methods that are left, the current one first.
    pub(super) methods: VecDeque<usize>,
    /// The refusal if no method accepts the token.
    pub(super) refusal: AuthRefusal,
    pub(super) waits_for: Option<Waiting>,
    /// The sender, if its proof of possession is new, which the store has to know.
    pub(super) caller: Option<Caller>,
    /// True once it waited for a key set. Another request for it would bring the same keys.
    pub(super) has_refreshed: bool,
    pub(super) deadline: Instant,
}

/// The parts of a request that a proof is about.
pub(super) struct RequestFacts {
    pub(super) method: HttpMethod,
    pub(super) proofs: HeaderMap,
    pub(super) place: Option<ResourceUrls>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Waiting {
    Keys(usize),
    Answer(FetchId),
    Host(usize),
    Store,
    /// The store says whether the sign-in of a proxy's token was revoked.
    Revocation,
}

/// The result of one method.
pub(super) enum Tried<T> {
    Accepted(T),
    Refused(AuthRefusal),
    Waits(Waiting),
}

impl Jwt {
    /// Verifies the token, or says what stands in the way. `place` is the method's place in the list.
    pub(super) fn verify(
        &mut self,
        now: Instant,
        unix: u64,
        attempt: &mut Attempt,
        place: usize,
    ) -> Tried<VerifiedToken> {
        let parsed = match ParsedJwt::parse(attempt.token.expose()) {
            Ok(parsed) => parsed,
            Err(reason) => return Tried::Refused(invalid(reason)),
        };
        let Some(audiences) = attempt.facts.audiences(self.audiences.as_ref()) else {
            return Tried::Refused(AuthRefusal::UnknownUrl);
        };
        let keys = match self.keys.get(now) {
            Lookup::Ready(keys) => keys,
            Lookup::Wait => {
                attempt.has_refreshed = true;
                return Tried::Waits(Waiting::Keys(place));
            }
            Lookup::Failed(_) => return Tried::Refused(AuthRefusal::Unavailable),
        };
        let rules = JwtRules {
            issuer: self.issuer.clone(),
            audiences,
            algorithms: self.algorithms.clone(),
            leeway: self.leeway,
        };
        match parsed.verify(&keys, &rules, unix) {
            Ok(token) => Tried::Accepted(token),
            Err(JwtError::Invalid(reason)) => Tried::Refused(invalid(reason)),
            Err(JwtError::UnknownKey) if !attempt.has_refreshed && self.keys.refresh(now) => {
                attempt.has_refreshed = true;
                Tried::Waits(Waiting::Keys(place))
            }
            Err(JwtError::UnknownKey) => {
                Tried::Refused(invalid("the key of the token is not known"))
            }
        }
    }
}

impl RequestFacts {
    /// Returns the accepted audiences of a method: the configured ones, or else those of this resource. Returns `None` if the
    /// server does not know its own URL.
    pub(super) fn audiences(&self, configured: Option<&Vec<String>>) -> Option<Vec<String>> {
        match configured {
            Some(configured) => Some(configured.clone()),
            None => self.place.as_ref().map(|place| audiences(&place.resource)),
        }
    }
}

impl Attempt {
    /// Begins with a token that came with a request. `methods` are those that it may be for.
    pub(super) fn new(
        now: Instant,
        token: &str,
        digest: TokenDigest,
        scheme: Scheme,
        request: Request<'_>,
        methods: VecDeque<usize>,
    ) -> Self {
        let mut proofs = HeaderMap::new();
        for proof in request.headers.get_all("dpop").iter().take(2) {
            proofs.append("dpop", proof.clone());
        }
        let (method, place) = (request.method.clone(), request.place.cloned());
        Self {
            token: token.into(),
            digest,
            scheme,
            client: ClientKey::new(None, request.remote),
            facts: RequestFacts { method, proofs, place },
            methods,
            refusal: invalid("the token is not known here"),
            waits_for: None,
            caller: None,
            has_refreshed: false,
            deadline: now + TIMEOUT,
        }
    }

    /// Notes why a method does not accept the token. The first reason that is more than "unknown" is kept; a method that could
    /// not decide counts before all.
    pub(super) fn refuse(&mut self, refusal: AuthRefusal) {
        let is_vague = matches!(
            &self.refusal,
            AuthRefusal::InvalidToken(it) if it.ends_with("not known here")
        );
        if is_vague
            || matches!(
                refusal,
                AuthRefusal::Unavailable | AuthRefusal::Failed | AuthRefusal::UnknownUrl
            )
        {
            self.refusal = refusal;
        }
    }
}

impl VerifiedToken {
    /// Returns the token of an owner that is known without one.
    pub(super) fn from_owner(owner: &Principal) -> Self {
        Self { principal: owner.clone(), expires: None, key: None }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("waits_for", &self.waits_for).finish_non_exhaustive()
    }
}

/// Returns the audiences by which a token may name a resource. A URL without a path is the same with a slash.
fn audiences(resource: &str) -> Vec<String> {
    let has_path = resource.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    match has_path {
        true => vec![resource.to_owned()],
        false => vec![resource.to_owned(), format!("{resource}/")],
    }
}

/// Returns the refusal of a proof of possession that is not new.
pub(super) fn used_before() -> AuthRefusal {
    AuthRefusal::InvalidProof("the DPoP proof was used before".into())
}

pub(super) fn invalid(reason: &str) -> AuthRefusal {
    AuthRefusal::InvalidToken(reason.to_owned())
}
