//! Requests for the routes of the program: their admission, and their answers.
//!
//! A handler of a route is run by the engine as others are. Its peer is the one HTTP request that it answers.

use std::{sync::Arc, time::Instant};

use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header,
    request::Parts,
    uri::{Authority, Scheme},
};

use super::{
    Endpoint, EndpointConfig, ExchangeOwner, Part, PeerId,
    admission::Admission,
    admitted::{AdmittedHead, RequestHead, Target},
    logging::{NotAdmitted, Reason},
    probes,
    requests::HttpRequest,
    streams,
};
use crate::{
    engine::{CallId, ExchangeId},
    error::{Error, option_name},
    protocol::Revision,
    router::{self, Route, RouteRequest, Routes},
    session::server::{CallContext, HttpFacts},
    wire::Wire,
};

/// The host in the URL of a request that names none.
const NO_HOST: Authority = Authority::from_static("localhost");

/// A request for a route, whose head was admitted.
#[derive(Debug)]
pub(super) struct RouteTarget {
    route: Arc<Route>,
    method: Method,
    uri: Uri,
}

/// Errors if a route can't be served with this configuration; the message names the route and the fix.
pub(super) fn check(config: &EndpointConfig, routes: &Routes) -> Result<(), Error> {
    let refused = |problem: String| Err(Error::misuse(problem));
    for path in routes.paths() {
        let mut options = probes::options(config).into_iter();
        let of_probe = |own: Option<&str>| own.is_some_and(|own| probes::is_same(own, path));
        let used_by = match probes::used_by(config, path) {
            Some(used_by) => used_by.to_owned(),
            None => match options.find(|(_, own, _)| of_probe(*own)) {
                Some((option, ..)) => option_name(option),
                None => continue,
            },
        };
        return refused(format!(
            "route {path:?}: this is a path of {used_by}; choose another one, such as \"/hooks\""
        ));
    }
    #[cfg(feature = "auth")]
    let has_auth = config.auth.is_some();
    #[cfg(not(feature = "auth"))]
    let has_auth = false;
    match routes.first_with_auth() {
        Some(route) if !has_auth => refused(format!(
            "{}: its callers are to be authenticated, and the server has no {}; give the server one, or leave it out here",
            route.place(),
            option_name("auth")
        )),
        _ => Ok(()),
    }
}

impl Admission {
    /// Admits a request for one of these routes, which have its path. Fails with the answer to another method.
    pub(super) fn route(
        &self,
        head: Parts,
        routes: &[Arc<Route>],
        cors: HeaderMap,
    ) -> Result<AdmittedHead, NotAdmitted> {
        let Some(route) = router::with_method(routes, &head.method) else {
            return Err(without_handler(&head.method, routes, cors));
        };
        #[cfg(feature = "auth")]
        let unauthenticated = route.needs_auth.then(|| self.unauthenticated(&head)).flatten();
        let Parts { method, uri, headers, .. } = head;
        let admitted = RequestHead {
            #[cfg(feature = "auth")]
            unauthenticated: unauthenticated.map(Box::new),
            ..RequestHead::of_route(headers, cors)
        };
        let target = RouteTarget { route: Arc::clone(route), method, uri };
        Ok(self.admitted(admitted, Target::Route(Box::new(target))))
    }
}

impl RouteTarget {
    /// Returns the route, and the input of its handler.
    pub(super) fn with_body(
        self,
        facts: &HttpFacts,
        is_encrypted: bool,
        body: &[u8],
    ) -> (Arc<Route>, String) {
        let Self { route, method, uri } = self;
        let url = complete_url(&uri, &facts.headers, is_encrypted);
        let request = RouteRequest {
            method: &method,
            url: &url,
            path: uri.path(),
            query: uri.query().unwrap_or_default(),
            headers: &facts.headers,
            principal: facts.principal.as_deref(),
            remote: facts.remote.map(|address| address.to_string()),
        };
        let input = request.input(body);
        (route, input)
    }
}

impl Endpoint {
    /// Runs the handler of a route, unless too much is in flight.
    pub(super) fn handle_route(
        &mut self,
        now: Instant,
        request: HttpRequest,
        route: &Arc<Route>,
        input: String,
    ) {
        if let Some(why) = self.too_many_requests(&request) {
            return self.refuse_for_now(request, &why);
        }
        let id = request.exchange;
        let facts = &request.facts;
        let wire = Wire::for_revision(Revision::LATEST);
        let context = CallContext {
            weight: input.len(),
            principal: facts.principal.clone(),
            remote: facts.remote,
            http: Some(Arc::clone(facts)),
            ..CallContext::new(wire, Arc::default(), None)
        };
        let call = self.engine.begin_route(PeerId::Exchange(id), route, input, context);
        let mut exchange = streams::exchange(now, request, ExchangeOwner::Route(call));
        exchange.is_streaming = false;
        self.exchanges.insert(id, exchange);
    }

    /// Sends the response of a route's handler.
    pub(super) fn respond_to(&mut self, peer: PeerId, response: Response<Vec<u8>>) {
        let PeerId::Exchange(id) = peer else { return };
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        let (head, body) = response.into_parts();
        self.respond(id, &mut exchange, head.status, head.headers, body, false);
    }

    /// Stops the handler of a route whose client has left.
    pub(super) fn cancel_route(&mut self, now: Instant, id: ExchangeId, call: CallId) {
        self.exchanges.remove(&id);
        self.engine.cancel(now, call);
    }
}

/// Returns the answer to `OPTIONS`, and to a method that no handler has.
fn without_handler(method: &Method, routes: &[Arc<Route>], cors: HeaderMap) -> NotAdmitted {
    let mut headers = cors;
    if let Some(allowed) = allow_header(routes) {
        headers.insert(header::ALLOW, allowed);
    }
    if *method == Method::OPTIONS {
        let status = StatusCode::NO_CONTENT;
        return Part::Head { status, headers, body: Vec::new(), more: false }.into();
    }
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    let (status, body) =
        (StatusCode::METHOD_NOT_ALLOWED, "this path has other methods: see Allow\n");
    let part = Part::Head { status, headers, body: body.into(), more: false };
    (part, Reason::new("method", "this path has other methods")).into()
}

/// Returns the methods of a path.
pub(super) fn allow_header(routes: &[Arc<Route>]) -> Option<HeaderValue> {
    HeaderValue::try_from(router::allowed(routes)).ok()
}

/// Returns the URL by which the client addressed the server, as far as its request tells.
fn complete_url(uri: &Uri, headers: &HeaderMap, is_encrypted: bool) -> String {
    let said = || headers.get(header::HOST)?.to_str().ok()?.parse::<Authority>().ok();
    let authority = uri.authority().cloned().or_else(said).unwrap_or(NO_HOST);
    let scheme = if is_encrypted { Scheme::HTTPS } else { Scheme::HTTP };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    format!("{scheme}://{authority}{path}")
}

#[cfg(test)]
mod tests;
