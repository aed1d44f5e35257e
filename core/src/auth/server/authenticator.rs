//! Decides who sends a request, by any of several methods.
//!
//! [`Authenticator::check`] decides at once if the token is known or its keys are. Otherwise the request is pending until
//! an answer comes, or its time is over; then it is refused.

mod attempt;
mod facts;
mod io;
mod methods;
mod pending;
mod presented;
mod proxied;
mod replies;
mod stored;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderMap;

pub(crate) use self::pending::TIMEOUT;
use self::{
    attempt::{Attempt, FetchFor, RequestFacts, Tried, Waiting, invalid},
    pending::Pending,
};
pub use self::{
    io::{
        AuthInput, AuthOutput, AuthRefusal, AuthTicket, Caller, Checked, FetchId, Request,
        VerifyReply,
    },
    methods::{Dpop, Jwt, Method},
};
use super::{
    api_keys::{ApiKeys, KeysOfOwners},
    credentials::{self, Credentials, Scheme},
    dpop_check::Nonces,
    jwt::{ParsedJwt, VerifiedToken, looks_like_jwt},
    token_cache::{Accepted, MAX_KEPT, TokenCache},
};
use crate::{
    auth::{
        TokenDigest, fetch::FetchRequest, metadata::is_same_issuer, scopes::ScopeHierarchy,
        used_once::UsedOnce,
    },
    log_limit::LogLimit,
    protocol::{ClientKey, Shares},
};

/// The maximum number of questions to introspection endpoints, which anyone can cause by sending any token.
const MAX_ASKED: usize = 256;

/// The state machine.
#[derive(Debug)]
pub struct Authenticator {
    methods: Vec<Method>,
    hierarchy: ScopeHierarchy,
    nonces: Option<Nonces>,
    used: UsedOnce,
    /// True if servers remember used proofs together, in a store.
    has_store: bool,
    cache: TokenCache,
    pending: Pending,
    fetching: BTreeMap<FetchId, FetchFor>,
    /// The questions to introspection endpoints, with the client that each one counts for.
    asking: HashMap<(usize, TokenDigest), (FetchId, Option<ClientKey>)>,
    asking_shares: Shares,
    next: u64,
    outputs: VecDeque<AuthOutput>,
    /// Limits the messages that every request can cause.
    log: LogLimit,
}

impl Authenticator {
    pub fn new(methods: Vec<Method>, hierarchy: ScopeHierarchy) -> Self {
        Self {
            methods,
            hierarchy,
            nonces: None,
            used: UsedOnce::default(),
            has_store: false,
            cache: TokenCache::default(),
            pending: Pending::default(),
            fetching: BTreeMap::new(),
            asking: HashMap::new(),
            asking_shares: Shares::new(MAX_ASKED),
            next: 0,
            outputs: VecDeque::new(),
            log: LogLimit::default(),
        }
    }

    /// Replaces the keys that the servers of one address share. Nonces are accepted that any of them made.
    pub fn set_keys(&mut self, keys: &[Vec<u8>]) {
        self.nonces = Some(Nonces::new(keys));
        for method in &mut self.methods {
            if let Method::Proxy(proxy) = method {
                proxy.set_keys(keys);
            }
        }
    }

    /// Replaces the API keys of the method at this place. Errors if they can't be used.
    pub fn set_api_keys(&mut self, place: usize, keys: KeysOfOwners) -> Result<(), String> {
        if let Some(Method::ApiKeys(old)) = self.methods.get_mut(place) {
            *old = ApiKeys::new(old.header().as_str(), keys)?;
        }
        Ok(())
    }

    /// Sets the keys of nonces, which the servers of one address share.
    #[must_use]
    pub fn with_nonces(mut self, nonces: Nonces) -> Self {
        self.nonces = Some(nonces);
        self
    }

    /// Remembers used proofs, and what the OAuth proxy has exchanged and revoked, in a store, by [`AuthOutput::Store`].
    #[must_use]
    pub fn with_store(mut self) -> Self {
        self.has_store = true;
        if let Some(proxy) = self.proxy() {
            proxy.use_store();
        }
        self
    }

