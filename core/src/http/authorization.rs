//! The server as a protected resource: its metadata, and the requests whose senders have to be authenticated.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{self, Entry},
    request::Parts,
    uri::Authority,
};

use super::{
    EndpointConfig, Part, Refused,
    admission::Admission,
    challenge::Demands,
    forwarded::ForwardedTarget,
    guard::{Arrival, Guard},
    logging::{NotAdmitted, Reason},
    refusal::forbidden,
    reply,
};
use crate::{
    auth::{
        authorization_server::proxy::OAuthEndpoint,
        metadata::RESOURCE_PATH,
        server::{
            authenticator::{AuthRefusal, Request},
            config::{AuthConfig, VerifiedRequest},
            resource::{Arrived, Facts, Resource, ResourceUrls},
        },
        url::is_loopback,
    },
    error::option_name,
    protocol::Principal,
};

/// The time for which the document may be cached.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=300");
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");

/// The place at which a host has mounted the endpoint: an extension of a request's head.
#[derive(Clone, Debug)]
pub struct MountPoint {
    /// The prefix of the path, which may be empty.
    pub prefix: String,
    /// `true` if clients reach the host by `https`.
    pub is_encrypted: bool,
}

/// The configuration of a protected resource.
#[derive(Debug)]
pub(super) struct Protected {
    pub(super) config: Arc<AuthConfig>,
    resource: Resource,
    facts: Facts,
    is_encrypted: bool,
    /// `true` once the log says that the server does not know its own URL.
    has_reported_url: AtomicBool,
}

/// The facts of a request whose sender has to be authenticated.
#[derive(Debug)]
pub(crate) struct Unauthenticated {
    method: Method,
    path: String,
    /// `None`: the server does not know its own URL.
    place: Option<ResourceUrls>,
}

impl Protected {
    pub(super) fn from_config(config: &EndpointConfig) -> Option<Self> {
        let auth = Arc::clone(config.auth.as_ref()?);
        let resource = auth.resource(config.guard.public_url.as_deref(), config.path.as_deref());
        // The configuration was checked when it was read.
        let facts = auth.facts().unwrap_or_default();
        let (is_encrypted, has_reported_url) = (config.is_encrypted, AtomicBool::new(false));
        Some(Self { config: auth, resource, facts, is_encrypted, has_reported_url })
    }

    /// Returns the document about the resource if the request is for it. Pages of every origin may read it.
    pub(super) fn document(&self, guard: &Guard, head: &Parts) -> Option<Part> {
        let is_asked_for = head.method == Method::GET
            && self.facts.has_document()
            && self.resource.has_document_at(head.uri.path());
        if !is_asked_for || guard.check_host_only(head).is_err() {
            return None;
        }
        let place = self.place(guard, head)?;
        let mut headers = reply::json_head();
        headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        let body = self.facts.document(&place.resource).to_string().into_bytes();
        Some(Part::Head { status: StatusCode::OK, headers, body, more: false })
    }

    pub(super) fn unauthenticated(&self, guard: &Guard, head: &Parts) -> Unauthenticated {
        let place = self.place(guard, head);
        let path = head.uri.path().to_owned();
        Unauthenticated { method: head.method.clone(), path, place }
    }

    /// Marks the `Authorization` header as sensitive, so that `Debug` of the headers does not show it.
    pub(super) fn hide(headers: &mut HeaderMap) {
        if let Entry::Occupied(mut all) = headers.entry(header::AUTHORIZATION) {
            all.iter_mut().for_each(|value| value.set_sensitive(true));
        }
    }

    /// Returns what the challenge of a refused request demands.
    pub(super) fn demands(&self, request: Option<&Unauthenticated>) -> Demands {
        let place = request.and_then(|request| request.place.as_ref());
        let has_document = self.facts.has_document();
        Demands {
            metadata: place.filter(|_| has_document).map(|place| place.metadata.clone()),
            scopes: self.facts.scopes.clone(),
            needs_dpop: self.facts.needs_dpop,
        }
    }

    /// Returns the resource of the OAuth proxy that a request is for. Errors with the answer to a request for another host.
    pub(super) fn proxied(
        &self,
        guard: &Guard,
        head: &Parts,
    ) -> Option<Result<(OAuthEndpoint, String), NotAdmitted>> {
        if !self.facts.is_issuer {
            return None;
        }
        let (endpoint, base) = OAuthEndpoint::at(head.uri.path())?;
        if !self.resource.has_path(&base) {
            return None;
        }
        if let Err(refusal) = guard.check_host_only(head) {
            return Some(Err(forbidden(refusal).into()));
        }
        let Some(place) = self.place_at(guard, head, &base) else {
            self.report_unknown_url();
            let (status, headers) = (StatusCode::INTERNAL_SERVER_ERROR, reply::json_head());
            let reason = Reason::new("unknown_url", "the server does not know its own URL");
            let body = reply::refusal_body(&reason.text);
            return Some(Err((Part::Head { status, headers, body, more: false }, reason).into()));
        };
        Some(Ok((endpoint, place.resource)))
    }

