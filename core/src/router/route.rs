//! Routes: HTTP requests beside the endpoint that the program answers. Handlers get the request as JSON, and their reply
//! becomes the response.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, Method, Response, StatusCode, uri::PathAndQuery};

use super::{Components, Failure, Handler, Reply, route_response};
use crate::{
    error::Error,
    protocol::{
        Principal,
        json::{ObjectWriter, push, push_string},
    },
};

const METHODS: [Method; 5] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// The beginnings of segments that are variables in other libraries, where they match more than one path.
const PATTERNS: [&str; 3] = ["/:", "/<", "/*"];

/// A path and a method that a handler of the program answers.
#[derive(Debug)]
pub(crate) struct Route {
    method: Method,
    path: String,
    /// `true` if callers are authenticated as those of the endpoint.
    pub(crate) needs_auth: bool,
    pub(crate) handler: Handler,
}

/// The routes of a server by path, each with its methods in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes(BTreeMap<String, Vec<Arc<Route>>>);

/// A request for a route, without its body.
#[derive(Debug)]
pub(crate) struct RouteRequest<'a> {
    pub(crate) method: &'a Method,
    /// The complete URL, by which the client addressed the server.
    pub(crate) url: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) principal: Option<&'a Principal>,
    /// The address that the request came from.
    pub(crate) remote: Option<String>,
}

impl Route {
    /// Returns the route's name for errors and log messages, such as `route POST "/hooks"`.
    pub(crate) fn place(&self) -> String {
        format!("route {} {:?}", self.method, self.path)
    }

    /// Converts the reply of the handler.
    pub(crate) fn response(reply: Reply) -> Result<Response<Vec<u8>>, Failure> {
        route_response::from_reply(reply)
    }

    /// Returns the response to a request whose handler failed, which reveals only a reference, and the text for the log that
    /// has the same reference.
    pub(crate) fn failed(
        &self,
        failure: Failure,
        reference: &str,
    ) -> (Response<Vec<u8>>, Option<String>) {
        if matches!(failure, Failure::Cancelled) {
            let stopped = "the request was cancelled on the server\n";
            return (route_response::plain(StatusCode::SERVICE_UNAVAILABLE, stopped), None);
        }
        let reason = match failure {
            Failure::Exception { traceback, .. } if !traceback.is_empty() => {
                format!("\n{traceback}")
            }
            Failure::Exception { kind, message, .. } => format!(": {kind}: {message}"),
            failure => format!(": {}", message(failure)),
        };
        let shown = format!("the server failed to answer (reference {reference})\n");
        let report = format!("{} failed (reference {reference}){reason}", self.place());
        (route_response::plain(StatusCode::INTERNAL_SERVER_ERROR, &shown), Some(report))
    }
}

impl Routes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the routes at a path, which is compared as it is.
    pub(crate) fn at(&self, path: &str) -> Option<&[Arc<Route>]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// Returns every path once.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the first route whose callers are authenticated.
    pub(crate) fn first_with_auth(&self) -> Option<&Route> {
        self.0.values().flatten().find(|route| route.needs_auth).map(|route| &**route)
    }

    fn add(&mut self, route: Route) -> Result<(), Error> {
        let routes = self.0.entry(route.path.clone()).or_default();
        if routes.iter().any(|known| known.method == route.method) {
            let place = route.place();
            return Err(Error::misuse(format!(
                "{place} is already registered; choose another path, or answer both in one handler"
            )));
        }
        routes.push(Arc::new(route));
        Ok(())
    }
}

impl Components {
    /// Registers the handler of a route. Errors if the path is not a complete path as in URLs, the method is not one that
    /// routes have, or another handler has both.
    #[doc(hidden)] // For the language bindings.
    pub fn add_route(
        &mut self,
        method: &str,
        path: &str,
        needs_auth: bool,
        handler: Handler,
    ) -> Result<(), Error> {
        let refused = |problem: String| Err(Error::misuse(format!("route {path:?}: {problem}")));
        let Some(method) = METHODS.into_iter().find(|known| known.as_str() == method) else {
            let names = METHODS.map(|method| format!("{:?}", method.as_str())).join(", ");
            return refused(format!(
                "{method:?} is not a method of routes; write one of {names} (HEAD and OPTIONS are answered for them)"
            ));
        };
        let is_pattern =
            path.contains(['{', '}']) || PATTERNS.iter().any(|begin| path.contains(begin));
        if is_pattern {
            return refused(
                "a route has one exact path, without variables; pass them in the query, or use a web framework and mount the \
                 server there"
                    .into(),
            );
        }
        if !is_path(path) {
            return refused(
                "it is not a path as in URLs; write one that begins with \"/\", without a query, such as \"/hooks\"".into(),
            );
        }
        let route = Route { method, path: path.to_owned(), needs_auth, handler };
        let mut routes = (*self.routes).clone();
        routes.add(route)?;
        self.routes = Arc::new(routes);
        Ok(())
    }

