//! A request that passed the checks of its head, and then those of its body.

use std::{net::IpAddr, sync::Arc, time::Instant};

use http::{HeaderMap, HeaderValue, StatusCode, header};

#[cfg(feature = "auth")]
use super::authorization::Unauthenticated;
use super::{
    Part, Refused,
    admission::{Admission, NOWHERE},
    content::Content,
    logging::Reason,
    probes,
    reply::{self, Accepts},
    routes::RouteTarget,
};
#[cfg(feature = "auth")]
use crate::auth::authorization_server::proxy::{MAX_BODY, ProxyRequest};
use crate::{
    error::Fault,
    protocol::{ClientKey, Frame, Message, Method, Principal, Revision},
    session::server::HttpFacts,
    wire::{self, McpHeaders, Wire},
};

/// A request whose head was admitted: its body may be read.
#[derive(Debug)]
pub struct AdmittedHead {
    admission: Admission,
    head: RequestHead,
    target: Target,
}

/// A request that an endpoint can handle.
#[derive(Debug)]
pub struct AdmittedRequest<'a> {
    pub(super) head: RequestHead,
    pub(super) content: Content<'a>,
    /// The body, as sent.
    pub(super) body: &'a [u8],
}

/// The facts in the head of a request.
#[cfg_attr(feature = "auth", derive(Default))]
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) facts: HttpFacts,
    pub(super) mcp_headers: McpHeaders,
    pub(super) accepts: Accepts,
    /// CORS headers of the answer.
    pub(super) cors: Option<Box<HeaderMap>>,
    /// `true` if the client leaves so much unread that it may not call.
    pub(super) is_behind: bool,
    /// The URL of the document about this resource, for challenges.
    pub(super) metadata: Option<Box<str>>,
    /// The time at which the access token expires.
    pub(super) expires: Option<Instant>,
    /// Set if the sender has to be authenticated.
    #[cfg(feature = "auth")]
    pub(super) unauthenticated: Option<Box<Unauthenticated>>,
}

#[derive(Debug)]
pub(super) enum Target {
    Post,
    Get,
    Delete,
    OpenLegacySse {
        path: String,
    },
    PostLegacySse {
        session: Option<String>,
    },
    Route(Box<RouteTarget>),
    /// The metrics, which everybody may read.
    Metrics,
    /// The MCP headers contradict each other. The refusal names the request, which is in the body.
    InvalidHeaders(Fault),
    /// A resource of the OAuth proxy, for which the sender needs no token.
    #[cfg(feature = "auth")]
    OAuth(Box<ProxyRequest>),
}

impl AdmittedHead {
    pub(super) fn new(admission: Admission, head: RequestHead, target: Target) -> Self {
        Self { admission, head, target }
    }

    /// Sets the address that the request came from.
    pub(super) fn with_remote(mut self, remote: Option<IpAddr>) -> Self {
        self.head.facts.remote = remote;
        self
    }

    /// Returns the maximum size of the body, in bytes.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn max_body(&self) -> usize {
        match self.target {
            #[cfg(feature = "auth")]
            Target::OAuth(_) => MAX_BODY.min(self.admission.max_body()),
            _ => self.admission.max_body(),
        }
    }

    /// Returns whether the request is one to the OAuth proxy.
    #[cfg(feature = "auth")]
    pub(crate) fn is_proxied(&self) -> bool {
        matches!(self.target, Target::OAuth(_))
    }

    /// Returns the request to the OAuth proxy, with its body.
    #[cfg(feature = "auth")]
    pub(crate) fn into_proxied(self, body: &[u8]) -> Option<ProxyRequest> {
        let Target::OAuth(mut request) = self.target else { return None };
        request.request.body = body.to_vec();
        request.client = self.head.facts.client_key();
        Some(*request)
    }

    /// Returns whether the request asks for a stream that lasts until the client leaves: a GET, or `subscriptions/listen`.
    pub(crate) fn is_subscription(&self) -> bool {
        match self.target {
            Target::Get | Target::OpenLegacySse { .. } => true,
            Target::Post => self.head.mcp_headers.is_for(Method::Listen),
            _ => false,
        }
    }

    /// Returns the client that the request is counted for, if it is known.
    pub(crate) fn client_key(&self) -> Option<ClientKey> {
        self.head.facts.client_key()
    }

    /// Has the request refused if it calls, because its client leaves too many answers unread.
    pub(crate) fn set_behind(&mut self) {
        self.head.is_behind = true;
    }

    /// Sets the authenticated sender of the request.
    pub fn set_principal(&mut self, principal: Arc<Principal>) {
        self.head.facts.principal = Some(principal);
    }

    /// Sets the time at which the access token of the request expires. A stream that only listens ends then.
    #[cfg(feature = "auth")]
    pub fn set_expiry(&mut self, expires: Instant) {
        self.head.expires = Some(expires);
    }

    /// Returns the answer to a request that can't be served after all.
    pub fn refuse(&self, refused: &Refused) -> Part {
        #[cfg(feature = "auth")]
        let demands = self.admission.demands(self.head.unauthenticated.as_deref());
        #[cfg(not(feature = "auth"))]
        let demands = super::challenge::Demands::default();
        let (facts, cors) = (&self.head.facts, self.head.cors.as_deref());
        let part = self.admission.refusal(refused, &facts.headers, cors, &demands);
        if let Some(reason) = refused.reason() {
            self.admission.0.log.write(&reason, &part, facts);
        }
        part
    }

    /// Returns the facts by which the sender is to be authenticated, before the body is read. Returns `None` if everybody may
    /// call, or the sender is known.
    #[cfg(feature = "auth")]
    pub(crate) fn unauthenticated(&self) -> Option<(&Unauthenticated, &HeaderMap, Option<IpAddr>)> {
        let HttpFacts { principal, headers, remote, .. } = &self.head.facts;
        match principal {
            Some(_) => None,
            None => Some((self.head.unauthenticated.as_deref()?, headers, *remote)),
        }
    }

    /// Parses the body. Fails with the answer to a request that is refused, or that needs nothing of the endpoint.
    pub fn body(self, body: &[u8]) -> Result<Box<AdmittedRequest<'_>>, Part> {
        if body.len() > self.max_body() && self.target.has_body() {
            return Err(self.refuse(&Refused::BodyTooLarge));
        }
        // A shell that does not authenticate admits nobody.
        #[cfg(feature = "auth")]
        if self.unauthenticated().is_some() {
            return Err(self.refuse(&Refused::NoCredentials));
        }
        let Self { admission, head, target } = self;
        let content = match target {
            Target::Post => {
                let frame = Frame::parse(body);
                let era = wire::classify(&frame, &head.mcp_headers, &admission.0.dialects);
                Content::Post(frame, era)
            }
            Target::Route(target) => {
                let is_encrypted = admission.0.config.is_encrypted;
                let (route, input) = target.with_body(&head.facts, is_encrypted, body);
                Content::Route(route, input)
            }
            Target::Get => Content::Get,
            Target::Delete => Content::Delete,
            Target::OpenLegacySse { path } => Content::OpenLegacySse { path },
            Target::PostLegacySse { session } => {
                Content::PostLegacySse { session, frame: Frame::parse(body) }
            }
            Target::Metrics if admission.collects() => Content::Metrics,
            Target::Metrics => return Err(probes::metrics_answer(&admission.0.metrics)),
            Target::InvalidHeaders(fault) => {
                let reason = Reason::new("headers", "its headers contradict each other");
                let part = head.refuse_headers(body, fault);
                admission.0.log.write(&reason, &part, &head.facts);
                return Err(part);
            }
            // The driver passes such a request on.
            #[cfg(feature = "auth")]
            Target::OAuth(_) => {
                return Err(head.refuse(StatusCode::NOT_FOUND, Reason::new("path", NOWHERE)).0);
            }
        };
        Ok(Box::new(AdmittedRequest { head, content, body }))
    }
}