    /// Decides about a request, from its head.
    pub fn check(&mut self, now: Instant, unix: u64, request: Request<'_>) -> Checked {
        if let Some(decision) = self.check_own_headers(request.headers) {
            return decision;
        }
        let (scheme, token) = match credentials::token(request.headers) {
            Credentials::Token(scheme, token) => (scheme, token),
            Credentials::Missing => return Checked::Refused(self.missing(request)),
            Credentials::Malformed(reason) => {
                return Checked::Refused(AuthRefusal::Malformed(reason.into()));
            }
            Credentials::TooLong => return Checked::Refused(invalid("the token is too long")),
        };
        let resource = request.place.map_or("", |place| &*place.resource);
        let digest = TokenDigest::at(resource, token);
        if let Some(accepted) = self.cache.get(&digest, now, unix) {
            let finished = match self.finish(&accepted, scheme, token, request, (now, unix)) {
                Ok((caller, None)) => return Checked::Accepted(caller),
                Err(refusal) => return Checked::Refused(refusal),
                finished => finished,
            };
            let ticket = AuthTicket(self.number());
            let mut attempt = Attempt::new(now, token, digest, scheme, request, VecDeque::new());
            let decision = self.decide_or_ask_store(unix, ticket, &mut attempt, finished);
            return self.hold(unix, ticket, attempt, decision);
        }
        let methods = match self.candidates(token) {
            Ok(methods) => methods,
            Err(refusal) => return Checked::Refused(refusal),
        };
        let mut attempt = Attempt::new(now, token, digest, scheme, request, methods);
        let ticket = AuthTicket(self.number());
        let decision = self.advance(now, unix, ticket, &mut attempt);
        self.hold(unix, ticket, attempt, decision)
    }

    /// Returns a decision, or keeps the request that waits for it. Waiting is decided by the first method that needs it, so a full
    /// table is noticed here.
    fn hold(
        &mut self,
        unix: u64,
        ticket: AuthTicket,
        attempt: Attempt,
        decision: Option<Result<Caller, AuthRefusal>>,
    ) -> Checked {
        match decision {
            Some(decision) => decision.into(),
            None if !self.pending.has_room_for(attempt.client) => {
                if let Some(left_out) = self.log.due(unix) {
                    tracing::warn!("too many requests wait for their authentication{left_out}");
                }
                self.withdraw(ticket);
                Checked::Refused(AuthRefusal::Unavailable)
            }
            None => {
                self.pending.insert(ticket, attempt);
                Checked::Pending(ticket)
            }
        }
    }

    /// Handles an input. `unix` is the time in seconds since 1970.
    pub fn handle(&mut self, now: Instant, unix: u64, input: AuthInput) {
        match input {
            AuthInput::Fetched(id, answer) => match self.fetching.remove(&id) {
                None => (),
                Some(FetchFor::Keys(place)) => {
                    let Some(Method::Jwt(jwt)) = self.methods.get_mut(place) else { return };
                    let is_done = jwt.keys.answered(now, answer);
                    self.fetch_keys(place);
                    if is_done {
                        self.resume(now, unix, Waiting::Keys(place));
                    }
                }
                Some(FetchFor::Introspection(place, digest)) => {
                    if let Some((_, client)) = self.asking.remove(&(place, digest)) {
                        self.asking_shares.remove(client);
                    }
                    self.introspected(now, unix, id, (place, digest), answer);
                }
            },
            AuthInput::Verified(ticket, reply) => self.verified(now, unix, ticket, reply),
            AuthInput::Stored(ticket, reply) => self.stored((now, unix), ticket, reply),
            AuthInput::Cancelled(ticket) => {
                self.pending.remove(ticket);
            }
            AuthInput::Tick => {
                while let Some((ticket, attempt)) = self.pending.pop_expired(now) {
                    if let Some(left_out) = self.log.due(unix) {
                        let waits_for = attempt.waits_for;
                        tracing::warn!(?waits_for, "an authentication took too long{left_out}");
                    }
                    let refusal = match attempt.waits_for {
                        Some(Waiting::Host(_)) => AuthRefusal::Failed,
                        _ => AuthRefusal::Unavailable,
                    };
                    self.outputs.push_back(AuthOutput::Decided(ticket, Err(refusal)));
                }
            }
        }
    }

    pub fn poll(&mut self) -> Option<AuthOutput> {
        self.outputs.pop_front()
    }

    /// Returns whether [`Authenticator::poll`] has an output.
    #[cfg(feature = "server")]
    pub(crate) fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Returns the time of the next [`AuthInput::Tick`].
    pub fn deadline(&self) -> Option<Instant> {
        self.pending.deadline()
    }

    /// Returns the age of the keys of each issuer that were fetched.
    #[cfg(feature = "server")]
    pub(crate) fn key_set_ages(&self, now: Instant) -> BTreeMap<String, Duration> {
        let ages = self.methods.iter().filter_map(|method| match method {
            Method::Jwt(jwt) => Some((jwt.issuer.clone(), jwt.keys.age(now)?)),
            _ => None,
        });
        ages.collect()
    }