    /// Errors if there are routes, for an endpoint inside another application, which has routes of its own.
    #[doc(hidden)] // For the language bindings.
    pub fn check_without_routes(&self) -> Result<(), Error> {
        match self.routes.0.keys().next() {
            None => Ok(()),
            Some(path) => Err(Error::misuse(format!(
                "route {path:?}: routes are served at addresses of the server's own only; register it with the application that \
                 the server is mounted in"
            ))),
        }
    }

    /// Registers the routes of a server that is mounted into this one, under the same paths. Errors if one of them is taken.
    pub(super) fn mount_routes(&mut self, other: &Self) -> Result<(), Error> {
        for route in other.routes.0.values().flatten() {
            // Middleware does not run around routes, so that the handler stays as it is.
            let handler = Handler::clone(&route.handler);
            self.add_route(route.method.as_str(), &route.path, route.needs_auth, handler)?;
        }
        Ok(())
    }
}

impl RouteRequest<'_> {
    /// Returns the input of the handler: a JSON object with the body as `body`, or as base64 in `blob` if it is not text.
    pub(crate) fn input(&self, body: &[u8]) -> String {
        let mut input = ObjectWriter::with_capacity(body.len() + 1024);
        input.member("method", self.method.as_str()).member("url", self.url);
        input.member("path", self.path).member("query", self.query);
        input.raw("headers", &headers(self.headers));
        match str::from_utf8(body) {
            Ok(text) => {
                let mut quoted = String::new();
                push_string(&mut quoted, text);
                input.raw("body", &quoted);
            }
            Err(_) => {
                input.member("blob", &STANDARD.encode(body));
            }
        }
        if let Some(principal) = self.principal {
            input.member("principal", principal);
        }
        if let Some(remote) = &self.remote {
            input.member("remote", remote);
        }
        input.finish()
    }
}

/// Returns the error for a route of a server that is being served already, where its requests are not expected.
#[doc(hidden)] // For the language bindings.
pub fn late_route(path: &str) -> Error {
    Error::misuse(format!(
        "route {path:?}: the server is being served already; register routes before run(), listen() or a client begins"
    ))
}

/// Returns the route for a request with this method among those at its path. HEAD is answered by the handler for GET.
pub(crate) fn with_method<'a>(routes: &'a [Arc<Route>], method: &Method) -> Option<&'a Arc<Route>> {
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    routes.iter().find(|route| route.method == *wanted)
}

/// Returns the methods that the path of these routes has, as `Allow` lists them.
pub(crate) fn allowed(routes: &[Arc<Route>]) -> String {
    let mut names: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.sort_unstable();
    names.join(", ")
}

/// Returns whether a string is a path as in the first line of a request, which has nothing else: other paths match no request.
pub(crate) fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.parse::<PathAndQuery>().is_ok_and(|parsed| parsed.path() == text)
}

/// Returns headers as a JSON array of names and values. Bytes beyond ASCII are read as Latin-1, as the platforms of the
/// bindings do.
fn headers(headers: &HeaderMap) -> String {
    let pairs = headers.iter().map(|(name, value)| {
        let value: String = value.as_bytes().iter().copied().map(char::from).collect();
        (name.as_str(), value)
    });
    let mut text = String::new();
    push(&mut text, &pairs.collect::<Vec<_>>());
    text
}

/// Returns the reason of a failure that is not an exception.
fn message(failure: Failure) -> String {
    match failure {
        Failure::Tool { message, .. }
        | Failure::Protocol { message, .. }
        | Failure::Invalid(message)
        | Failure::Exposed(message)
        | Failure::NotSupported(message)
        | Failure::MissingCapability { message, .. } => message,
        Failure::NotFound { uri, message } => {
            message.unwrap_or_else(|| format!("{uri:?} was not found"))
        }
        Failure::Declined(question) | Failure::Dismissed(question) => {
            format!("the question was not answered: {question}")
        }
        Failure::TimedOut(seconds) | Failure::Unanswered(seconds) => {
            format!("it took longer than {seconds} s")
        }
        Failure::Cancelled => "it was cancelled".into(),
        Failure::Exception { kind, message, .. } => format!("{kind}: {message}"),
    }
}

#[cfg(test)]
mod tests;
