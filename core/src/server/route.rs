//! Routes: HTTP requests beside the endpoint that the program answers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::json;

use super::{Context, Server, ToolError, handler::Erased};
use crate::router::{Failure, Reply};

/// The input of a route's handler, without the headers, which are those of the call.
#[derive(Deserialize)]
struct Input {
    method: String,
    url: String,
    body: Option<String>,
    blob: Option<String>,
}

impl Server {
    /// Adds a handler for HTTP requests beside the endpoint, such as a webhook, a status page or a download: those with this
    /// method (GET, POST, PUT, PATCH or DELETE) and exactly this path, such as `/hooks`. HEAD is answered by the handler for
    /// GET, without its body.
    ///
    /// They are served at the addresses of [`Server::listen`] and [`Server::run`] that begin with `http` or `https`, behind the
    /// same checks of `Host` and `Origin` as the endpoint, and count for the same limits. Everybody may send them:
    /// [`Server::route_with_auth`] authenticates. An error or a panic is answered with 500 and a reference to the log.
    /// For more than a few routes, use a web framework and [`Server::into_service`].
    ///
    /// ```
    /// # use gudgeon::Server;
    /// use bytes::Bytes;
    /// use http::{Method, Request, Response};
    ///
    /// let server = Server::new("shelf").route(Method::POST, "/hooks", |request: Request<Bytes>| async move {
    ///     let lines = request.body().split(|byte| *byte == b'\n').count();
    ///     Ok(Response::new(format!("{lines} lines")))
    /// });
    /// ```
    ///
    /// # Panics
    /// Panics if the path is not a path as in URLs, if routes have no such method, if both are taken, or if an address of the
    /// server is being served.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "`Method::POST` at the call reads best")]
    pub fn route<F, Responding, B>(self, method: Method, path: &str, handler: F) -> Self
    where
        F: Fn(Request<Bytes>) -> Responding + Send + Sync + 'static,
        Responding: Future<Output = Result<Response<B>, ToolError>> + Send + 'static,
        B: Into<Bytes>,
    {
        self.add_route(&method, path, false, erased(handler))
    }

    /// Adds a handler as [`Server::route`] does, whose callers are authenticated by
    /// [`HttpOptions::auth`](super::HttpOptions::auth): one without credentials gets the answer that it would get from the
    /// endpoint. The caller is an extension of the request, an `Arc<Principal>`.
    ///
    /// ```
    /// # use gudgeon::{Server, protocol::Principal};
    /// # use std::sync::Arc;
    /// use bytes::Bytes;
    /// use http::{Method, Request, Response};
    ///
    /// async fn me(request: Request<Bytes>) -> Result<Response<String>, gudgeon::ToolError> {
    ///     let caller = request.extensions().get::<Arc<Principal>>();
    ///     Ok(Response::new(caller.map_or(String::new(), |caller| caller.subject.clone())))
    /// }
    ///
    /// let server = Server::new("shelf").route_with_auth(Method::GET, "/me", me);
    /// ```
    ///
    /// # Panics
    /// Panics as [`Server::route`] does.
    #[cfg(feature = "auth")]
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "`Method::POST` at the call reads best")]
    pub fn route_with_auth<F, Responding, B>(self, method: Method, path: &str, handler: F) -> Self
    where
        F: Fn(Request<Bytes>) -> Responding + Send + Sync + 'static,
        Responding: Future<Output = Result<Response<B>, ToolError>> + Send + 'static,
        B: Into<Bytes>,
    {
        self.add_route(&method, path, true, erased(handler))
    }

    #[track_caller]
    fn add_route(self, method: &Method, path: &str, needs_auth: bool, handler: Erased) -> Self {
        let handler = self.erased(handler);
        let added = self.hub.add_route(method.as_str(), path, needs_auth, handler);
        self.registered(added)
    }
}

/// Returns a handler of requests as handlers are kept.
fn erased<F, Responding, B>(handler: F) -> Erased
where
    F: Fn(Request<Bytes>) -> Responding + Send + Sync + 'static,
    Responding: Future<Output = Result<Response<B>, ToolError>> + Send + 'static,
    B: Into<Bytes>,
{
    Erased::new(Vec::new(), move |input, context, _| match request(&input, &context) {
        Err(failure) => Box::pin(std::future::ready(Err(failure))),
        Ok(request) => {
            let responding = handler(request);
            Box::pin(async move {
                match responding.await {
                    Ok(response) => Ok(reply(response.map(Into::into))),
                    Err(error) => error.into_reply(&context),
                }
            })
        }
    })
}

/// Reads the request of a route.
fn request(input: &str, context: &Context) -> Result<Request<Bytes>, Failure> {
    let unreadable =
        |problem: String| Failure::Invalid(format!("the request can't be read: {problem}"));
    let input: Input =
        serde_json::from_str(input).map_err(|error| unreadable(error.to_string()))?;
    let body = match input.blob {
        Some(base64) => STANDARD.decode(base64).map_err(|error| unreadable(error.to_string()))?,
        None => input.body.unwrap_or_default().into_bytes(),
    };
    let built = Request::builder().method(&*input.method).uri(input.url).body(Bytes::from(body));
    let mut request = built.map_err(|error| unreadable(error.to_string()))?;
    *request.headers_mut() = context.headers().unwrap_or_default();
    if let Some(principal) = context.principal() {
        request.extensions_mut().insert(principal);
    }
    Ok(request)
}

/// Writes the response of a route.
fn reply(response: Response<Bytes>) -> Reply {
    let (head, body) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        let value: String = value.as_bytes().iter().copied().map(char::from).collect();
        (name.as_str(), value)
    });
    let headers: Vec<_> = headers.collect();
    let status = head.status.as_u16();
    let written = match str::from_utf8(&body) {
        Ok(text) => json!({"status": status, "headers": headers, "body": text}),
        Err(_) => json!({"status": status, "headers": headers, "blob": STANDARD.encode(&body)}),
    };
    Reply::Result(written.to_string())
}