    /// Returns the refusal of a request without credentials. Its answer names the metadata of this resource, if there is any.
    fn missing(&self, request: Request<'_>) -> AuthRefusal {
        let has_metadata = || self.methods.iter().any(Method::has_issuer);
        match request.place {
            None if has_metadata() => AuthRefusal::UnknownUrl,
            _ => AuthRefusal::Missing,
        }
    }

    /// Checks keys that come in headers of their own.
    fn check_own_headers(&self, headers: &HeaderMap) -> Option<Checked> {
        let mut refused = None;
        for method in &self.methods {
            let Method::ApiKeys(keys) = method else { continue };
            if !keys.has_own_header() {
                continue;
            }
            match credentials::only(headers, keys.header()) {
                Ok(None) => (),
                Err(reason) => {
                    return Some(Checked::Refused(AuthRefusal::Malformed(reason.into())));
                }
                Ok(Some(key)) => match keys.owner(key) {
                    Some(owner) => {
                        let (principal, expires) = (Arc::clone(owner), None);
                        return Some(Checked::Accepted(Caller { principal, expires }));
                    }
                    // Another set of keys may have the same header.
                    None => refused = Some(invalid("the key is not known here")),
                },
            }
        }
        refused.map(Checked::Refused)
    }

    /// Returns the methods that a token may be for, by its looks.
    fn candidates(&self, token: &str) -> Result<VecDeque<usize>, AuthRefusal> {
        let of_kind = |is: fn(&Method) -> bool| {
            self.methods
                .iter()
                .enumerate()
                .filter(move |(_, method)| is(method))
                .map(|(place, _)| place)
        };
        let keys =
            of_kind(|method| matches!(method, Method::ApiKeys(keys) if !keys.has_own_header()));
        let others = of_kind(|method| matches!(method, Method::Proxy(_)))
            .chain(of_kind(|method| matches!(method, Method::Introspection(..))))
            .chain(of_kind(|method| matches!(method, Method::Verify)));
        let mut methods: VecDeque<usize> = keys.collect();
        let mut reason = "the token is not known here";
        if looks_like_jwt(token) {
            match ParsedJwt::parse(token) {
                Ok(parsed) => {
                    let issuer = parsed.claimed_issuer();
                    let own = |method: &Method| {
                        matches!(method, Method::Jwt(jwt)
                            if issuer.is_some_and(|issuer| is_same_issuer(issuer, &jwt.issuer)))
                    };
                    methods.extend(
                        self.methods
                            .iter()
                            .enumerate()
                            .filter(|(_, method)| own(method))
                            .map(|(place, _)| place),
                    );
                    reason = "the token is of another issuer";
                }
                Err(malformed) => reason = malformed,
            }
        }
        methods.extend(others);
        match methods.is_empty() {
            true => Err(invalid(reason)),
            false => Ok(methods),
        }
    }

    /// Tries the methods in turn. Returns `None` if the current one waits.
    fn advance(
        &mut self,
        now: Instant,
        unix: u64,
        ticket: AuthTicket,
        attempt: &mut Attempt,
    ) -> Option<Result<Caller, AuthRefusal>> {
        while let Some(&place) = attempt.methods.front() {
            match self.try_method(now, unix, ticket, attempt, place) {
                Tried::Waits(waiting) => {
                    attempt.waits_for = Some(waiting);
                    return None;
                }
                Tried::Accepted(accepted) => {
                    return self.accept(ticket, &accepted, attempt, (now, unix));
                }
                Tried::Refused(refusal) => {
                    attempt.refuse(refusal);
                    attempt.methods.pop_front();
                }
            }
        }
        Some(Err(attempt.refusal.clone()))
    }