impl Target {
    /// Returns whether the body is a message.
    pub(super) fn has_message(&self) -> bool {
        matches!(self, Self::Post | Self::PostLegacySse { .. })
    }

    /// Returns whether the body is read.
    fn has_body(&self) -> bool {
        self.has_message() || matches!(self, Self::Route(_))
    }
}

impl RequestHead {
    /// Returns the head of a request for a route or for metrics, which nothing of MCP concerns.
    pub(super) fn of_route(headers: HeaderMap, cors: HeaderMap) -> Self {
        Self {
            facts: HttpFacts { headers, ..HttpFacts::default() },
            mcp_headers: McpHeaders::default(),
            accepts: Accepts::default(),
            cors: (!cors.is_empty()).then(|| Box::new(cors)),
            is_behind: false,
            metadata: None,
            expires: None,
            #[cfg(feature = "auth")]
            unauthenticated: None,
        }
    }

    pub(super) fn check_media_types(&self) -> Result<(), (Part, Reason)> {
        if !reply::is_json(&self.facts.headers) {
            let reason = Reason::new("content_type", "Content-Type must be application/json");
            Err(self.refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason))
        } else if reply::is_encoded(&self.facts.headers) {
            let mut headers = reply::json_head();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let message = "the body must be sent as it is, without Content-Encoding";
            let body = reply::refusal_body(message);
            let part = self.answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, headers, body);
            Err((part, Reason::new("content_encoding", message)))
        } else if !self.accepts.json && !self.accepts.stream {
            let message = "Accept must list application/json, text/event-stream, or both";
            Err(self.refuse(StatusCode::NOT_ACCEPTABLE, Reason::new("accept", message)))
        } else {
            Ok(())
        }
    }

    pub(super) fn content_length(&self) -> Option<usize> {
        self.facts.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Refuses headers that contradict each other, with the id of the request that they came with.
    fn refuse_headers(&self, body: &[u8], fault: Fault) -> Part {
        let frame = Frame::parse(body);
        let wire = match &frame {
            Frame::One(Ok(Message::Request { params, .. })) if wire::has_envelope(params) => {
                Wire::for_revision(Revision::LATEST)
            }
            _ => wire::spoken_by(&self.mcp_headers),
        };
        let answer = reply::fault(wire, frame.request_id(), fault);
        let (status, body) = answer.unwrap_or_else(|| {
            (StatusCode::BAD_REQUEST, reply::refusal_body("the headers contradict each other"))
        });
        self.answer(status, reply::json_head(), body)
    }

    pub(super) fn refuse(&self, status: StatusCode, reason: Reason) -> (Part, Reason) {
        let body = reply::refusal_body(&reason.text);
        (self.answer(status, reply::json_head(), body), reason)
    }

    pub(super) fn answer(&self, status: StatusCode, mut headers: HeaderMap, body: Vec<u8>) -> Part {
        headers.extend(self.cors.as_deref().cloned().unwrap_or_default());
        Part::Head { status, headers, body, more: false }
    }
}
