//! The checks of an HTTP request that need the configuration only, in this order: caller, path, method; then the body.
//!
//! They have two steps, so that a client learns that it may not call before it sends the body, and they run before any lock
//! is taken.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{HeaderMap, HeaderValue, Method as HttpMethod, StatusCode, Uri, header, request::Parts};

#[cfg(feature = "auth")]
use super::authorization::Protected;
use super::{
    EndpointConfig, Part, Refused, SessionMode,
    admitted::{AdmittedHead, RequestHead, Target},
    challenge::{self, Demands},
    config::PathMeaning,
    forwarded::{Forwarded, ForwardedTarget, Peer},
    guard::Guard,
    logging::{NotAdmitted, Reason, RefusalLog},
    probes::{Probes, Readiness},
    refusal::forbidden,
    reply::{self, Accepts},
    routes,
};
#[cfg(feature = "auth")]
use crate::auth::authorization_server::{
    self as proxy,
    proxy::{OAuthEndpoint, ProxyRequest},
};
use crate::{
    error::Error,
    metrics::Metrics,
    protocol::{Dialect, Principal, TraceContext},
    router::Routes,
    session::server::{HttpFacts, MissingScopes, SessionConfig},
    wire::{self, McpHeaders},
};

const ALLOWED: &str = "GET, POST, DELETE, OPTIONS";
/// The allowed methods of a server without sessions.
const ALLOWED_ALONE: &str = "POST, OPTIONS";
pub(super) const NOWHERE: &str = "nothing is served at this path";

/// The first checks of every request. Clones share one configuration.
#[derive(Clone, Debug)]
pub struct Admission(pub(super) Arc<Rules>);

#[derive(Debug)]
pub(super) struct Rules {
    pub(super) guard: Guard,
    pub(super) config: EndpointConfig,
    pub(super) dialects: Vec<Dialect>,
    pub(super) metrics: Arc<Metrics>,
    has_sessions: bool,
    probes: Probes,
    routes: Arc<Routes>,
    /// `true` once the shutdown has begun. It is not part of the state behind the lock, so that probes need none.
    is_draining: AtomicBool,
    /// `true` if the endpoint answers requests for metrics, with the numbers of all processes.
    collects: AtomicBool,
    pub(super) log: RefusalLog,
    #[cfg(feature = "auth")]
    pub(super) protected: Option<Protected>,
}

impl Admission {
    pub(super) fn new(
        config: &EndpointConfig,
        session: &SessionConfig,
        routes: Arc<Routes>,
        metrics: Arc<Metrics>,
    ) -> Self {
        if config.metrics.is_some() {
            metrics.turn_on();
        }
        Self(Arc::new(Rules {
            guard: Guard::new(&config.guard),
            config: config.clone(),
            dialects: session.dialects.clone(),
            has_sessions: config.sessions != SessionMode::None
                && wire::has_sessions(&session.revisions, &session.dialects),
            probes: Probes::new(config),
            routes,
            is_draining: AtomicBool::new(false),
            collects: AtomicBool::new(false),
            log: RefusalLog::new(Arc::clone(&metrics)),
            metrics,
            #[cfg(feature = "auth")]
            protected: Protected::from_config(config),
        }))
    }

    /// Returns the address of the client that sent a request on a connection with this peer, if it is known. Call it before
    /// [`Self::head`]: behind a trusted proxy, the host and the scheme that the client used count afterwards.
    pub fn client_address(&self, head: &mut Parts, peer: Option<Peer>) -> Option<IpAddr> {
        let peer = peer?;
        let proxies = &self.0.guard.proxies;
        if !proxies.contains(peer) {
            return peer.address();
        }
        let Forwarded { client, target } = Forwarded::read(&head.headers, peer, proxies);
        if target != ForwardedTarget::default() {
            head.extensions.insert(target);
        }
        client
    }