    /// Logs once that the URL of the server is not known, and how to set it.
    pub(super) fn report_unknown_url(&self) {
        if !self.has_reported_url.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the server does not know its own URL, which access tokens are for: set {}",
                option_name("public_url")
            );
        }
    }

    fn place(&self, guard: &Guard, head: &Parts) -> Option<ResourceUrls> {
        self.place_at(guard, head, head.uri.path())
    }

    fn place_at(&self, guard: &Guard, head: &Parts, path: &str) -> Option<ResourceUrls> {
        let said = head.headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let named = head.uri.authority().map(Authority::as_str).or(said).unwrap_or_default();
        let mount = head.extensions.get::<MountPoint>();
        let forwarded = head.extensions.get::<ForwardedTarget>();
        let is_encrypted = forwarded
            .and_then(|forwarded| forwarded.is_encrypted)
            .unwrap_or_else(|| mount.map_or(self.is_encrypted, |mount| mount.is_encrypted));
        let forwarded_host = forwarded.and_then(|forwarded| forwarded.host.as_deref());
        let (host, is_own) = if let Some(host) = forwarded_host {
            // A proxy may pass on whatever host its client names, so it has to be one of the server's.
            (host, guard.names(host))
        } else {
            let port = head.extensions.get().and_then(|arrival: &Arrival| arrival.port);
            (named, is_own(named, port, is_encrypted) && guard.is_via_loopback(head))
        };
        self.resource.place(&Arrived {
            host,
            is_own,
            is_encrypted,
            path,
            mount: mount.map_or("", |mount| &mount.prefix),
        })
    }
}

impl Unauthenticated {
    /// Returns the request as the authenticator takes it.
    pub(crate) fn request<'a>(
        &'a self,
        headers: &'a HeaderMap,
        remote: Option<IpAddr>,
    ) -> Request<'a> {
        Request { method: &self.method, headers, place: self.place.as_ref(), remote }
    }

    /// Returns the request as functions of the host see it.
    pub(crate) fn for_host(&self, headers: &HeaderMap, remote: Option<IpAddr>) -> VerifiedRequest {
        VerifiedRequest {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: headers.clone(),
            remote: remote.map(|address| address.to_string()),
        }
    }
}

/// Returns whether a `Host` header names this machine, and the port at which the request arrived if that is known. With
/// another port a caller could name the server that its token is really for.
fn is_own(host: &str, port: Option<u16>, is_encrypted: bool) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let usual = if is_encrypted { 443 } else { 80 };
    !host.contains('@')
        && is_loopback(authority.host())
        && port.is_none_or(|own| authority.port_u16().unwrap_or(usual) == own)
}

impl Admission {
    /// Returns the arrival of a request at a port on which the server listens.
    #[cfg(feature = "http")]
    pub(crate) fn arrival(&self, port: u16) -> Arrival {
        self.0.guard.arrival(port)
    }

    /// Returns the facts by which the sender of a request to become a message connection is authenticated; `None` if
    /// everybody may call.
    pub(crate) fn unauthenticated(&self, head: &Parts) -> Option<Unauthenticated> {
        let protected = self.0.protected.as_ref()?;
        let is_known = head.extensions.get::<Arc<Principal>>().is_some();
        (!is_known).then(|| protected.unauthenticated(&self.0.guard, head))
    }

    /// Returns the answer to such a request, whose sender is refused.
    pub(crate) fn refuse_unauthenticated(
        &self,
        head: &Parts,
        request: &Unauthenticated,
        remote: Option<IpAddr>,
        refused: &Refused,
    ) -> Part {
        let demands = self.demands(Some(request));
        let mut cors = HeaderMap::new();
        self.0.guard.decorate(head, &mut cors);
        let part = self.refusal(refused, &head.headers, Some(&cors), &demands);
        self.refused_from(remote, NotAdmitted { part, reason: refused.reason() })
    }

    /// Returns the methods by which senders are authenticated; `None` if everybody may call.
    pub(crate) fn auth_config(&self) -> Option<&Arc<AuthConfig>> {
        self.0.protected.as_ref().map(|protected| &protected.config)
    }

    /// Returns the paths of the documents and of the OAuth proxy, for an endpoint at this path, which has no slash at its end.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only services have routes"))]
    pub(crate) fn auth_routes(&self, endpoint: &str) -> Vec<String> {
        let Some(protected) = self.protected() else { return Vec::new() };
        let facts = &protected.facts;
        let document = facts.has_document().then(|| format!("{RESOURCE_PATH}{endpoint}"));
        let proxy = facts.is_issuer.then(|| OAuthEndpoint::paths(endpoint));
        document.into_iter().chain(proxy.into_iter().flatten()).collect()
    }

    /// Returns the protected resource; `None` if everybody may call.
    pub(super) fn protected(&self) -> Option<&Protected> {
        self.0.protected.as_ref()
    }

    /// Returns what the challenge of a refused request demands.
    pub(super) fn demands(&self, request: Option<&Unauthenticated>) -> Demands {
        let protected = self.0.protected.as_ref();
        protected.map_or_else(Demands::default, |protected| protected.demands(request))
    }
}

impl From<AuthRefusal> for Refused {
    fn from(refusal: AuthRefusal) -> Self {
        match refusal {
            AuthRefusal::Missing => Self::NoCredentials,
            AuthRefusal::Malformed(reason) => Self::InvalidRequest(reason),
            AuthRefusal::InvalidToken(reason) => Self::InvalidToken(reason),
            AuthRefusal::InvalidProof(reason) => Self::InvalidProof(reason),
            AuthRefusal::NeedsNonce(nonce) => Self::NeedsNonce(nonce),
            AuthRefusal::InsufficientScope { scopes, message } => {
                Self::InsufficientScope { scopes, message }
            }
            AuthRefusal::Unavailable => Self::AuthUnavailable,
            AuthRefusal::Failed => Self::Unidentified,
            AuthRefusal::UnknownUrl => Self::UnknownUrl,
        }
    }
}