    fn try_method(
        &mut self,
        now: Instant,
        unix: u64,
        ticket: AuthTicket,
        attempt: &mut Attempt,
        place: usize,
    ) -> Tried<Arc<Accepted>> {
        match &mut self.methods[place] {
            Method::ApiKeys(keys) => match keys.owner(attempt.token.expose()) {
                Some(owner) if attempt.scheme == Scheme::Bearer => {
                    let (token, principal) = (VerifiedToken::from_owner(owner), Arc::clone(owner));
                    Tried::Accepted(Arc::new(Accepted { token, principal, method: place }))
                }
                _ => Tried::Refused(invalid("the token is not known here")),
            },
            Method::Jwt(jwt) => {
                let result = jwt.verify(now, unix, attempt, place);
                self.fetch_keys(place);
                match result {
                    Tried::Accepted(token) => {
                        Tried::Accepted(self.keep(now, attempt.digest, place, token, MAX_KEPT))
                    }
                    Tried::Refused(refusal) => Tried::Refused(refusal),
                    Tried::Waits(waiting) => Tried::Waits(waiting),
                }
            }
            Method::Introspection(introspection, _) => {
                if attempt.facts.audiences(introspection.audiences.as_ref()).is_none() {
                    return Tried::Refused(AuthRefusal::UnknownUrl);
                }
                let asked = self.asking.get(&(place, attempt.digest));
                if let Some((id, _)) = asked {
                    return Tried::Waits(Waiting::Answer(*id));
                }
                if !self.asking_shares.has_room_for(attempt.client) {
                    if let Some(left_out) = self.log.due(unix) {
                        tracing::warn!("too many tokens are being introspected{left_out}");
                    }
                    return Tried::Refused(AuthRefusal::Unavailable);
                }
                match introspection.request(attempt.token.expose()) {
                    Err(error) => {
                        if let Some(left_out) = self.log.due(unix) {
                            tracing::warn!(%error, "a token could not be introspected{left_out}");
                        }
                        Tried::Refused(AuthRefusal::Unavailable)
                    }
                    Ok(request) => {
                        let id =
                            self.fetch(FetchFor::Introspection(place, attempt.digest), request);
                        self.asking.insert((place, attempt.digest), (id, attempt.client));
                        self.asking_shares.add(attempt.client);
                        Tried::Waits(Waiting::Answer(id))
                    }
                }
            }
            Method::Proxy(proxy) => {
                proxied::verify(proxy, unix, (ticket, &*attempt), place, &mut self.outputs)
            }
            Method::Verify if attempt.scheme == Scheme::DPoP => {
                Tried::Refused(invalid("tokens with the scheme DPoP are not accepted here"))
            }
            Method::Verify => {
                let token = attempt.token.clone();
                self.outputs.push_back(AuthOutput::Verify { ticket, method: place, token });
                Tried::Waits(Waiting::Host(place))
            }
        }
    }

    fn go_on(&mut self, now: Instant, unix: u64, ticket: AuthTicket, mut attempt: Attempt) {
        let decision = self.advance(now, unix, ticket, &mut attempt);
        self.decide(ticket, attempt, decision);
    }

    /// Passes on the decision about a request, which goes on waiting without one.
    fn decide(
        &mut self,
        ticket: AuthTicket,
        attempt: Attempt,
        decision: Option<Result<Caller, AuthRefusal>>,
    ) {
        match decision {
            Some(decision) => self.outputs.push_back(AuthOutput::Decided(ticket, decision)),
            None => {
                self.pending.insert(ticket, attempt);
            }
        }
    }

    fn keep(
        &mut self,
        now: Instant,
        digest: TokenDigest,
        method: usize,
        token: VerifiedToken,
        kept: Duration,
    ) -> Arc<Accepted> {
        let principal = Arc::new(token.principal.clone());
        let accepted = Arc::new(Accepted { token, principal, method });
        self.cache.insert(digest, now, Arc::clone(&accepted), kept);
        accepted
    }

    fn accept(
        &mut self,
        ticket: AuthTicket,
        accepted: &Accepted,
        attempt: &mut Attempt,
        times: (Instant, u64),
    ) -> Option<Result<Caller, AuthRefusal>> {
        let RequestFacts { method, proofs, place } = &attempt.facts;
        let (place, remote) = (place.as_ref(), None);
        let request = Request { method, headers: proofs, place, remote };
        let token = attempt.token.expose();
        let finished = self.finish(accepted, attempt.scheme, token, request, times);
        self.decide_or_ask_store(times.1, ticket, attempt, finished)
    }

    fn fetch_keys(&mut self, place: usize) {
        let Some(Method::Jwt(jwt)) = self.methods.get_mut(place) else { return };
        if let Some(request) = jwt.keys.poll() {
            self.fetch(FetchFor::Keys(place), request);
        }
    }

    fn fetch(&mut self, purpose: FetchFor, request: FetchRequest) -> FetchId {
        let id = FetchId(self.number());
        self.fetching.insert(id, purpose);
        self.outputs.push_back(AuthOutput::Fetch(id, request));
        id
    }

    /// Takes back the question to the host about a request that is refused.
    fn withdraw(&mut self, ticket: AuthTicket) {
        self.outputs.retain(|output| match output {
            AuthOutput::Verify { ticket: asked, .. } | AuthOutput::Store(asked, _) => {
                *asked != ticket
            }
            AuthOutput::Fetch(..) | AuthOutput::Decided(..) => true,
        });
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