    /// Returns whether the forwarding headers and the PROXY protocol of this peer count.
    #[cfg(feature = "http")]
    pub(crate) fn trusts(&self, peer: Peer) -> bool {
        self.0.guard.proxies.contains(peer)
    }

    /// Returns whether there are trusted proxies.
    #[cfg(feature = "http")]
    pub(crate) fn has_trusted_proxies(&self) -> bool {
        !self.0.guard.proxies.is_empty()
    }

    /// Checks the head of a request. Fails with the answer, for which the body need not be read.
    pub fn head(&self, head: Parts) -> Result<AdmittedHead, Part> {
        self.head_from(head, None)
    }

    /// Checks the head of a request from this address. What clients may hold is shared by principal, or else by address.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn head_from(&self, head: Parts, remote: Option<IpAddr>) -> Result<AdmittedHead, Part> {
        match self.admit(head) {
            Ok(admitted) => Ok(admitted.with_remote(remote)),
            Err(answer) => Err(self.refused_from(remote, answer)),
        }
    }

    fn admit(&self, head: Parts) -> Result<AdmittedHead, NotAdmitted> {
        let rules = &*self.0;
        if let Some(answer) = self.probe(&head.method, head.uri.path(), true) {
            return Err(answer.into());
        }
        if rules.probes.reads_metrics(&head.method, head.uri.path()) {
            let anybody = RequestHead::of_route(HeaderMap::new(), HeaderMap::new());
            return Ok(self.admitted(anybody, Target::Metrics));
        }
        #[cfg(feature = "auth")]
        let mut head = head;
        #[cfg(feature = "auth")]
        if rules.protected.is_some() {
            Protected::hide(&mut head.headers);
        }
        #[cfg(feature = "auth")]
        if let Some(document) =
            rules.protected.as_ref().and_then(|protected| protected.document(&rules.guard, &head))
        {
            return Err(document.into());
        }
        #[cfg(feature = "auth")]
        if let Some(proxied) =
            rules.protected.as_ref().and_then(|protected| protected.proxied(&rules.guard, &head))
        {
            let (endpoint, issuer) = proxied?;
            return Ok(self.proxied(head, endpoint, issuer));
        }
        rules.guard.check(&head).map_err(forbidden)?;
        let at_path = match rules.routes.is_empty() {
            true => None,
            false => rules.routes.at(head.uri.path()),
        };
        if let Some(mut headers) = rules.guard.preflight(&head) {
            if let Some(allowed) = at_path.and_then(routes::allow_header) {
                headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, allowed);
            }
            let status = StatusCode::NO_CONTENT;
            return Err(Part::Head { status, headers, body: vec![], more: false }.into());
        }
        let mut cors = HeaderMap::new();
        rules.guard.decorate(&head, &mut cors);
        if let Some(at_path) = at_path {
            return self.route(head, at_path, cors);
        }
        let mcp_headers = McpHeaders::read(&head.headers);
        let mut admitted = RequestHead {
            #[cfg(feature = "auth")]
            unauthenticated: rules
                .protected
                .as_ref()
                .map(|protected| Box::new(protected.unauthenticated(&rules.guard, &head))),
            accepts: Accepts::from_headers(&head.headers),
            facts: HttpFacts {
                principal: head.extensions.get::<Arc<Principal>>().cloned(),
                session_id: mcp_headers
                    .as_ref()
                    .ok()
                    .and_then(|headers| headers.session())
                    .map(Arc::from),
                ambient: head.extensions.get::<TraceContext>().cloned().map(Box::new),
                headers: head.headers,
                remote: None,
            },
            mcp_headers: McpHeaders::default(),
            cors: (!cors.is_empty()).then(|| Box::new(cors)),
            is_behind: false,
            metadata: None,
            expires: None,
        };
        #[cfg(feature = "auth")]
        if admitted.unauthenticated.is_some() {
            let demands = self.demands(admitted.unauthenticated.as_deref());
            admitted.metadata = demands.metadata.map(Into::into);
        }
        let target = match mcp_headers {
            Ok(mcp_headers) => {
                admitted.mcp_headers = mcp_headers;
                self.target(&admitted, &head.method, &head.uri)?
            }
            Err(fault) => Target::InvalidHeaders(fault),
        };
        Ok(self.admitted(admitted, target))
    }

    /// Returns the answer to a request for `health` or `ready`, for which nothing is checked, and to one for `metrics` with another
    /// method than GET and HEAD; `None` for others. `is_started`: the hooks at start have run.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn probe(&self, method: &HttpMethod, path: &str, is_started: bool) -> Option<Part> {
        self.0.probes.answer(method, path, || match is_started {
            _ if self.is_draining() => Readiness::Draining,
            true => Readiness::Ready,
            false => Readiness::Starting,
        })
    }

    /// Has `ready` answered with 503 from now on, because the shutdown begins.
    pub(crate) fn begin_drain(&self) {
        self.0.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns whether the shutdown has begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Relaxed)
    }

    /// Has the endpoint answer requests for metrics from now on.
    pub(super) fn begin_to_collect(&self) {
        self.0.collects.store(true, Ordering::Relaxed);
    }

    /// Returns whether the endpoint answers requests for metrics.
    pub(super) fn collects(&self) -> bool {
        self.0.collects.load(Ordering::Relaxed)
    }

    /// Errors if an option or a route can't work at the path of the endpoint; the message names it and the fix.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only listeners check it again"))]
    pub(crate) fn check_options(&self) -> Result<(), Error> {
        self.0.config.check()?;
        routes::check(&self.0.config, &self.0.routes)
    }

    /// Returns an admitted request.
    pub(super) fn admitted(&self, head: RequestHead, target: Target) -> AdmittedHead {
        AdmittedHead::new(self.clone(), head, target)
    }

    /// Returns the paths of `health`, `ready` and `metrics`.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only services have routes"))]
    pub(crate) fn probe_paths(&self) -> impl Iterator<Item = &str> {
        self.0.probes.paths()
    }

    /// Admits a request to the OAuth proxy.
    #[cfg(feature = "auth")]
    fn proxied(&self, head: Parts, endpoint: OAuthEndpoint, issuer: String) -> AdmittedHead {
        let request = proxy::Request {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers,
            body: Vec::new(),
        };
        let target = ProxyRequest { endpoint, issuer, request, client: None };
        self.admitted(RequestHead::default(), Target::OAuth(Box::new(target)))
    }

    /// Returns the maximum size of a body, in bytes.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn max_body(&self) -> usize {
        self.0.config.max_body
    }

    /// Returns the time within which more of a body must arrive.
    #[cfg(feature = "http")]
    pub(crate) fn body_timeout(&self) -> std::time::Duration {
        self.0.config.body_timeout
    }

    /// Returns the answer to a request that is refused for another reason. A request whose host or origin is not allowed gets
    /// the answer that says so.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn refuse(&self, head: &Parts, refused: &Refused) -> Part {
        if let Err(refusal) = self.0.guard.check(head) {
            return self.refused_from(None, forbidden(refusal).into());
        }
        let mut cors = HeaderMap::new();
        self.0.guard.decorate(head, &mut cors);
        let part = self.refusal(refused, &head.headers, Some(&cors), &Demands::default());
        self.refused_from(None, NotAdmitted { part, reason: refused.reason() })
    }

    /// Returns the challenge of a request whose sender needs more scopes.
    pub(super) fn step_up(
        &self,
        metadata: Option<&str>,
        missing: MissingScopes,
    ) -> Option<HeaderValue> {
        #[cfg(feature = "auth")]
        let needs_dpop = self.demands(None).needs_dpop;
        #[cfg(not(feature = "auth"))]
        let needs_dpop = false;
        let metadata = metadata.map(ToOwned::to_owned);
        let demands = Demands { metadata, scopes: Vec::new(), needs_dpop };
        let MissingScopes { scopes, message } = missing;
        challenge::for_refusal(&Refused::InsufficientScope { scopes, message }, true, &demands)
    }

    /// Checks a request to become a message connection.
    pub(crate) fn upgrade(&self, head: &Parts, remote: Option<IpAddr>) -> Result<(), Part> {
        self.check_upgrade(head).map_err(|answer| self.refused_from(remote, answer.into()))
    }

    fn check_upgrade(&self, head: &Parts) -> Result<(), (Part, Reason)> {
        self.0.guard.check(head).map_err(forbidden)?;
        match self.0.config.place(head.uri.path()) {
            PathMeaning::Endpoint => Ok(()),
            PathMeaning::LegacySse | PathMeaning::Elsewhere => {
                let (status, body) = (StatusCode::NOT_FOUND, reply::refusal_body(NOWHERE));
                let part = Part::Head { status, headers: reply::json_head(), body, more: false };
                Err((part, Reason::new("path", NOWHERE)))
            }
        }
    }

    pub(super) fn has_sessions(&self) -> bool {
        self.0.has_sessions
    }

    fn target(
        &self,
        head: &RequestHead,
        method: &HttpMethod,
        uri: &Uri,
    ) -> Result<Target, NotAdmitted> {
        let has_sessions = self.0.has_sessions;
        let target = match (self.0.config.place(uri.path()), method) {
            (PathMeaning::Elsewhere, _) => {
                return Err(head
                    .refuse(StatusCode::NOT_FOUND, Reason::new("path", NOWHERE))
                    .into());
            }
            (PathMeaning::LegacySse, &HttpMethod::GET) if has_sessions => {
                Target::OpenLegacySse { path: uri.path().to_owned() }
            }
            (PathMeaning::LegacySse, &HttpMethod::POST) if has_sessions => {
                let query = uri.query().unwrap_or_default();
                let id = query.split('&').find_map(|pair| pair.strip_prefix("session_id="));
                Target::PostLegacySse { session: id.map(ToOwned::to_owned) }
            }
            (PathMeaning::Endpoint, &HttpMethod::POST) => Target::Post,
            (PathMeaning::Endpoint, &HttpMethod::GET) if has_sessions => Target::Get,
            (PathMeaning::Endpoint, &HttpMethod::DELETE) if has_sessions => Target::Delete,
            _ => return Err(self.wrong_method(head, method)),
        };
        if target.has_message() {
            head.check_media_types()?;
            if head.content_length().is_some_and(|length| length > self.0.config.max_body) {
                let cors = head.cors.as_deref();
                let (demands, refused) = (Demands::default(), Refused::BodyTooLarge);
                let part = self.refusal(&refused, &head.facts.headers, cors, &demands);
                return Err(NotAdmitted { part, reason: refused.reason() });
            }
        }
        Ok(target)
    }

    /// Returns the answer to `OPTIONS`, and to a method that is not served.
    fn wrong_method(&self, head: &RequestHead, method: &HttpMethod) -> NotAdmitted {
        let has_sessions = self.0.has_sessions;
        let allowed = match has_sessions {
            true => ALLOWED,
            false => ALLOWED_ALONE,
        };
        let allow = |mut headers: HeaderMap| {
            headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
            headers
        };
        if method == HttpMethod::OPTIONS {
            return head.answer(StatusCode::NO_CONTENT, allow(HeaderMap::new()), Vec::new()).into();
        }
        let message = match has_sessions {
            true => "POST messages here; a session also takes GET and DELETE",
            false => "POST messages here: this server has no sessions",
        };
        let body = reply::refusal_body(message);
        let part = head.answer(StatusCode::METHOD_NOT_ALLOWED, allow(reply::json_head()), body);
        (part, Reason::new("method", message)).into()
    }
}
